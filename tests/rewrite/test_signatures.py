"""Rule `signatures`: decorators, layout parameters and the layouts named on top of a function."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.plan import FunctionPlan
from tt2gl.rewrite.signatures import with_declarations, with_parameters, with_signature
from tt2gl.stages import Declaration

Code = Callable[[cst.CSTNode], str]

LAYOUT = Declaration("layout", "coalesced([BLOCK], [0], 16, gl.num_warps())", "coalesced access to x_ptr")


def function(text: str) -> cst.FunctionDef:
    """A function's node."""
    return cst.ensure_type(cst.parse_statement(text), cst.FunctionDef)


@pytest.mark.parametrize(
    "text",
    ["def f(a): pass\n", "def f(a,\n      b=1):\n    return a\n", 'def f():\n    """Doc."""\n'],
)
def test_nothing_to_add(code: Code, text: str) -> None:
    assert code(with_parameters(with_declarations(function(text), ()), ())) == text


def test_other_decorators_stay(code: Code) -> None:
    text = "@triton.autotune(configs=[], key=['n'])\n@triton.heuristics({})\n@triton.jit\ndef f(a):\n    pass\n"
    made = with_signature(function(text), FunctionPlan("f.py", 4, True), [False, False, True])
    assert code(made) == text.replace("@triton.jit", "@gluon.jit")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@triton.jit", "@gluon.jit"),
        ("@triton.jit()", "@gluon.jit()"),
        ("@triton.jit(do_not_specialize=['n'])", "@gluon.jit(do_not_specialize=['n'])"),
        ("@jit", "@gluon.jit"),
        ("@ triton . jit  # fast", "@ gluon.jit  # fast"),
    ],
)
def test_the_decorator(code: Code, before: str, after: str) -> None:
    made = with_signature(function(f"{before}\ndef f(a):\n    pass\n"), FunctionPlan("f.py", 2, True), [True])
    assert code(made) == f"{after}\ndef f(a):\n    pass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(): pass", "def f(layout: gl.constexpr): pass"),
        ("def f(a): pass", "def f(a, layout: gl.constexpr): pass"),
        pytest.param(
            "def f(a, b=1): pass", "def f(a, b=1, layout: gl.constexpr = None): pass", id="a default needs another"
        ),
        pytest.param("def f(a, b,): pass", "def f(a, b, layout: gl.constexpr,): pass", id="a trailing comma"),
        pytest.param(
            "def f(\n    a,\n    b,\n): pass",
            "def f(\n    a,\n    b,\n    layout: gl.constexpr,\n): pass",
            id="a parameter a line",
        ),
        pytest.param(
            "def f(a, *, b): pass", "def f(a, layout: gl.constexpr, *, b): pass", id="before keyword-only ones"
        ),
    ],
)
def test_a_layout_parameter(code: Code, before: str, after: str) -> None:
    made = code(with_parameters(function(before + "\n"), ["layout"]))
    assert made == after + "\n"


def test_several_parameters(code: Code) -> None:
    made = with_parameters(function("def f(a): pass\n"), ["layout_0", "layout_1"])
    assert code(made) == "def f(a, layout_0: gl.constexpr, layout_1: gl.constexpr): pass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "def f():\n    x = 1\n",
            "def f():\n    # coalesced access to x_ptr\n    layout: gl.constexpr = coalesced([BLOCK], [0], 16, "
            "gl.num_warps())\n\n    x = 1\n",
            id="first thing",
        ),
        pytest.param(
            'def f():\n    """Doc."""\n    x = 1\n',
            'def f():\n    """Doc."""\n\n    # coalesced access to x_ptr\n    layout: gl.constexpr = coalesced('
            "[BLOCK], [0], 16, gl.num_warps())\n\n    x = 1\n",
            id="after the docstring",
        ),
        pytest.param(
            "def f():\n    # over rows\n    x = 1\n",
            "def f():\n    # coalesced access to x_ptr\n    layout: gl.constexpr = coalesced([BLOCK], [0], 16, "
            "gl.num_warps())\n\n    # over rows\n    x = 1\n",
            id="before the first comment",
        ),
    ],
)
def test_where_declarations_stand(code: Code, before: str, after: str) -> None:
    assert code(with_declarations(function(before), [LAYOUT])) == after
