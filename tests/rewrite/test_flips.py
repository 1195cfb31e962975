"""Rule `flips`: tensors turned round go through a helper, and come out in the layout that they have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch
from tt2gl.rewrite.build import through

KERNEL = """import triton
import triton.language as tl


@triton.jit
def turned_kernel(x_ptr, y_ptr, total_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    x = tl.load(x_ptr + rows[:, None] * COLS + cols[None, :])
    tl.store(y_ptr + rows[:, None] * COLS + cols[None, :], tl.flip(x, 1).flip(0))
    tl.store(total_ptr + cols, tl.cumsum(tl.flip(tl.sum(x, 0), dim=0), 0))
"""


def test_no_call_is_left_alone(code: Callable[[cst.CSTNode], str]) -> None:
    assert code(through(cst.parse_expression("flip"), False, "flipped")) == "flip"


@pytest.mark.parametrize(
    ("before", "is_method", "after"),
    [("tl.flip(x, 1)", False, "flipped(x, 1)"), ("x.flip(dim=0)", True, "flipped(x, dim=0)")],
)
def test_a_call_goes_through_the_helper(
    code: Callable[[cst.CSTNode], str], before: str, is_method: bool, after: str
) -> None:
    assert code(through(cst.parse_expression(before), is_method, "flipped")) == after


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "i64", "i8"])
def test_tensors_turned_round_convert_and_compile(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    pointers, extents = ("x_ptr", "y_ptr", "total_ptr"), {"ROWS": 32, "COLS": 64}
    types = dict.fromkeys(pointers, f"*{dtype}") | dict.fromkeys(extents, "constexpr")
    made = convert(path, target="sm90", launches=[Launch(str(path), "turned_kernel", types, extents, pointers)])
    assert [report.status for report in made.kernels] == ["converted"], made.kernels[0].diagnostics
    assert "flipped(flipped(x, 1), 0)" in made.text
    assert "tl.cumsum(flipped(" in made.text
