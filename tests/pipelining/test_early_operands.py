"""Operands of products are in shared memory where their value is converted first; others stay where they are."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.early_operands import with_early_operands

HEAD = "def kernel(h, p, x, n, shared, layout, w_buf, WIDE: gl.constexpr, LAST: gl.constexpr):\n"
STORE = "gl.store(p, gl.convert_layout(h.to(p.dtype.element_ty), layout))\n"
OPERAND = "h_operand = h.to({0}.dtype)\nh_smem = gl.allocate_shared_memory(h_operand.dtype, [n], shared, h_operand)\n"
READ, PRODUCT = "w = w_buf.index(n)\n", "x = warpgroup_mma(w, h_smem, x)\n"
LATE = READ + OPERAND.format("w") + PRODUCT


def indented(text: str) -> str:
    """Some lines in a block."""
    return textwrap.indent(text, "    ")


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    return textwrap.dedent(with_early_operands(HEAD + indented(body), {"kernel"}).removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"gl.store(p, h)\n{LATE}", id="not converted"),
        pytest.param(f"{STORE}h += 1\n{LATE}", id="another value"),
        pytest.param(f"{STORE}w = gl.load(p)\n{OPERAND.format('w')}{PRODUCT}", id="a type that is not known yet"),
        pytest.param(f"if n:\n{indented(STORE)}{LATE}", id="a branch"),
        pytest.param(f"if WIDE:\n{indented(STORE)}{LATE}", id="a branch of the compilation"),
        pytest.param(f"{STORE}if n:\n{indented(LATE)}", id="into a branch"),
        pytest.param(f"{STORE}for i in range(n):\n{indented(LATE)}", id="into a loop"),
        pytest.param(f"{STORE}x = warpgroup_mma(w, v, x, is_async=True)\n{LATE}", id="a product that runs on"),
        pytest.param(f"{STORE}x = warpgroup_mma_wait(0, (x, ))\n{LATE}", id="one that did"),
    ],
)
def test_an_operand_stays(body: str) -> None:
    assert moved(body) == body


def test_it_goes_to_memory_beside_the_first_conversion() -> None:
    assert moved(STORE + STORE + LATE) == OPERAND.format("w_buf") + STORE + STORE + READ + PRODUCT


def test_what_is_not_cast_goes_there_too() -> None:
    fill = "h_smem = gl.allocate_shared_memory(h.dtype, [n], shared, h)\n"
    assert moved(f"h = h + x\n{STORE}{READ}{fill}{PRODUCT}") == f"h = h + x\n{fill}{STORE}{READ}{PRODUCT}"
    other = STORE.replace("h.to", "x.to")
    assert moved(f"h = h * x\n{other}{READ}{fill}{PRODUCT}") == f"h = h * x\n{fill}{other}{READ}{PRODUCT}"
    row = "x = x * gl.convert_layout(n, layout)\n"
    for stays in (f"{STORE}n = gl.load(p)\n{fill}{PRODUCT}", f"{row}{fill}{PRODUCT}"):
        assert moved(stays) == stays


def test_a_type_that_is_known_before_is_said_as_it_was() -> None:
    assert moved(f"{STORE}{OPERAND.format('p')}{PRODUCT}") == f"{OPERAND.format('p')}{STORE}{PRODUCT}"


def test_it_keeps_the_branches_of_the_compilation_that_the_conversion_is_not_in() -> None:
    late = f"if WIDE:\n    if LAST:\n        x = 1\n    else:\n{indented(indented(LATE))}"
    early = f"if WIDE:\n    if not LAST:\n{indented(indented(OPERAND.format('w_buf')))}{indented(STORE)}"
    left = f"if WIDE:\n    if LAST:\n        x = 1\n    else:\n{indented(indented(READ + PRODUCT))}"
    assert moved(f"if WIDE:\n{indented(STORE)}{late}") == early + left
