"""Layout terms as values and as Gluon source."""

from __future__ import annotations

import pytest

from tt2gl.analysis.terms import Cut, Pair, Root, Term, renamed, rendered, root_of


@pytest.mark.parametrize(
    ("term", "source"),
    [
        (Root("layout"), "layout"),
        (Cut(1, Root("layout")), "gl.SliceLayout(1, layout)"),
        (Cut(0, Cut(2, Root("layout"))), "gl.SliceLayout(0, gl.SliceLayout(2, layout))"),
        (Pair(Root("layout")), "paired(layout)"),
        (Cut(1, Pair(Root("layout"))), "gl.SliceLayout(1, paired(layout))"),
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
        (Cut(0, Root("other")), Cut(0, Root("other"))),
    ],
)
def test_renaming_changes_the_root_alone(term: Term, expected: Term) -> None:
    assert renamed(term, {"a": "b"}) == expected
