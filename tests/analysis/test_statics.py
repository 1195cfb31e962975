"""Compile-time values in the kernel's own words."""

from __future__ import annotations

import ast

import pytest

from tt2gl.analysis.facts import ConstFact, Fact
from tt2gl.analysis.statics import Static, position_of, static_text


def text_of(source: str, fact: Fact | None = None) -> str | None:
    """An expression's text where `BLOCK` is a parameter, `HALF` made of it, `x` unknown and `WIDTH` a global."""
    node = ast.parse(source, mode="eval").body
    return static_text(node, {"BLOCK": "BLOCK", "HALF": "BLOCK // 2", "x": None}, frozenset({"WIDTH"}), fact)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("BLOCK", "BLOCK"),
        ("BLOCK * 2", "BLOCK * 2"),
        ("WIDTH", "WIDTH"),
        ("128", "128"),
        pytest.param("HALF", "BLOCK // 2", id="a local by what it is made of"),
        pytest.param("HALF * 4", "BLOCK // 2 * 4", id="within an expression"),
        pytest.param("4 // HALF", "4 // (BLOCK // 2)", id="with the parentheses it needs"),
        pytest.param("HALF if BLOCK else 1", "(BLOCK // 2 if BLOCK else 1)", id="a choice"),
    ],
)
def test_what_can_be_said(source: str, expected: str) -> None:
    assert text_of(source) == expected


@pytest.mark.parametrize("source", ["x", "BLOCK + x", "local", "f(BLOCK)", "x if BLOCK else 1"])
def test_what_cannot_be_said_is_its_value_or_none(source: str) -> None:
    assert text_of(source) is None
    assert text_of(source, ConstFact(64)) == "64"


@pytest.mark.parametrize(("value", "integer"), [(64, 64), (True, None), (0.5, None), (None, None), ("64", None)])
def test_a_known_integer(value: object, integer: int | None) -> None:
    assert Static(fact=ConstFact(value)).integer == integer


def test_positions_count_bytes() -> None:
    (statement,) = ast.parse('f("é", x)').body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert position_of(statement.value.args[1]) == (1, 8, 1, 9)
