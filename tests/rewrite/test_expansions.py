"""Rule `expansions`: a value of lower rank gets its missing dimensions in the source."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.expansions import expanded

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


def test_the_other_operand_is_left_alone(body: Body) -> None:
    assert body("y = x * w", expansions={"w": (1, 1)}) == "y = x * w[None, :]"


@pytest.mark.parametrize(
    ("value", "missing", "rank", "expected"),
    [
        ("w", 1, 1, "w[None, :]"),
        ("w", 2, 1, "w[None, None, :]"),
        ("w", 1, 2, "w[None, :, :]"),
        ("f(w)", 1, 1, "f(w)[None, :]"),
        ("t.w", 1, 1, "t.w[None, :]"),
        pytest.param("a + b", 1, 1, "(a + b)[None, :]", id="parentheses where they are needed"),
        pytest.param("(a + b)", 1, 1, "(a + b)[None, :]", id="and not twice"),
        pytest.param("-w", 1, 1, "(-w)[None, :]", id="a sign"),
    ],
)
def test_dimensions_are_added_on_the_left(code: Code, value: str, missing: int, rank: int, expected: str) -> None:
    assert code(expanded(cst.parse_expression(value), missing, rank)) == expected


def test_after_a_conversion(body: Body) -> None:
    made = body("y = x * w", converts={"w": "gl.SliceLayout(0, layout)"}, expansions={"w": (1, 1)})
    assert made == "y = x * gl.convert_layout(w, gl.SliceLayout(0, layout))[None, :]"
