"""Scans of what products give: in blocked layouts, down columns in that which Triton had before the instruction's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options
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
