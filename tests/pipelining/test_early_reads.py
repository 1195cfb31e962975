"""On AMD the first operand of a product is read from shared memory before the second one is put there."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.early_reads import with_early_reads

HEAD = "def kernel(a, b, ring, x, y, shared, lhs, rhs):\n"
A = "a_smem = gl.allocate_shared_memory(a.dtype, [32, 32], shared, a)\n"
B = "b_smem = gl.allocate_shared_memory(b.dtype, [32, 32], shared, b)\n"
PRODUCT = "y = gl.amd.cdna3.mfma(a_smem.load(lhs), b_smem.load(rhs), y)\n"


def moved(body: str) -> str:
    made = with_early_reads(HEAD + textwrap.indent(body, "    "), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(A + PRODUCT.replace("b_smem.load(rhs)", "b"), id="the second is in registers"),
        pytest.param(B + A + PRODUCT.replace("a_smem.load(lhs)", "a"), id="the first is in registers"),
        pytest.param("a_smem = ring.index(0)\n" + B + PRODUCT, id="a slot of a ring"),
        pytest.param(B + A + PRODUCT, id="the second one's memory is above"),
        pytest.param(A + B + "lhs = rhs\n" + PRODUCT, id="another layout"),
        pytest.param(A + A + B + PRODUCT, id="memory that changes"),
        pytest.param(A + B + PRODUCT + "x = a_smem.load(lhs)\n", id="read again"),
        pytest.param(A + B + "a_smem.store(b)\n" + PRODUCT, id="memory that is stored to"),
        pytest.param(A + B + PRODUCT.replace("mfma", "mma_v2"), id="NVIDIA's"),
        pytest.param(A + B + "if x:\n    " + PRODUCT, id="a branch"),
    ],
)
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_the_first_is_read_above() -> None:
    other = "x = gl.amd.cdna3.mfma(a_smem.load(rhs), x, x)\n"
    assert moved(A + other + B + PRODUCT) == (
        A + other + "a_lhs = a_smem.load(lhs)\n" + B + PRODUCT.replace("a_smem.load(lhs)", "a_lhs")
    )


def test_products_of_helpers_in_loops_are_products() -> None:
    product = PRODUCT.replace("gl.amd.cdna3.mfma", "mfma_tf32").replace("y =", "y +=")
    made = moved("for i in range(4):\n" + textwrap.indent(A + B + product, "    "))
    assert "    a_lhs = a_smem.load(lhs)\n    b_smem" in made
    assert "y += mfma_tf32(a_lhs, b_smem.load(rhs), y)\n" in made
