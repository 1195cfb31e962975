"""Scans of what products give: in blocked layouts, down columns in that which Triton had before the instruction's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.results import KernelReport

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
    b = tl.load(b_ptr + ks[:, None] * N + cols[None, :])
    s = tl.exp2(tl.dot(a, b))
    s = tl.cumsum(s, axis=AXIS)
    tl.store(c_ptr + cols, tl.sum(s, axis=0))
"""


def ported(tmp_path: Path, target: str, rows: int, cols: int, axis: int) -> tuple[str, KernelReport]:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    kinds = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*fp32"}
    constexprs = {"M": rows, "N": cols, "K": 64, "AXIS": axis}
    launch = Launch(
        path.name, "kernel", kinds | dict.fromkeys(constexprs, "constexpr"), constexprs, tuple(kinds), Options(4, 3)
    )
    made = convert(path, target=target, launches=[launch], root=tmp_path)
    return made.text, made.kernels[0]


def test_along_rows_it_is_the_layout_of_an_access(tmp_path: Path) -> None:
    text, report = ported(tmp_path, "sm90", 64, 32, 1)
    assert report.status == "converted"
    assert "coalesced_blocks" not in text


@pytest.mark.parametrize(
    ("target", "rows", "cols", "block"),
    [
        ("sm90", 64, 32, "32, gl.num_warps(), 16"),
        ("sm80", 32, 32, "64, gl.num_warps(), 32"),
        ("sm80", 16, 16, "128, gl.num_warps(), 64"),
        ("gfx942", 64, 64, "32, gl.num_warps(), 16"),
    ],
)
def test_down_columns_a_thread_has_several_rows(tmp_path: Path, target: str, rows: int, cols: int, block: str) -> None:
    text, report = ported(tmp_path, target, rows, cols, 0)
    assert report.status == "converted"
    assert f"coalesced_blocks([M, N], [1, 0], {block})" in text


ROWS = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNS: tl.constexpr):
    rows, cols, inner = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a = tl.load(a_ptr + rows * K + inner[None, :])
    sums, out = tl.zeros([M], tl.float32), tl.zeros([M, N], tl.float32)
    for i in range(TURNS):
        s = tl.dot(a, tl.load(b_ptr + i * K * N + inner[:, None] * N + cols))
        before = sums[:, None] + tl.cumsum(s, 1)
        out += s - before
        sums += tl.sum(s, 1)
    tl.store(c_ptr + rows * N + cols, out)
"""


def test_a_products_row_that_meets_it_stays_in_the_products_layout(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(ROWS)
    constexprs = {"M": 64, "N": 32, "K": 16, "TURNS": 3}
    shapes = {"a_ptr": ("bfloat16", (64, 16)), "b_ptr": ("bfloat16", (48, 32)), "c_ptr": ("float32", (64, 32))}
    launch = Launch(
        file=path.name,
        kernel="kernel",
        signature={"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*fp32"} | dict.fromkeys(constexprs, "constexpr"),
        constexprs=constexprs,
        divisible_by_16=tuple(shapes),
        options=Options(4, 1),
        grid=(1,),
        args={name: TensorArg(dtype, shape, (shape[1], 1), None) for name, (dtype, shape) in shapes.items()},
    )
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert "before = sums[:, None] + gl.convert_layout(" in text
    _, triton, gluon = compared(path, launch, "sm90")
    assert gluon.convert_layouts <= triton.convert_layouts


DECAYS = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    rows, inner = tl.arange(0, M), tl.arange(0, K)
    b = tl.load(b_ptr + rows[:, None] * K + inner[None, :])
    s = tl.dot(b, tl.trans(b))
    decays = tl.where(rows[:, None] > rows[None, :], tl.load(a_ptr + rows)[:, None], 0.0)
    decays = tl.exp(tl.cumsum(decays, axis=AXIS))
    decays = tl.where(rows[:, None] >= rows[None, :], decays, 0.0)
    tl.store(c_ptr + rows[:, None] * M + rows[None, :], decays * s)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("axis", "blocks"), [(1, False), (0, True)], ids=["along rows", "down columns"])
def test_what_only_meets_a_product_is_scanned_as_one(tmp_path: Path, axis: int, *, blocks: bool) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(DECAYS)
    kinds, constexprs = {"a_ptr": "*fp32", "b_ptr": "*fp16", "c_ptr": "*fp32"}, {"M": 64, "K": 64, "AXIS": axis}
    launch = Launch(
        path.name, "kernel", kinds | dict.fromkeys(constexprs, "constexpr"), constexprs, tuple(kinds), Options(4, 3)
    )
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert ("coalesced_blocks([M, M], [1, 0], 32, gl.num_warps(), 16)" in text) == blocks
