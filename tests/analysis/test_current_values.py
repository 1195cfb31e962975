"""What a mask says of an index holds of what is made of it, where the access stands, and nowhere else."""

from __future__ import annotations

import ast
import math
from textwrap import indent

import pytest

from tt2gl.analysis.current_values import current_values
from tt2gl.analysis.facts import ConstFact, FunctionFacts
from tt2gl.analysis.intervals import Interval
from tt2gl.analysis.offset_ranges import Body, Reader
from tt2gl.analysis.stated_ranges import constraints_of
from tt2gl.analysis.statics import position_of


def offset(text: str) -> Interval:
    """What `load(offset, mask)` adds, in a kernel of a count `x`; `N`, wherever it stands, is said to be 100."""
    tree = ast.parse(f"def kernel(x, y, N):\n{indent(text, '    ')}\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "N"]
    facts = FunctionFacts("f.py", "kernel", 1, {position_of(node): ConstFact(100) for node in constants})
    body = Body(tree, [facts], "kernel", parameters={"x": Interval(low=0)})
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "load"]
    reader = Reader(body, (), constraints_of(calls[0].args[1], body))
    reader.current = current_values(calls[0], body)
    return reader.value(calls[0].args[0])


@pytest.mark.parametrize(
    ("text", "high"),
    [
        ("at = x\nload(at, x < 50)", 49),
        ("at = x * 2\nrow = at + 1\nload(row, x < 50)", 99),
        ("row = x // 8\ncol = x % 8\nload(row * 64 + col, x < 50)", 6 * 64 + 7),
        ("for i in f():\n    at = x + i * 0\n    load(at, x < 50)", 49),
        ("at = x\nfor i in f():\n    load(at, x < 50)", 49),
        ("for i in f():\n    each = x + i * 0\n    at = each * 3\n    if y:\n        load(at, each < 50)", 147),
    ],
)
def test_what_is_made_of_a_masked_index(text: str, high: float) -> None:
    assert offset(text).high == high


@pytest.mark.parametrize(
    "text",
    [
        # Of another turn: what it is made of has got a value since.
        "at = y\nfor i in f():\n    each = x + i * 0\n    load(at, each < 50)\n    at = each",
        "for i in f():\n    load(at, each < 50)\n    each = x + i * 0\n    at = each",
        "for i in f():\n    each = x + i * 0\n    load(at, each < 50)\n    at = each",
        # Made in a branch, perhaps in an earlier turn.
        "for i in f():\n    each = x + i * 0\n    if y:\n        at = each\n    load(at, each < 50)",
        # Made by the last turn of a loop, which may have been left between.
        "for i in f():\n    each = x + i * 0\n    if y:\n        break\n    at = each\nload(at, each < 50)",
        # Given a value twice, or one that is unknown here.
        "at = x\nat = y\nload(at, x < 50)",
        "y = x\nload(y, x < 50)",
        "at, other = x, y\nload(at, x < 50)",
    ],
)
def test_what_may_be_made_of_an_earlier_value(text: str) -> None:
    assert offset(text).high == math.inf


def test_a_parameter_that_is_given_a_constant_bounds_a_mask() -> None:
    assert offset("N = 100\nmask = x < N\nat = x\nload(at, mask)").high == 99


def test_nothing_is_said_of_a_name_by_another_value_of_it() -> None:
    assert offset("x = 3\nx = y\nload(x, x < N)").high == math.inf
