"""Replaced text, and the author's line of every line of it."""

from __future__ import annotations

import pytest

from tt2gl.edits import Edit, apply


def test_without_edits_text_and_lines_are_the_authors() -> None:
    text, lines = apply("a\r\nb\n", [])
    assert (text, lines.lines, lines.indents) == ("a\r\nb\n", (1, 2, 3), {})


def test_an_insertion_moves_what_follows() -> None:
    text, lines = apply("a\n    b\nc", [Edit(6, 6, "x\n    y\n    ")])
    assert text == "a\n    x\n    y\n    b\nc"
    assert [lines.author(number, 7) for number in range(1, 6)] == [(1, 7), (2, 4), (2, 4), (2, 4), (3, 7)]


def test_a_call_over_several_lines_becomes_one() -> None:
    text, lines = apply("p = f(\n  1,\n)\nq", [Edit(4, 13, "g")])
    assert (text, lines.lines) == ("p = g\nq", (1, 4))
    assert lines.line_of(3) == 1
    assert lines.line_of(4) == 2


def test_offsets_are_bytes() -> None:
    assert apply("# é\nx", [Edit(5, 6, "y")])[0] == "# é\ny"


def test_overlapping_edits_are_an_error() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply("abc", [Edit(0, 2, ""), Edit(1, 3, "")])


def test_the_whole_file_has_no_line() -> None:
    assert apply("a", [])[1].author(0, 0) == (0, 0)
