"""On AMD what is converted alike on every turn is converted before the loop: first what must stay there."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.invariant_conversions import without_invariant_conversions

HEAD = """from triton.experimental import gluon

@gluon.jit
def doubled(x):
    return x + x

@gluon.jit
def read(ptr):
    return gl.load(ptr)

def kernel(k_ptr, k, q, x, n, layout: gl.constexpr):
"""
CONVERTED = "k_rhs = gl.convert_layout(tl.trans(k), layout)"
PRODUCT = "x = mfma(q, k_rhs, x)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    made = without_invariant_conversions(HEAD + body, {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD)).strip()


def loop(*lines: str, head: str = "for i in range(n):") -> str:
    return "\n    ".join([head, *lines])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{CONVERTED}\n{PRODUCT}", id="no loop"),
        pytest.param(loop(CONVERTED, PRODUCT, head="for i in gl.static_range(n):"), id="a loop that is written out"),
        pytest.param(loop(CONVERTED, PRODUCT, "k = doubled(k)"), id="of what the loop changes"),
        pytest.param(loop("if n > 3:", f"    {CONVERTED}", "    " + PRODUCT), id="under a condition"),
        pytest.param(loop(CONVERTED.replace("tl.trans(k)", "k // n"), PRODUCT), id="a division"),
        pytest.param(loop(CONVERTED.replace("tl.trans(k)", "gl.load(k_ptr)"), PRODUCT), id="what is loaded"),
        pytest.param(loop(CONVERTED.replace("tl.trans(k)", "read(k_ptr)"), PRODUCT), id="what a helper loads"),
        pytest.param(loop(CONVERTED.replace("tl.trans(k)", "other(k)"), PRODUCT), id="of a function unknown"),
        pytest.param(loop(CONVERTED.replace("tl.trans(k)", "k_smem.load(layout)"), PRODUCT), id="of memory"),
    ],
)
def test_conversions_that_stay(body: str) -> None:
    assert moved(body) == body


def test_an_operand_is_converted_before_the_loop_and_its_last_iterations() -> None:
    last = loop(CONVERTED, PRODUCT, head="for s in gl.static_range(2):")
    body = f"# all\n{loop(CONVERTED, PRODUCT)}\n{last}\ny = k_rhs"
    made = f"{CONVERTED}\n# all\n{loop(PRODUCT)}\n{loop(PRODUCT, head='for s in gl.static_range(2):')}\ny = k_rhs"
    assert moved(body) == made


def test_what_has_no_name_gets_one() -> None:
    call = "gl.convert_layout(doubled(k).to(q.dtype), layout)"
    body = loop(f"x = mfma(q, {call}, x)", head="while n > 0:")
    assert moved(body) == f"k_rhs = {call}\n{loop('x = mfma(q, k_rhs, x)', head='while n > 0:')}"


def test_it_leaves_as_many_loops_as_can_be() -> None:
    body = loop("q = doubled(q)", *loop(CONVERTED, PRODUCT).splitlines())
    made = loop("q = doubled(q)", *loop(PRODUCT).splitlines())
    assert moved(body) == f"{CONVERTED}\n{made}"


def test_a_name_that_is_something_else_elsewhere_keeps_its_line() -> None:
    made = moved(f"k_rhs = q\n{loop(CONVERTED, PRODUCT)}")
    assert (
        made
        == f"k_rhs = q\nk_converted = gl.convert_layout(tl.trans(k), layout)\n{loop('k_rhs = k_converted', PRODUCT)}"
    )


def test_what_has_changed_behind_is_converted_there() -> None:
    behind = f"k = doubled(k)\n{loop(CONVERTED, PRODUCT, head='for s in gl.static_range(2):')}"
    assert moved(f"{loop(CONVERTED, PRODUCT)}\n{behind}") == f"{CONVERTED}\n{loop(PRODUCT)}\n{behind}"


SCALED = "k = doubled(q)"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(loop("k = gl.load(k_ptr)", CONVERTED, PRODUCT), id="what the loop loads"),
        pytest.param(loop("k = doubled(x)", CONVERTED, PRODUCT), id="of what the loop changes"),
        pytest.param(loop(SCALED, CONVERTED, PRODUCT, "k = doubled(x)"), id="what is bound again"),
        pytest.param(loop("x = x + k", SCALED, CONVERTED, PRODUCT), id="what another turn reads"),
        pytest.param(f"{loop(SCALED, CONVERTED, PRODUCT)}\ny = k", id="what is read behind the loop"),
        pytest.param(loop("if n > 3:", f"    {SCALED}", CONVERTED, PRODUCT), id="made under a condition"),
    ],
)
def test_what_the_loop_computes_stays_with_its_conversion(body: str) -> None:
    assert moved(body) == body


def test_what_the_loop_computes_alike_moves_with_its_conversion() -> None:
    assert moved(loop("y = q", SCALED, CONVERTED, PRODUCT)) == f"{SCALED}\n{CONVERTED}\n{loop('y = q', PRODUCT)}"
