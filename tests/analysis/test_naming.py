"""Names of layouts and of variables that stand in several."""

from __future__ import annotations

import pytest

from tt2gl.analysis.memory import LayoutClass
from tt2gl.analysis.naming import access_comment, stem, suffixed
from tt2gl.names import listed


@pytest.mark.parametrize(
    ("pointer", "name"),
    [("x_ptr", "x"), ("X_ptrs", "x"), ("w_base", "w"), ("dy_pointer", "dy"), ("out", "out"), ("ptr", ""), ("A", "a")],
)
def test_a_pointer_without_its_ending(pointer: str, name: str) -> None:
    assert stem(pointer) == name


@pytest.mark.parametrize(
    ("layout", "taken", "name"),
    [
        ("y_layout", set(), "cols_y"),
        ("gl.SliceLayout(0, y_layout)", set(), "cols_y"),
        ("gl.SliceLayout(0, y_layout)", {"cols_y"}, "cols_y_cols"),
        ("gl.SliceLayout(1, tile_layout)", set(), "cols_rows"),
        ("tile_layout", set(), "cols_tile"),
        ("row_layout", set(), "cols_row"),
        ("layout_1", {"cols_tile"}, "cols_tile_2"),
    ],
)
def test_a_variable_in_a_second_layout(layout: str, taken: set[str], name: str) -> None:
    assert suffixed("cols", layout, taken) == name


@pytest.mark.parametrize(("names", "text"), [(["x"], "x"), (["x", "y"], "x and y"), (["x", "w", "y"], "x, w and y")])
def test_a_list(names: list[str], text: str) -> None:
    assert listed(names) == text


@pytest.mark.parametrize(
    ("bits", "comment"),
    [
        ("x_ptr.dtype.element_ty.primitive_bitwidth", "coalesced access to x_ptr"),
        ("128", "coalesced access to x_ptr; 128 for one element a thread"),
        ("16 if ALIGNED_n else 128", "coalesced access to x_ptr; 128 for one element a thread"),
        ("128 if FLAG else 16", "coalesced access to x_ptr; 128 for one element a thread"),
    ],
)
def test_what_a_layout_serves(bits: str, comment: str) -> None:
    layout = LayoutClass(("128",), {}, ["x_ptr", ""], f"coalesced([128], [0], {bits}, gl.num_warps())")
    assert access_comment(layout) == comment
    assert access_comment(LayoutClass(("128",), {}, [""], "")) == ""
