"""The order in which a product's operands are read: first what must stay as it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.bounces import settled
from tt2gl.rewrite.reads import turned_first

A = "a = _tt2gl__tt2gl_ring_a(a_desc, [0, k]).load(lhs)\n"
B = "b = _tt2gl__tt2gl_ring_b(b_desc, [0, k])\n"


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(x, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    code = cst.Module([turned_first(function)]).code
    return textwrap.dedent(code.removeprefix("def kernel(x, acc):\n"))


@pytest.mark.parametrize(
    "body",
    [
        f"{A}b = _tt2gl__tt2gl_ring_b(b_desc, [0, k]).load(rhs)\nacc = mma_v2(a, b, acc)\n",
        f"{A}{B}acc = mma_v2(a, b.permute((1, 0)).load(rhs), acc)\nseen = gl.sum(a)\n",
        f"{A}{B}acc = mma_v2(gl.convert_layout(x, lhs), b.permute((1, 0)).load(rhs), acc)\n",
        f"{A}{B}acc = warpgroup_mma(a, b.permute((1, 0)).load(rhs), acc)\n",
        f"a = gl.load(a_ptrs)\n{B}acc = mma_v2(a, b.permute((1, 0)).load(rhs), acc)\n",
        f"{A}{B}for each in range(2):\n    acc = mma_v2(a, b.permute((1, 0)).load(rhs), acc)\n",
    ],
)
def test_other_products_read_as_they_stand(body: str) -> None:
    assert written(body) == body


def test_what_is_turned_is_read_first() -> None:
    body = f"{A}{B}# the sum\nacc = mma_v2(a, b.permute((1, 0)).load(rhs), acc) * 2\n"
    made = (
        f"a = _tt2gl__tt2gl_ring_a(a_desc, [0, k])\n{B}# the sum\nb_rhs = b.permute((1, 0)).load(rhs)\n"
        "acc = mma_v2(a.load(lhs), b_rhs, acc) * 2\n"
    )
    assert written(body) == made


@pytest.mark.parametrize(
    "operands",
    [
        "gl.convert_layout(x, lhs), w_smem.load(rhs)",
        "x_smem.load(lhs), w_smem.load(rhs)",
        "x_smem.index(0).load(lhs), gl.convert_layout(w, rhs)",
    ],
)
def test_where_nothing_waits(operands: str) -> None:
    body = f"acc = mma_v2({operands}, acc)\n"
    assert written(body) == body


P = "_tt2gl__tt2gl_ring_{0}({0}_ptrs, mask=mask)"


@pytest.mark.parametrize(
    "body",
    [
        # In the order of their loads, as no tile comes by TMA.
        f"a = {P.format('a')}.load(lhs)\nb = {P.format('b')}\nacc = mma_v2(a, b.permute((1, 0)).load(rhs), acc)\n",
        f"a = {P.format('a')}.load(lhs)\nb = {P.format('b')}.load(rhs)\nacc = mma_v2(a, b, acc)\n",
        f"b = {P.format('b')}.load(rhs)\na = {P.format('a')}.load(lhs)\nacc = mma_v2(a, b, acc)\nseen = gl.sum(b)\n",
        f"b = {P.format('b')}.load(rhs)\nacc = mma_v2(a, b, acc)\n",
    ],
)
def test_which_tiles_are_read_where_they_are_loaded(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize(
    ("above", "first"), [(f"a = {P.format('a')}.load(lhs)\n", "a"), ("a_smem = smem(a)\n", "a_smem.load(lhs)")]
)
def test_the_second_operand_is_read_below_the_first(above: str, first: str) -> None:
    body = f"b = {P.format('b')}.load(rhs)\n{above}acc = mma_v2({first}, b, acc)\n"
    assert written(body) == f"b = {P.format('b')}\n{above}acc = mma_v2({first}, b.load(rhs), acc)\n"


def test_what_is_converted_goes_first() -> None:
    body = "# the sum\nacc = mma_v2(x_smem.load(lhs), gl.convert_layout(tl.trans(w), rhs), acc)\n"
    made = "# the sum\nw_rhs = gl.convert_layout(tl.trans(w), rhs)\nacc = mma_v2(x_smem.load(lhs), w_rhs, acc)\n"
    assert written(body) == made


def test_a_first_operand_that_is_turned_is_read_first() -> None:
    body = f"{B}{A}acc = mma_v2(b.permute((1, 0)).load(lhs), a, acc)\nb_lhs = 0\n"
    made = (
        f"{B}a = _tt2gl__tt2gl_ring_a(a_desc, [0, k])\nb_lhs_2 = b.permute((1, 0)).load(lhs)\n"
        "acc = mma_v2(b_lhs_2, a.load(lhs), acc)\nb_lhs = 0\n"
    )
    assert written(body) == made


def test_both_operands_of_a_product_are_converted_above_a_tile_that_is_read() -> None:
    tile = "y = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\n"
    body = f"w = helper(x)\n{tile}acc = mma_v2(gl.convert_layout(w, lhs), gl.convert_layout(w, rhs), acc)\n"
    function = cst.parse_statement("def kernel(x, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    assert "acc = mma_v2(w_lhs, w_rhs, acc)" in cst.Module([settled(function)]).code
