"""Layout terms as values and as Gluon source."""

from __future__ import annotations

import pytest

from tt2gl.analysis.terms import (
    Cut,
    Narrowed,
    Operand,
    Pair,
    Root,
    Term,
    Turned,
    Widened,
    doubled,
    halved,
    packed,
    renamed,
    rendered,
    root_of,
)


@pytest.mark.parametrize(
    ("term", "source"),
    [
        (Root("layout"), "layout"),
        (Cut(1, Root("layout")), "gl.SliceLayout(1, layout)"),
        (Cut(0, Cut(2, Root("layout"))), "gl.SliceLayout(0, gl.SliceLayout(2, layout))"),
        (Pair(Root("layout")), "paired(layout)"),
        (Cut(1, Pair(Root("layout"))), "gl.SliceLayout(1, paired(layout))"),
        (Cut(0, Widened(1, 8, Root("layout"))), "gl.SliceLayout(0, widened(layout, 1, 8))"),
        (Pair(Narrowed(1, 2, Root("layout"))), "paired(narrowed(layout, 1, 2))"),
        (Turned(Root("layout"), ()), "turned(layout)"),
        (Turned(Root("layout"), ("M", "N")), "turned(gl.to_linear_layout(layout, [M, N]))"),
    ],
)
def test_source(term: Term, source: str) -> None:
    assert rendered(term) == source


def test_source_under_another_name_of_gluon() -> None:
    assert rendered(Cut(0, Root("layout")), "gl_2") == "gl_2.SliceLayout(0, layout)"


@pytest.mark.parametrize("term", [Root("a"), Cut(0, Root("a")), Pair(Cut(1, Pair(Root("a"))))])
def test_what_a_term_is_made_of(term: Term) -> None:
    assert root_of(term) == Root("a")


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Root("a"), Root("b")),
        (Cut(0, Root("a")), Cut(0, Root("b"))),
        (Pair(Cut(1, Root("a"))), Pair(Cut(1, Root("b")))),
        (Widened(1, 2, Cut(1, Root("a"))), Widened(1, 2, Cut(1, Root("b")))),
        (Pair(Narrowed(1, 2, Root("a"))), Pair(Narrowed(1, 2, Root("b")))),
        (Cut(0, Root("other")), Cut(0, Root("other"))),
        (Turned(Root("a"), ("M", "N")), Turned(Root("b"), ("M", "N"))),
    ],
)
def test_renaming_changes_the_root_alone(term: Term, expected: Term) -> None:
    assert renamed(term, {"a": "b"}) == expected


@pytest.mark.parametrize(
    ("width", "half"), [("4", "2"), ("32 // bits", "32 // bits // 2"), ("8 if n else 1", "(8 if n else 1) // 2")]
)
def test_bytes_of_two_elements(width: str, half: str) -> None:
    assert packed(Operand(0, Root("a"), width)) == Operand(0, Root("a"), half)


@pytest.mark.parametrize("term", [Pair(Root("a")), Operand(0, Root("a"), "2"), Cut(0, Pair(Root("a")))])
def test_layouts_that_are_not_widened(term: Term) -> None:
    assert doubled(term, 0) is None


@pytest.mark.parametrize("term", [Root("a"), Pair(Root("a")), Cut(0, Root("a")), Widened(1, 2, Root("a"))])
def test_layouts_that_are_of_nothing_twice(term: Term) -> None:
    assert halved(term, 0) is None


@pytest.mark.parametrize(
    ("term", "dim", "twice"),
    [
        (Root("a"), 1, Widened(1, 2, Root("a"))),
        (Widened(1, 2, Root("a")), 1, Widened(1, 4, Root("a"))),
        # What remains of a slice keeps its place in the whole.
        (Cut(0, Root("a")), 0, Cut(0, Widened(1, 2, Root("a")))),
        (Cut(1, Root("a")), 0, Cut(1, Widened(0, 2, Root("a")))),
    ],
)
def test_twice_as_many_elements(term: Term, dim: int, twice: Term) -> None:
    assert doubled(term, dim) == twice
    assert halved(twice, dim) == term


def test_parts_side_by_side_again() -> None:
    half = doubled(Narrowed(1, 4, Root("a")), 1)
    assert half == Narrowed(1, 2, Root("a"))
    assert half is not None
    assert doubled(half, 1) == Root("a")
    assert doubled(half, 0) is None
