"""Operands of AMD's products that are put into memory right above them: first what must stay where it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.late_bounces import put_late

X = "x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)\n"
W = "w_smem = gl.allocate_shared_memory(w.dtype, [K, N], w_shared, w)\n"
PRODUCT = "acc = gl.dot_fma(x_smem.load(lhs), w_smem.load(rhs), acc)\n"
CAST = PRODUCT.replace("w_smem.load(rhs)", "w_smem.load(rhs).to(x.dtype)")


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(x, w, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    return textwrap.dedent(cst.Module([put_late(function)]).code.removeprefix("def kernel(x, w, acc):\n"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{X}y = load(y)\n{W}{PRODUCT}".replace("gl.dot_fma", "mma_v2"), id="another's instruction"),
        pytest.param(f"{X}{W}{PRODUCT}", id="there already"),
        pytest.param(f"{X}x = x * 2\n{W}{PRODUCT}", id="of a name that changes"),
        pytest.param(f"{X}for k in range(n):\n    x = x * 2\n{W}{PRODUCT}", id="of a name that changes in a loop"),
        pytest.param(f"{X}y = load(y)\n{W}for k in range(n):\n    {PRODUCT}", id="read in a loop"),
        pytest.param(f"{X}y = x_smem.load(other)\n{W}{PRODUCT}", id="read by something else first"),
        pytest.param(f"{X}{W}y = load(y)\n", id="not read"),
    ],
)
def test_operands_that_stay_where_they_are_put(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize("product", ["gl.dot_fma", "gl.amd.cdna3.mfma", "gl.amd.gfx1250.wmma"])
def test_operands_are_put_above_the_product_in_its_order(product: str) -> None:
    last = PRODUCT.replace("gl.dot_fma", product)
    assert written(f"{W}y = load(y)\n{X}z = load(z)\n{last}") == f"y = load(y)\nz = load(z)\n{X}{W}{last}"


def test_what_two_products_read_is_put_above_the_first() -> None:
    second = "other = gl.dot_fma(x_smem.load(lhs_2), v, other)\n"
    assert written(f"{X}y = load(y)\n{W}{PRODUCT}{second}") == f"y = load(y)\n{X}{W}{PRODUCT}{second}"


def test_what_is_cast_goes_first() -> None:
    assert written(f"{X}{W}{CAST}") == f"{W}{X}{CAST}"


def test_comments_stay_with_what_they_stand_above() -> None:
    made = written(f"# of x\n{X}# of y\ny = load(y)\n{W}# of the product\n{PRODUCT}")
    assert made == f"# of x\n# of y\ny = load(y)\n# of the product\n{X}{W}{PRODUCT}"
    assert written(f"# of x\n{X}{W}{CAST}") == f"# of x\n{W}{X}{CAST}"
