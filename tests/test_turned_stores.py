"""Tiles that are stored as they are, and turned: they are converted once, for the first, where that does for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :]) * 2
    tl.store(y_ptr + FIRST, x)
    tl.store(z_ptr + cols[:, None] * M + rows[None, :], tl.trans(x))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={**dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "*fp32"), **dict.fromkeys(("M", "N"), "constexpr")},
    constexprs={"M": 64, "N": 32},
    divisible_by_16=("x_ptr", "y_ptr", "z_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "x_ptr": TensorArg("float32", (64, 32), (32, 1), None),
        "y_ptr": TensorArg("float32", (2048,), (1,), None),
        "z_ptr": TensorArg("float32", (32, 64), (64, 1), None),
    },
)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize(
    "first",
    ["rows[:, None] * N + cols[None, :]", "rows[:, None] + cols[None, :] * M"],
    ids=["as it came", "by columns"],
)
def test_a_tile_is_converted_once_for_both(tmp_path: Path, first: str, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("FIRST", first))
    _, triton, gluon = compared(path, LAUNCH, target)
    assert (gluon.convert_layouts, gluon.shared_bytes) == (triton.convert_layouts, triton.shared_bytes)
