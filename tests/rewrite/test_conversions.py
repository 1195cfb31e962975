"""Rule `conversions`: a value that is needed in another layout is converted."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.plan import Conversion
from tt2gl.rewrite.conversions import conversion_lines, converted

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


def test_the_same_expression_elsewhere_is_left_alone(body: Body) -> None:
    made = body("f(y)\ng(y)", converts={"y": "layout"})
    assert made == "f(gl.convert_layout(y, layout))\ng(y)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("y", "gl.convert_layout(y, layout)"),
        ("a + b", "gl.convert_layout(a + b, layout)"),
        pytest.param("(a + b)", "gl.convert_layout(a + b, layout)", id="parentheses are not doubled"),
        pytest.param("(a, b)", "gl.convert_layout((a, b), layout)", id="a tuple keeps its own"),
        pytest.param("(a := b)", "gl.convert_layout((a := b), layout)", id="a named expression keeps its own"),
        pytest.param("(\n    a\n)", "gl.convert_layout((\n    a\n), layout)", id="several lines"),
    ],
)
def test_a_value_is_converted(code: Code, value: str, expected: str) -> None:
    assert code(converted(cst.parse_expression(value), "layout")) == expected


@pytest.mark.parametrize(
    ("statement", "converts", "expected"),
    [
        ("st(p, y)", {}, "st(p, y)"),
        ("st(p, y, m)", {"p": "layout"}, "st(gl.convert_layout(p, layout), y, m)"),
        ("st(p, y, m)", {"y": "layout"}, "st(p, gl.convert_layout(y.to(q.dtype), layout), m)"),
        (
            "st(p, value=a + b)",
            {"a + b": "layout"},
            "st(p, value=gl.convert_layout(gl.cast(a + b, q.dtype), layout))",
        ),
    ],
)
def test_what_is_stored_in_fewer_bits_gets_them_first(
    body: Body, statement: str, converts: dict[str, str], expected: str
) -> None:
    assert body(statement, converts=converts, shortened={statement: "q.dtype"}) == expected


def test_the_line_after_a_definition(code: Code) -> None:
    (made,) = conversion_lines(Conversion("x_out", "x", "gl.SliceLayout(1, out_layout)"))
    assert code(made) == "x_out = gl.convert_layout(x, gl.SliceLayout(1, out_layout))\n"


@pytest.mark.parametrize(
    ("statement", "at", "expected"),
    [
        ("y = a * b + c", "a * b", "y = gl.convert_layout(a * b, layout) + c"),
        ("y = (a + b) * c", "a + b", "y = gl.convert_layout(a + b, layout) * c"),
        ("y = -a", "a", "y = -gl.convert_layout(a, layout)"),
        ("y = f(a)[0]", "f(a)", "y = gl.convert_layout(f(a), layout)[0]"),
    ],
)
def test_where_it_stands(body: Body, statement: str, at: str, expected: str) -> None:
    assert body(statement, converts={at: "layout"}) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x += y", "x = gl.convert_layout(x + y, layout)"),
        ("x *= y + 1", "x = gl.convert_layout(x * (y + 1), layout)"),
        ("x -= (y - 1)", "x = gl.convert_layout(x - (y - 1), layout)"),
        ("x <<= f(y)", "x = gl.convert_layout(x << f(y), layout)"),
    ],
)
def test_an_augmented_assignment(body: Body, statement: str, expected: str) -> None:
    assert body(statement, converts={statement: "layout"}) == expected


def test_within_another_conversion(body: Body) -> None:
    made = body("y = f(a + b)", converts={"a": "inner", "f(a + b)": "outer"})
    assert made == "y = gl.convert_layout(f(gl.convert_layout(a, inner) + b), outer)"
