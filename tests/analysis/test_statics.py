"""Compile-time values in the kernel's own words."""

from __future__ import annotations

import ast

import pytest

from tt2gl.analysis.facts import ConstFact, Fact
from tt2gl.analysis.statics import Static, independent, position_of, static_text


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


@pytest.mark.parametrize(
    ("statement", "apart"),
    [
        ("a, b = b, a", False),
        ("a, b = x, a + 1", False),
        ("a, a = x, y", False),
        ("a, *b = x, y", False),
        ("a, b.c = x, y", False),
        ("a, b = b + 1, x", True),
        ("a, b = x < 1, y < 2", True),
    ],
)
def test_parts_of_an_assignment(statement: str, apart: bool) -> None:
    assign = ast.parse(statement).body[0]
    assert isinstance(assign, ast.Assign)
    assert isinstance(assign.targets[0], ast.Tuple)
    assert isinstance(assign.value, ast.Tuple)
    assert independent(assign.targets[0].elts, assign.value.elts) is apart
