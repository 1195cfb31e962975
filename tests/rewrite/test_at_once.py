"""Operands of AMD's products that leave shared memory at once: first what must stay as it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.at_once import read_at_once

X = "x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)\n"
W = "w_smem = gl.allocate_shared_memory(w.dtype, [K, N], w_shared, w)\n"
PRODUCT = "acc = gl.amd.cdna3.mfma(x_smem.load(lhs), w_smem.load(rhs), acc)\n"


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(x, w, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    return textwrap.dedent(cst.Module([read_at_once(function)]).code.removeprefix("def kernel(x, w, acc):\n"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{X}{W}{PRODUCT}".replace("gl.amd.cdna3.mfma", "mma_v2"), id="another's instruction"),
        pytest.param(X + PRODUCT.replace("w_smem.load(rhs)", "gl.convert_layout(w, rhs)"), id="alone in memory"),
        pytest.param(f"{X}{W}{PRODUCT}{PRODUCT.replace('(lhs)', '(other)')}", id="read in two layouts"),
        pytest.param(f"{X}{W}{PRODUCT}{PRODUCT}y = x_smem.index(0)\n", id="read in part, too"),
        pytest.param(f"{X}{W}{PRODUCT}{X}{W}{PRODUCT}", id="made twice"),
        pytest.param(f"{X}{W}for k in range(n):\n    {PRODUCT}", id="read in a loop"),
    ],
)
def test_operands_that_wait(body: str) -> None:
    assert written(body) == body


def test_the_first_makes_room_for_the_second() -> None:
    first = f"{X}x_lhs = x_smem.load(lhs)\n"
    assert written(f"{X}{W}{PRODUCT}") == f"{first}{W}{PRODUCT.replace('x_smem.load(lhs)', 'x_lhs')}"


def test_what_is_read_alike_again_makes_room_too() -> None:
    others = "v_smem = gl.allocate_shared_memory(v.dtype, [K, N], v_shared, v)\n" + PRODUCT.replace("w_smem", "v_smem")
    made = f"{X}x_lhs = x_smem.load(lhs)\n{W}{PRODUCT.replace('x_smem.load(lhs)', 'x_lhs')}{others}"
    assert written(f"{X}{W}{PRODUCT}{others}") == made


CONVERTED = PRODUCT.replace("x_smem.load(lhs)", "gl.convert_layout(x.T, lhs).to(w.dtype)")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{W}y = w * 2\n{CONVERTED}", id="not put just above"),
        pytest.param(W + CONVERTED.replace("x.T", "made(x)"), id="of what a helper makes"),
        pytest.param(W + CONVERTED.replace("x.T", "w_smem.load(l)"), id="of the same memory"),
        pytest.param(W + CONVERTED.replace("gl.convert_layout(x.T, lhs)", "x"), id="not converted"),
    ],
)
def test_operands_that_are_not_converted_first(body: str) -> None:
    assert written(body) == body


def test_what_is_converted_is_so_before_the_other_is_put_into_memory() -> None:
    made = written(f"# both\n{W}{CONVERTED}")
    assert (
        made
        == f"# both\nx_lhs = gl.convert_layout(x.T, lhs).to(w.dtype)\n{W}{PRODUCT.replace('x_smem.load(lhs)', 'x_lhs')}"
    )


@pytest.mark.parametrize("turned", ["w.T", "tl.trans(w)", "w.permute((1, 0)).to(x.dtype)"])
def test_a_second_operand_is_converted_before_the_first_is_put_into_memory_if_it_is_turned(turned: str) -> None:
    product = PRODUCT.replace("w_smem.load(rhs)", f"gl.convert_layout({turned}, rhs)")
    assert written(X + product) == (
        f"w_rhs = gl.convert_layout({turned}, rhs)\n{X}{PRODUCT.replace('w_smem.load(rhs)', 'w_rhs')}"
    )
    plain = PRODUCT.replace("w_smem.load(rhs)", "gl.convert_layout(w, rhs)")
    assert written(X + plain) == X + plain


def test_what_a_product_is_added_to_is_converted_before_its_operands() -> None:
    product = "out = gl.amd.cdna3.mfma({}, w_smem.load(rhs), {})\n"
    sum_first = "acc_sum = gl.convert_layout(acc, sum_layout)\n"
    converted = "gl.convert_layout(x, lhs)"
    assert (
        written(W + product.format(converted, "gl.convert_layout(acc, sum_layout)"))
        == f"{sum_first}x_lhs = {converted}\n{W}{product.format('x_lhs', 'acc_sum')}"
    )
    assert written(W + product.format("x", "gl.convert_layout(acc, sum_layout)")) == (
        f"{sum_first}{W}{product.format('x', 'acc_sum')}"
    )


def test_what_is_read_again_later_does_not_wait_beside_a_conversion() -> None:
    product = PRODUCT.replace("w_smem.load(rhs)", "gl.convert_layout(w, rhs)")
    first, second = product.replace("gl.convert_layout(w, rhs)", "w_rhs"), "acc *= x_smem.load(l)\n"
    assert written(f"{X}{product}{second}") == f"w_rhs = gl.convert_layout(w, rhs)\n{X}{first}{second}"


def test_products_by_ordinary_instructions_are_alike() -> None:
    product = PRODUCT.replace("gl.amd.cdna3.mfma", "gl.dot_fma")
    assert (
        written(f"{X}{W}{product}") == f"{X}x_lhs = x_smem.load(lhs)\n{W}{product.replace('x_smem.load(lhs)', 'x_lhs')}"
    )


def test_what_one_product_reads_is_gone_before_what_stays_for_another_is_put() -> None:
    again = "acc = gl.amd.cdna3.mfma(w_smem.load(lhs), y, acc)\n"
    first = f"{X}x_lhs = x_smem.load(lhs)\n{W}"
    assert written(f"{W}{X}{PRODUCT}{again}") == f"{first}{PRODUCT.replace('x_smem.load(lhs)', 'x_lhs')}{again}"


def test_a_product_in_another_and_a_name_that_is_taken() -> None:
    body = f"{W}{X}w_rhs = 1\nacc = wmma(a, w_smem.load(rhs), wmma(x_smem.load(lhs), b, acc))\n"
    made = written(body)
    assert made.startswith(f"{W}w_rhs_2 = w_smem.load(rhs)\n{X}w_rhs = 1\n")
    assert made.endswith("acc = wmma(a, w_rhs_2, wmma(x_smem.load(lhs), b, acc))\n")
