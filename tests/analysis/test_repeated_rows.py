"""Rows of one element a thread that a small tile repeats: loaded as they lie there, and not converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, N: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    y = tl.load(w_ptr + n)[:, None] * tl.load(x_ptr + d)[None, :]
    y += tl.load(w_ptr + N + n)[:, None] * tl.load(x_ptr + D + d)[None, :]
    y += tl.load(w_ptr + 2 * N + n)[:, None] * tl.load(x_ptr + 2 * D + d)[None, :]
    tl.store(y_ptr + n[:, None] * D + d[None, :], y)
"""

ONE_ROW = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, N: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    y = tl.load(w_ptr + n)[:, None] * tl.load(x_ptr + d)[None, :]
    tl.store(y_ptr + n[:, None] * D + d[None, :], y)
"""


def launch(rows: int, columns: int) -> Launch:
    given = {
        "x_ptr": TensorArg("float32", (3 * columns,), (1,), None),
        "w_ptr": TensorArg("float32", (3 * rows,), (1,), None),
        "y_ptr": TensorArg("float32", (rows * columns,), (1,), None),
    }
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**dict.fromkeys(given, "*fp32"), "N": "constexpr", "D": "constexpr"},
        constexprs={"N": rows, "D": columns},
        divisible_by_16=tuple(given),
        options=Options(4, 3),
        grid=(1,),
        args=given,
    )


def ported(text: str, folder: Path, *launches: Launch) -> str:
    path = folder / "kernel.py"
    path.write_text(text)
    return convert(path, target="sm90", launches=launches, root=folder, compile=False).text


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [(ONE_ROW, 4, 128), (KERNEL, 8, 128), (KERNEL, 4, 256)],
    ids=["one row", "eight elements a thread", "two elements of a row"],
)
def test_others_come_as_they_are_accessed(text: str, rows: int, columns: int, tmp_path: Path) -> None:
    assert "x_layout: gl.constexpr = coalesced([D]" in ported(text, tmp_path, launch(rows, columns))


def test_which_rows_are_so_is_told_by_their_extent(tmp_path: Path) -> None:
    made = ported(KERNEL, tmp_path, launch(4, 128), launch(4, 256))
    assert "x_layout if D > 32 * gl.num_warps() else gl.SliceLayout(0, " in made


def test_no_row_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    _, triton, gluon = compared(path, launch(4, 128), "sm90")
    assert triton.convert_layouts == 1
    assert (gluon.convert_layouts, gluon.barriers) == (0, 0)
    assert gluon.global_loads == triton.global_loads
