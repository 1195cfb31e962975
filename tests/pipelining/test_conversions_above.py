"""On AMD what a product's statement converts is converted before its operands are put into shared memory."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.conversions_above import with_conversions_above

HEAD = "def kernel(a, b, c, u, y, shared, lhs_layout, rhs_layout, y_layout):\n"
A = "a_smem = gl.allocate_shared_memory(a.dtype, [32, 32], shared, a)\n"
B = "b_smem = gl.allocate_shared_memory(b.dtype, [32, 32], shared, b)\n"
CONVERTED = "gl.convert_layout(u, y_layout)"
PRODUCT = f"y = {CONVERTED} - gl.amd.cdna3.mfma(a_smem.load(lhs_layout), b_smem.load(rhs_layout), y)\n"


def moved(body: str) -> str:
    made = with_conversions_above(HEAD + textwrap.indent(body, "    "), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(A + B + "c = u\n" + PRODUCT, id="what is put into memory earlier"),
        pytest.param(A + B + PRODUCT.replace("convert_layout(u", "convert_layout(gl.exp(u)"), id="computed"),
        pytest.param(A + B + PRODUCT.replace("(u, y_layout)", "(a_smem, y_layout)"), id="made between"),
        pytest.param(A + B + PRODUCT.replace("mfma", "mma_v2"), id="NVIDIA's"),
        pytest.param(A + B + PRODUCT.replace("mfma", "mfma_scaled"), id="block-scaled"),
        pytest.param(A + B + f"y = u if c else {PRODUCT.removeprefix('y = ')}", id="sometimes"),
        pytest.param(PRODUCT, id="nothing is put into memory"),
    ],
)
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_a_value_beside_the_product() -> None:
    above = f"u_y = {CONVERTED}\n"
    assert moved(A + B + PRODUCT) == above + A + B + PRODUCT.replace(CONVERTED, "u_y")
    assert moved("# both\n" + A + B + PRODUCT) == above + "# both\n" + A + B + PRODUCT.replace(CONVERTED, "u_y")


def test_an_operand_that_is_cast() -> None:
    operand = "gl.convert_layout(b.to(gl.float16), rhs_layout)"
    product = f"y += wmma_tf32(a_smem.load(lhs_layout), {operand}.to(gl.float32), {operand})\n"
    made = moved("for i in range(4):\n" + textwrap.indent(A + product, "    "))
    assert made == "for i in range(4):\n" + textwrap.indent(
        f"b_rhs = {operand}\n" + A + "y += wmma_tf32(a_smem.load(lhs_layout), b_rhs.to(gl.float32), b_rhs)\n", "    "
    )
