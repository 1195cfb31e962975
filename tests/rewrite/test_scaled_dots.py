"""Operands of scaled products: found in their call, and put into 16 bits."""

from __future__ import annotations

import libcst as cst
import numpy as np
import pytest

from tt2gl.plan import Upcast
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.scaled_dots import UPCAST_SOURCES, scaled_operand, upcasted, with_scales
from tt2gl.targets import TARGETS

IN_ORDER = 'tl.dot_scaled(a, a_scale, F, b, b_scale, "e2m1", acc)'
BY_KEYWORD = 'tl.dot_scaled(rhs=b, rhs_scale=b_scale, rhs_format="e2m1", lhs=a, lhs_scale=a_scale, lhs_format=F)'


def call(text: str) -> cst.Call:
    made = cst.parse_expression(text)
    assert isinstance(made, cst.Call)
    return made


def code(node: cst.BaseExpression | None) -> str:
    assert node is not None
    return cst.Module([]).code_for_node(node).replace(MARK, "")


@pytest.mark.parametrize("text", [IN_ORDER, BY_KEYWORD])
def test_operands(text: str) -> None:
    found = [code(scaled_operand(call(text), side, part)) for side in (0, 1) for part in ("", "_scale", "_format")]
    assert found == ["a", "a_scale", "F", "b", "b_scale", '"e2m1"']


@pytest.mark.parametrize("text", [IN_ORDER, BY_KEYWORD])
def test_each_side_knows_the_format_of_the_other(text: str) -> None:
    made = [code(upcasted(call(text), side, Upcast((1, 0, 1, 0), 1 - side, "True"))) for side in (0, 1)]
    assert made == ['upcast(a, a_scale, F, "e2m1", 1, True)', 'upcast(b, b_scale, "e2m1", F, 0, True)']


def test_an_operand_without_scales() -> None:
    made = upcasted(call('tl.dot_scaled(a, s, "fp16", b, rhs_format="e5m2")'), 1, Upcast((1, 0, 1, 0), 0, "False"))
    assert code(made) == 'upcast(b, None, "e5m2", "fp16", 0, False)'


@pytest.mark.parametrize("text", [IN_ORDER, BY_KEYWORD])
def test_a_marker_gets_scales_and_formats(text: str) -> None:
    made = code(with_scales(call("marker(a, b)"), call(text)))
    assert made == 'marker(a, b, a_scale = a_scale, b_scale = b_scale, a_type = F, b_type = "e2m1")'


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_scaled_4_bit_floats_are_products_of_float32_where_those_of_bfloat16_would_be(name: str) -> None:
    text = UPCAST_SOURCES[TARGETS[name].scaling]
    assert ("float32 if form" in text) == (name in ("gfx942", "gfx950", "gfx1250"))
    assert (">> 16" in text) == (name == "gfx942")


def test_what_is_cut_off_of_a_scaled_4_bit_float_is_zeros() -> None:
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    powers = (np.arange(255, dtype=np.uint32) << 23).view(np.float32)
    with np.errstate(over="ignore"):
        products = np.outer(values, powers)
    assert not np.any(products.view(np.uint32) & 0xFFFF)
