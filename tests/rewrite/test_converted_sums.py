"""Sums that are converted above the reads of a product's operands: first what must stay as it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.converted_sums import converted_first

SUM = "out * gl.convert_layout(alpha, rows)[:, None]"
PRODUCT = f"out = gl.dot_fma(p_smem.load(lhs), v_smem.load(rhs), {SUM})\n"


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(p, v, out, alpha):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    return textwrap.dedent(cst.Module([converted_first(function)]).code.removeprefix("def kernel(p, v, out, alpha):\n"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(PRODUCT.replace(SUM, "out * alpha[:, None]"), id="nothing converted"),
        pytest.param(PRODUCT.replace("p_smem.load(lhs)", "p").replace("v_smem.load(rhs)", "v"), id="operands there"),
        pytest.param(PRODUCT.replace("gl.dot_fma", "warpgroup_mma"), id="operands in shared memory"),
        pytest.param(PRODUCT.replace("out =", "return", 1).replace("return", "out +=", 1), id="another statement"),
        pytest.param("x = gl.convert_layout(gl.dot_fma(p.load(lhs), v, out), rows)\n", id="the product is converted"),
    ],
)
def test_products_that_stay_as_they_are(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize("product", ["gl.dot_fma", "mma_v2"])
def test_the_sum_is_made_before_the_operands_are_read(product: str) -> None:
    text = PRODUCT.replace("gl.dot_fma", product)
    summed, rest = f"out_sum = {SUM}\n", text.replace(SUM, "out_sum")
    assert written(text) == summed + rest
    assert written(f"# why\n{text}") == f"# why\n{summed}{rest}"
    one = text.replace("v_smem.load(rhs)", "v")
    assert written(one) == summed + one.replace(SUM, "out_sum")


def test_a_name_that_is_taken() -> None:
    assert written(f"out_sum = p\n{PRODUCT}").startswith(f"out_sum = p\nout_sum_2 = {SUM}\n")


SECOND = "gl.convert_layout(tl.trans(w), rhs)"
ORDINARY = f"y = gl.dot_fma(x_smem.load(lhs), {SECOND}, zeros) + bias\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(ORDINARY.replace("x_smem.load(lhs)", "x"), id="the first is there"),
        pytest.param(ORDINARY.replace("gl.dot_fma", "mma_v2"), id="of tensor cores"),
        pytest.param(ORDINARY.replace("tl.trans(w)", "made(w)"), id="made by a helper"),
        pytest.param(ORDINARY.replace("+ bias", "if wide else bias"), id="of one side"),
    ],
)
def test_second_operands_that_stay_as_they_are(body: str) -> None:
    assert written(body) == body


def test_a_second_operand_is_converted_before_the_first_is_read() -> None:
    rest = ORDINARY.replace(SECOND, "w_rhs")
    assert written(ORDINARY) == f"w_rhs = {SECOND}\n{rest}"
    assert written(f"# why\n{ORDINARY}") == f"# why\nw_rhs = {SECOND}\n{rest}"


def test_a_sum_stands_above_a_second_operand() -> None:
    text = ORDINARY.replace(" + bias", "").replace("zeros", "gl.convert_layout(z, both)")
    made = f"y_sum = gl.convert_layout(z, both)\nw_rhs = {SECOND}\ny = gl.dot_fma(x_smem.load(lhs), w_rhs, y_sum)\n"
    assert written(text) == made
