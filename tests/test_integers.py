"""Integers that source says, and how often ranges of them turn."""

from __future__ import annotations

import ast

import pytest

from tt2gl.integers import integer, turns

KNOWN = {"B": 64, "ROWS": False, "NONE": None, "KIND": "a"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("B", 64), ("B * 2 + 1", 129), ("B // 3", 21), ("2 ** 3", 8), ("B % 10", 4), ("1 << 4", 16), ("B >> 1", 32)],
        *[("cdiv(B, 48)", 2), ("tl.cdiv(B, 32)", 2), ("gl.cdiv(B + 1, 65)", 1)],
        *[("B if ROWS else 1", 1), ("B if B == 64 else 1", 64), ("(B if B is None else 1) + 1", 2)],
        *[("1 if NONE is None else B", 1), ("1 if KIND != 'a' else B", 64)],
    ],
)
def test_an_integer_that_is_known(text: str, value: int) -> None:
    assert integer(ast.parse(text, mode="eval").body, KNOWN) == value


@pytest.mark.parametrize(
    "text",
    [
        *["other", "f(B)", "KIND", "NONE", "B + other", "B / 2", "0.5", "-B", "B if f(B) else 1", "B if other else 1"],
        *["B // 0", "B % 0", "cdiv(B, 0)", "1 << -1", "2 ** -1", "cdiv(B, other)", "cdiv(B, div=2)"],
        "B if B != 64 else other",
    ],
)
def test_one_that_is_not(text: str) -> None:
    assert integer(ast.parse(text, mode="eval").body, KNOWN) is None


@pytest.mark.parametrize(
    ("bounds", "times"),
    [
        *[((1,), 1), ((0,), 0), ((2, 8), 6), ((0, 64, 32), 2), ((0, 65, 64), 2), ((4, 0, -2), 2)],
        *[((), None), ((None,), None), ((0, None), None), ((0, 64, 0), None)],
    ],
)
def test_how_often_a_range_turns(bounds: tuple[int | None, ...], times: int | None) -> None:
    assert turns(bounds) == times
