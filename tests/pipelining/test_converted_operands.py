"""Conversions above multiply-adds: first those that stay where they are, then those that move."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.converted_operands import with_converted_operands

HEAD = "def kernel(x, w_smem, zeros, flag, mma_layout: gl.constexpr):\n"
FILL = "x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)"
PRODUCT = "h = gl.dot_fma(x_smem.load(lhs_layout), w_smem.load(rhs_layout), zeros)"
CALL = "gl.convert_layout(x, mma_layout)"
SUM = f"loss = gl.sum(h * {CALL}, 1)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = with_converted_operands(HEAD + textwrap.indent(body, "    "), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        f"{FILL}\n{SUM}\n{PRODUCT}\n",
        f"{FILL}\nh = gl.dot_fma(y_smem.load(lhs_layout), w_smem.load(rhs_layout), zeros)\n{SUM}\n",
        f"{FILL}\nh = mma_v2(x_smem.load(lhs_layout), w_smem.load(rhs_layout), zeros)\n{SUM}\n",
        f"{FILL}\n{PRODUCT}\nx = x + 1\n{SUM}\n",
        f"{FILL}\n{PRODUCT}\nmma_layout = other()\n{SUM}\n",
        f"{FILL}\n{PRODUCT}\nif flag:\n    {SUM}\n",
        f"{FILL}\n{PRODUCT}\nloss = gl.sum(h * ({CALL} if flag else y), 1)\n",
        f"{FILL}\n{PRODUCT}\nloss = gl.sum(h * {CALL} * gl.convert_layout(x, other_layout), 1)\n",
        f"if flag:\n    {FILL}\n{PRODUCT}\n{SUM}\n",
    ],
    ids=[
        "no product between", "a product of others", "by another instruction", "changed between", "another layout",
        "a branch", "a choice", "two layouts", "put there in a branch",
    ],
)  # fmt: skip
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_an_operand_is_converted_before_the_product() -> None:
    early = f"x_mma = {CALL}"
    assert moved(f"{FILL}\n# dense\n{PRODUCT}\n{SUM}\n") == (
        f"{FILL}\n{early}\n# dense\n{PRODUCT}\nloss = gl.sum(h * x_mma, 1)\n"
    )
    assert moved(f"for k in range(4):\n    {FILL}\n    {PRODUCT}\n    loss += {CALL} * h * {CALL}\n") == (
        f"for k in range(4):\n    {FILL}\n    {early}\n    {PRODUCT}\n    loss += x_mma * h * x_mma\n"
    )
    product = PRODUCT.removeprefix("h = ")
    assert moved(f"{FILL}\nloss = gl.sum({product} * {CALL}, 1)\n") == (
        f"{FILL}\n{early}\nloss = gl.sum({product} * x_mma, 1)\n"
    )


def test_the_rule_is_stable() -> None:
    once = moved(f"{FILL}\n{PRODUCT}\n{SUM}\n")
    assert moved(once) == once
