"""Operands of products under conditions are in shared memory where they are made; others stay in their branch."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.guarded_operands import with_guarded_operands

HEAD = "def kernel(q, h, acc, n, p, N: gl.constexpr, shared: gl.constexpr, lhs: gl.constexpr, WIDE: gl.constexpr):\n"
MADE = "gated = q * 2\n"
BETWEEN = "h = gl.load(p)\n"
FILL = "gated_smem = gl.allocate_shared_memory(gated.dtype, [N, N], shared, gated)\n"
PRODUCT = "acc = mma_v2(gated_smem.load(lhs), h, acc)\n"


def indented(text: str) -> str:
    """Some lines in a block."""
    return textwrap.indent(text, "    ")


def branch(body: str, test: str = "n > 0") -> str:
    """Some lines under a condition."""
    return f"if {test}:\n{indented(body)}"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    return textwrap.dedent(with_guarded_operands(HEAD + indented(body), {"kernel"}).removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(MADE + BETWEEN + FILL + PRODUCT, id="no branch"),
        pytest.param(MADE + BETWEEN + branch(FILL + PRODUCT, "WIDE"), id="a branch of the compilation"),
        pytest.param(BETWEEN + branch(MADE + FILL + PRODUCT), id="made there"),
        pytest.param(MADE + branch("gated += 1\n" + FILL + PRODUCT), id="made anew there"),
        pytest.param(branch(MADE) + branch(FILL + PRODUCT), id="made in a branch"),
        pytest.param(MADE + f"for i in range(n):\n{indented(branch(FILL + PRODUCT))}", id="in a loop below"),
        pytest.param(MADE + branch(FILL + PRODUCT) + f"else:\n{indented(FILL + PRODUCT)}", id="on both sides"),
        pytest.param(MADE + FILL + branch(FILL + PRODUCT), id="there already"),
        pytest.param(MADE + branch(FILL + "acc = gated_smem.load(lhs)\n"), id="no operand"),
        pytest.param(MADE + branch(FILL + PRODUCT + "gated_smem.store(q)\n"), id="written again"),
        pytest.param(f"{MADE}acc = warpgroup_mma(h, p, acc, is_async=True)\n{branch(FILL + PRODUCT)}", id="running on"),
        pytest.param(f"{MADE}M = n + 1\n{branch(FILL.replace('[N,', '[M,') + PRODUCT)}", id="an extent made later"),
        pytest.param(MADE + branch(FILL), id="alone"),
    ],
)
def test_an_operand_stays(body: str) -> None:
    assert moved(body) == body


def test_it_goes_to_memory_where_it_is_made() -> None:
    assert moved(MADE + BETWEEN + branch(FILL + PRODUCT)) == MADE + FILL + BETWEEN + branch(PRODUCT)


def test_so_it_does_in_a_loop_and_from_the_other_side() -> None:
    late = MADE + BETWEEN + branch("acc += 1\n") + f"else:\n{indented(FILL + PRODUCT)}"
    early = MADE + FILL + BETWEEN + branch("acc += 1\n") + f"else:\n{indented(PRODUCT)}"
    assert moved(f"for i in range(n):\n{indented(late)}") == f"for i in range(n):\n{indented(early)}"


def test_a_product_may_read_it_turned() -> None:
    product = PRODUCT.replace("gated_smem.load", "gated_smem.permute((1, 0)).load")
    assert moved(MADE + BETWEEN + branch(FILL + product)) == MADE + FILL + BETWEEN + branch(product)
