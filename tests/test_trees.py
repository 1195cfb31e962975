"""Questions about syntax trees: what is left out of a walk comes first."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tt2gl.trees import functions_in, nodes_in, python_tree

ROOT = Path(__file__).parent.parent
LEFT_OUT = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)

pytestmark = pytest.mark.once


def test_operators_and_contexts_are_left_out() -> None:
    kinds = {type(node).__name__ for node in nodes_in(ast.parse("x = -a + b if not a < b and c else d"))}
    expected = {"Module", "Assign", "Name", "IfExp", "BinOp", "UnaryOp", "BoolOp", "Compare"}
    assert kinds == expected


def test_so_are_names_that_are_no_nodes() -> None:
    (_, statement) = nodes_in(ast.parse("global a, b"))
    assert isinstance(statement, ast.Global)


@pytest.mark.parametrize("path", ["corpus/attention.py", "tt2gl/simulate/engine.py", "tests/conftest.py"])
def test_all_else_comes_in_the_order_in_which_python_walks(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    assert nodes_in(tree) == [node for node in ast.walk(tree) if not isinstance(node, LEFT_OUT)]


@pytest.mark.parametrize(
    "text",
    [
        "def f(a, *, b, c=1, **d):\n    return {**d, 'a': a}\n",
        "match a:\n    case C(1, b=2) | {'c': 3, **rest} | [_, *others]:\n        global x, y\n",
        "import a as b, c\nfrom d import e as f\nwith g() as h, i:\n    nonlocal j\n",
    ],
    ids=["arguments", "patterns", "names"],
)
def test_what_has_texts_or_nothing_in_its_lists_is_walked(text: str) -> None:
    tree = ast.parse(text)
    assert nodes_in(tree) == [node for node in ast.walk(tree) if not isinstance(node, LEFT_OUT)]


def test_a_text_is_parsed_once() -> None:
    text = "def f():\n    def g(): ...\n"
    assert python_tree(text) is python_tree(text)
    assert [function.name for function in functions_in(python_tree(text))] == ["f", "g"]
