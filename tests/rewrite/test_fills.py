"""Rule `fills`: a scalar given to a block of atomics becomes a tile."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.fills import filled

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


def test_an_atomic_elsewhere_is_left_alone(body: Body) -> None:
    made = body("tl.atomic_add(a, 1)\ntl.atomic_add(b, 1)", fills={"1": (("8", "gl.int32"), "layout")})
    assert made == "gl.atomic_add(a, gl.full([8], 1, gl.int32, layout))\ngl.atomic_add(b, 1)"


@pytest.mark.parametrize(
    ("value", "said", "expected"),
    [
        ("1", ("BLOCK", "gl.int32"), "gl.full([BLOCK], 1, gl.int32, layout)"),
        ("p + 1", ("BLOCK", "gl.pointer<fp32>"), "(p + 1 + gl.zeros([BLOCK], gl.int32, layout))"),
        ("(a + 1)", ("M", "N", "gl.int1"), "gl.full([M, N], a + 1, gl.int1, layout)"),
    ],
)
def test_a_tile_of_one_value(code: Code, value: str, said: tuple[str, ...], expected: str) -> None:
    assert code(filled(cst.parse_expression(value), said, "layout")) == expected


@pytest.mark.parametrize("value", ["kept(x, True)", "helpers.kept(x, True)", "tl.sum(x, 0, KEEP)"])
def test_other_calls_are_left_alone(code: Code, value: str) -> None:
    assert (
        code(filled(cst.parse_expression(value), ("8", "gl.int32"), "row")) == f"gl.full([8], {value}, gl.int32, row)"
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("tl.max(x, axis=0, keep_dims=True)", "tl.max(x, axis=0)"),
        ("tl.sum(x, keep_dims=True, axis=0)", "tl.sum(x, axis=0)"),
        ("x.sum(0, keep_dims=True)", "x.sum(0)"),
        ("tl.sum(x, None, True)", "tl.sum(x, None, False)"),
        ("tl.max(x, 0, False, True, True)", "tl.max(x, 0, False, False, False)"),
    ],
)
def test_a_reduction_to_a_scalar_keeps_no_dimension(code: Code, value: str, expected: str) -> None:
    made = filled(cst.parse_expression(value), ("1", "gl.float32"), "row")
    assert code(made) == f"gl.full([1], {expected}, gl.float32, row)"


def test_by_keyword(body: Body) -> None:
    made = body("tl.atomic_add(p, x, mask=ok)", fills={"ok": (("8", "gl.int1"), "layout")})
    assert made == "gl.atomic_add(p, x, mask=gl.full([8], ok, gl.int1, layout))"


@pytest.mark.parametrize(
    "at",
    ["tl.broadcast_to(x, (8,))", "tl.broadcast_to(x, 8)", "tl.broadcast_to(shape=[8], input=x)", "x.broadcast_to(8)"],
)
def test_a_scalar_made_a_tensor(at: str, body: Body) -> None:
    made = body(f"y = {at}", fills={at: (("8", "gl.float32"), "row")})
    assert made == "y = gl.full([8], x, gl.float32, row)"


def test_a_tile_of_one_value_that_meets_a_larger_one_is_expanded_after(body: Body) -> None:
    at = "t[:, None]"
    made = body(f"x * {at}", fills={at: (("1", "gl.float32"), "row")}, expansions={at: (1, 1)})
    assert made == "x * gl.full([1], t, gl.float32, row)[None, :]"
