"""Values joined several times and reshaped side by side keep the layout that they came in, as in Triton."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def unpacked(w):
    low = tl.join(w & 15, (w >> 8) & 15)
    high = tl.join((w >> 4) & 15, (w >> 12) & 15)
    return tl.join(low, high).reshape(w.shape[0], w.shape[1] * 4)


@triton.jit
def kernel(w_ptr, s_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    w = tl.load(w_ptr + rows * N + tl.arange(0, N)[None, :])
    s = tl.load(s_ptr + tl.arange(0, N * 4))[None, :]
    tl.store(o_ptr + rows * (N * 4) + tl.arange(0, N * 4)[None, :], unpacked(w) * s)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"w_ptr": "*i32", "s_ptr": "*fp32", "o_ptr": "*fp32", "M": "constexpr", "N": "constexpr"},
    constexprs={"M": 64, "N": 32},
    divisible_by_16=("w_ptr", "s_ptr", "o_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "w_ptr": TensorArg("int32", (64, 32), (32, 1), None),
        "s_ptr": TensorArg("float32", (128,), (1,), None),
        "o_ptr": TensorArg("float32", (64, 128), (128, 1), None),
    },
)


@pytest.mark.parametrize("target", ["sm90", "gfx942", "gfx1100"])
def test_joins_of_joins_take_no_conversions(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    _, triton, gluon = compared(path, LAUNCH, target)
    assert gluon.convert_layouts <= triton.convert_layouts


def test_what_is_merged_is_as_wide_as_all_that_was_joined(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    text = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    joins = text[text.index("low = ") : text.index("return gl.convert_layout")]
    assert "convert_layout" not in joins
    assert "widened(layout, 1, 4)" in text


NOISE = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, seed, ROWS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    at = rows[:, None] * 4 + tl.arange(0, 4)[None, :]
    x = tl.load(x_ptr + at).to(tl.int32, bitcast=True)
    a, b, c, d = tl.randint4x(seed, rows)
    bits = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), (ROWS, 4)).to(tl.uint32, bitcast=True)
    {use}
"""
ROUNDED = """y = (x + (bits & 0xFFFF).to(tl.int32) - (bits >> 31).to(tl.int32)) & -65536
    tl.store(y_ptr + at, y.to(tl.float32, bitcast=True))"""
ALONE = "tl.store(y_ptr + at, (bits >> 8).to(tl.float32))"


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize("use", [ALONE, ROUNDED], ids=["alone", "beside a tile"])
def test_bits_that_are_made_for_a_tile_are_made_where_it_has_them(tmp_path: Path, use: str, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(NOISE.format(use=use))
    types = {"x_ptr": "*fp32", "y_ptr": "*fp32", "seed": "i32", "ROWS": "constexpr"}
    tensor = TensorArg("float32", (256, 4), (4, 1), None)
    args = {"x_ptr": tensor, "y_ptr": tensor, "seed": 7}
    launch = Launch("kernel.py", "kernel", types, {"ROWS": 256}, ("x_ptr", "y_ptr"), Options(4), (1,), args)
    _, triton, gluon = compared(path, launch, target)
    assert gluon.convert_layouts <= triton.convert_layouts
