"""Which of several ways to write a layout is taken."""

from __future__ import annotations

from collections.abc import Sequence

from tt2gl.formulas import Candidate, Tile, Width, Written, numbers, telling_apart, written
from tt2gl.shared_layouts import Swizzled


def swizzled(vec: int) -> Swizzled:
    return Swizzled(vec, 1, 1, (1, 0))


def candidate(source: str, vecs: Sequence[int], *helpers: str) -> Candidate[Swizzled]:
    return Candidate(source, lambda index: swizzled(vecs[index]), helpers)


def test_one_that_is_wrong_under_a_launch_is_not_exact() -> None:
    ways = [candidate("first", (8, 1, 1)), candidate("second", (8, 4, 1), "helper")]
    assert written([swizzled(8), swizzled(4), swizzled(2)], ways) == Written("second", ("helper",), False)


def test_the_first_that_is_right_everywhere_is_taken() -> None:
    ways = [candidate("wrong", (8, 8)), candidate("right", (8, 4)), candidate("too late", (8, 4))]
    assert written([swizzled(8), swizzled(4)], ways) == Written("right", (), True)


def test_a_literal_stands_in_where_all_launches_agree_and_no_formula_does() -> None:
    ways = [candidate("formula", (8, 4))]
    assert written([swizzled(8), swizzled(8)], ways) == Written("gl.SwizzledSharedLayout(8, 1, 1, [1, 0])", (), True)


def test_the_commonest_literal_is_better_than_a_formula_that_is_right_less_often() -> None:
    found = written([swizzled(8), swizzled(8), swizzled(2)], [candidate("formula", (1, 1, 2))])
    assert found == Written("gl.SwizzledSharedLayout(8, 1, 1, [1, 0])", (), False)


def test_a_formula_is_better_than_a_literal_that_is_right_as_often() -> None:
    assert written([swizzled(8), swizzled(2)], [candidate("formula", (8, 8))]) == Written("formula", (), False)


def test_numbers_start_with_the_most_frequent() -> None:
    assert numbers([2, 4, 4]) == (Width("4", (4, 4, 4)), Width("2", (2, 2, 2)))


def test_a_number_over_a_width_is_a_number_where_the_width_is_one() -> None:
    assert Width("16", (16,)).under(256) == "16"
    assert Width("x.dtype.primitive_bitwidth", (16,)).under(256) == "256 // x.dtype.primitive_bitwidth"


def test_a_tile_is_written_by_its_names() -> None:
    assert Tile(("BLOCK_M", "64"), ((128, 64),)).source == "[BLOCK_M, 64]"


def test_widths_that_differ_under_a_launch_are_all_told_apart() -> None:
    widths = [Width("a", (16, 16)), Width("b", (16, 32)), Width("c", (32, 16))]
    assert telling_apart(widths) == widths


def test_one_that_is_as_another_under_every_launch_is_not() -> None:
    a, b, c = Width("a", (16, 32)), Width("b", (16, 32)), Width("32", (32, 32))
    assert telling_apart([a, c, b]) == [a, c]
