"""Integers of one name are told apart where no read is of both, and nothing else is."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tt2gl.analysis.facts import ConstFact, Fact, FunctionFacts, TensorFact
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.separate_numbers import tell_numbers_apart
from tt2gl.analysis.statics import position_of


def body(text: str, **said: Fact) -> Body:
    """A function of `n` and `m`; `said`: what was said of each read of a name."""
    tree = ast.parse("def kernel(n, m):\n" + textwrap.indent(text, "    ")).body[0]
    assert isinstance(tree, ast.FunctionDef)
    facts = FunctionFacts("kernel", "kernel.py", 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in said:
            facts.expressions[position_of(node)] = (
                said[node.id] if isinstance(node.ctx, ast.Load) else ConstFact(node.id)
            )
    return Body(tree, [facts], "kernel")


def told_apart(text: str, **said: Fact) -> str:
    made = body(text, **said)
    tell_numbers_apart(made)
    return "\n".join(ast.unparse(statement) for statement in made.tree.body)


INTEGER = TensorFact((), "int32")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("i = n\nwhile m:\n    f(i)\n    i += 1", INTEGER, id="carried by a loop"),
        pytest.param("if m:\n    i = 1\nelse:\n    i = 2\nf(i)", INTEGER, id="of two branches"),
        pytest.param("i = 1\nif m:\n    i = 2\nf(i)", INTEGER, id="perhaps another"),
        pytest.param("for k in range(m):\n    if k:\n        f(i)\n    i = k", INTEGER, id="of the turn before"),
        pytest.param("i = n\nf(i)\ni = m\nf(i)", TensorFact((), "pointer<fp16>"), id="pointers"),
        pytest.param("i = n\nf(i)\ni = m\nf(i)", TensorFact((8,), "fp32"), id="floats"),
        pytest.param("i = n\nf(i)\ni = m\nf(lambda: i)", INTEGER, id="read at some other time"),
    ],
)
def test_what_keeps_its_name(text: str, said: Fact) -> None:
    assert told_apart(text, i=said) == text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("i = n\nf(i)\ni = m\nf(i)", "i = n\nf(i)\ni_2 = m\nf(i_2)"),
        ("i = n\nf(i)\ni += m\nf(i)", "i = n\nf(i)\ni_2 = i + m\nf(i_2)"),
        ("f(n)\nn = n + 1\nf(n)", "f(n)\nn_2 = n + 1\nf(n_2)"),
        ("i_2, i = n\nf(i)\ni = i_2\nf(i)", "i_2, i = n\nf(i)\ni_2_ = i_2\nf(i_2_)"),
        ("i = n\nfor i in range(i):\n    f(i)", "i = n\nfor i_2 in range(i):\n    f(i_2)"),
        (
            "i = n\nf(i)\ni = 0\nwhile m:\n    i += 1\ni -= 1\nf(i)",
            "i = n\nf(i)\ni_2 = 0\nwhile m:\n    i_2 += 1\ni_3 = i_2 - 1\nf(i_3)",
        ),
        (
            "for k in range(m):\n    i = k\n    f(i)\n    i = 2 * k\n    f(i)",
            "for k in range(m):\n    i = k\n    f(i)\n    i_2 = 2 * k\n    f(i_2)",
        ),
    ],
)
def test_what_gets_a_name_of_its_own(text: str, made: str) -> None:
    assert told_apart(text, i=INTEGER, n=INTEGER) == made


def test_the_authors_names_are_known() -> None:
    made = body("i = n\nf(i)\ni = m\nf(i)")
    tell_numbers_apart(made)
    assert made.authors == {"i_2": "i"}
    assert set(made.definitions) == {"i", "i_2"}
