from __future__ import annotations

from tt2gl.report.page.differences import Row, difference


def lines(text: str, first: int = 1) -> list[tuple[int, str]]:
    return list(enumerate(text.split("\n"), first))


def test_equal_texts_have_no_rows() -> None:
    assert difference(lines("a\nb"), lines("a\nb", 9)).rows == ()


def test_line_ends_are_no_difference() -> None:
    assert difference(lines("a\r\nb"), lines("a\nb")).rows == ()


def test_lines_keep_their_numbers() -> None:
    found = difference(lines("a\nb\nc", 10), lines("a\nx\ny\nc", 20))
    assert found.rows == (
        Row(" ", 10, 20, "a"),
        Row("-", 11, 0, "b"),
        Row("+", 0, 21, "x"),
        Row("+", 0, 22, "y"),
        Row(" ", 12, 23, "c"),
    )
    assert (found.removed, found.added) == (1, 2)
    assert found.text == " a\n-b\n+x\n+y\n c"


def test_what_is_far_from_changes_is_left_out() -> None:
    middle = "\n".join("abcdefghij")
    found = difference(lines(f"1\n{middle}\n2"), lines(f"3\n{middle}\n4"))
    assert [row.text for row in found.rows] == ["1", "3", "a", "b", "c", "", "h", "i", "j", "2", "4"]
    assert [row.sign for row in found.rows].count("@") == 1
