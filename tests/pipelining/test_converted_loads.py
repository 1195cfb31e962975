"""What loops load and convert: first what stays as it is, then what is converted as it comes."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.converted_loads import with_converted_loads

HEAD = """def kernel(p, mask, q_buf, n):
    q_layout: gl.constexpr = coalesced([16, 16], [1, 0], 32, gl.num_warps())
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
"""
SLICE = "gl.SliceLayout(0, q_layout)"
LOAD = "s = gl.load(p, mask=mask)"
READ = "q = q_buf.index(0).load(q_layout)"
USE = f"b = q * gl.convert_layout(s, {SLICE})[None, :]"


PRODUCT = "acc = mma_v2(a, b, acc)\n"


def converted(body: str, loop: str = "for k in range(n):", product: str = PRODUCT) -> str:
    """The text of a loop's body, which ends with a product, after the rule."""
    head = f"{HEAD}    {loop}\n"
    made = with_converted_loads(head + textwrap.indent(body + product, "        "), {"kernel"})
    return textwrap.dedent(made.removeprefix(head)).removesuffix(product)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{LOAD}\n{USE}\n", id="nothing is read between"),
        pytest.param(f"{LOAD}\n{READ}\n{USE.replace('q_layout', 'mma_layout')}\n", id="the layout of a product"),
        pytest.param(f"{LOAD}\n{READ}\n{USE.replace('q_layout', 'given')}\n", id="a layout that is given"),
        pytest.param(f"{LOAD}\n{READ}\n{USE}\nc = s + 1\n", id="read as it is, too"),
        pytest.param(f"{LOAD}\n{READ}\n{USE}\nc = gl.convert_layout(s, q_layout)\n", id="two layouts"),
        pytest.param(f"{LOAD}\n{READ}\nif n:\n    {USE}\n", id="converted in a branch"),
        pytest.param(f"{LOAD}\n{READ}\ns = s + 1\n{USE}\n", id="changed between"),
        pytest.param(f"s = gl.load(p, mask=mask) + 1\n{READ}\n{USE}\n", id="computed"),
        pytest.param(f"s = p_buf.index(0).load(q_layout)\n{READ}\n{USE}\n", id="a slot"),
    ],
)
def test_what_stays(body: str) -> None:
    assert converted(body) == body


@pytest.mark.parametrize(
    "product",
    [
        pytest.param("", id="no product"),
        pytest.param("acc = warpgroup_mma(a, b, acc)\n", id="wgmma"),
        pytest.param("tcgen05_mma(a, b, acc)\n", id="tcgen05"),
        pytest.param(f"{PRODUCT}acc = warpgroup_mma(a, b, acc)\n", id="two instructions"),
    ],
)
def test_other_products(product: str) -> None:
    body = f"{LOAD}\n{READ}\n{USE}\n"
    assert converted(body, product=product) == body


def test_outside_of_loops() -> None:
    body = f"{LOAD}\n{READ}\n{USE}\n"
    assert converted(body, "if n:") == body


@pytest.mark.parametrize("loop", ["for k in range(n):", "while n:"])
def test_a_row_is_converted_as_it_comes(loop: str) -> None:
    body = f"{LOAD}\n{READ}\n{USE}\n"
    expected = f"s = gl.convert_layout(gl.load(p, mask=mask), {SLICE})\n{READ}\nb = q * s[None, :]\n"
    assert converted(body, loop) == expected
    assert converted(expected, loop) == expected


def test_one_conversion_for_all_that_read_it() -> None:
    assert converted(f"{LOAD}\n{READ}\n{USE}\nc = gl.convert_layout(s, {SLICE}) + 1\n") == (
        f"s = gl.convert_layout(gl.load(p, mask=mask), {SLICE})\n{READ}\nb = q * s[None, :]\nc = s + 1\n"
    )
