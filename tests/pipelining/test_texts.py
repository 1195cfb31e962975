"""Source that is put together: tests turned round, and calls whose arguments an author broke."""

from __future__ import annotations

import pytest

from tt2gl.pipelining.texts import call, negated


@pytest.mark.parametrize(
    ("test", "opposite"),
    [
        ("desc is not None", "desc is None"),
        ("desc is None", "desc is not None"),
        ("KIND == 'a'", "KIND != 'a'"),
        ("kind(a, b) != 2", "kind(a, b) == 2"),
        ("not CAUSAL", "CAUSAL"),
        ("not (A or B)", "A or B"),
        ("CAUSAL", "not CAUSAL"),
        ("x < y", "not (x < y)"),
        ("0 == x == y", "not (0 == x == y)"),
        ("A and B", "not (A and B)"),
        ("(a +\n b) == c", "(a +\n b) != c"),
    ],
)
def test_a_test_is_turned_round(test: str, opposite: str) -> None:
    assert negated(test) == opposite


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("mask=(a < m)\n        & (b < n)", "mask=(a < m) & (b < n)"),
        ("f(\n    a,\n    b\n)", "f(a, b)"),
        ("x[\n  0]", "x[0]"),
    ],
)
def test_an_argument_that_its_author_broke_is_on_one_line(argument: str, line: str) -> None:
    assert call("async_load", ["slot", argument], 4) == f"async_load(slot, {line})"


@pytest.mark.parametrize("argument", ["(a  # rows\n & b)", '"""\n"""'])
def test_comments_and_texts_of_several_lines_stay_as_they_are(argument: str) -> None:
    assert argument in call("f", [argument, "b"], 4)
