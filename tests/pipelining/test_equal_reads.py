"""Tiles that products read alike from shared memory: read once, where that is so."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.equal_reads import with_equal_reads

HEADER = "@gluon.jit\ndef kernel(x, y, n, K: gl.constexpr):\n"
MADE = "b_smem = gl.allocate_shared_memory(x.dtype, [16, 16], shared, x)\n"


def once(body: str) -> str:
    text = with_equal_reads(HEADER + textwrap.indent(textwrap.dedent(body), "    "), ["kernel"])
    return textwrap.dedent(text.removeprefix(HEADER))


@pytest.mark.parametrize(
    "body",
    [
        MADE + "x = mfma(b_smem.load(lhs_layout), y, b_smem.load(rhs_layout))\n",
        MADE + "x = mfma(b_smem.load(lhs_layout), y, x)\nb_smem.store(y)\nz = mfma(b_smem.load(lhs_layout), y, x)\n",
        MADE + "if n > 1:\n    x = f(b_smem.load(lhs_layout))\nelse:\n    x = g(b_smem.load(lhs_layout))\n",
        MADE + "if n > 1:\n    x = f(b_smem.load(lhs_layout))\nz = g(b_smem.load(lhs_layout))\n",
        MADE + "x = f(b_smem.load(lhs_layout))\n" + MADE + "z = f(b_smem.load(lhs_layout))\n",
        MADE + "l = 1\nx = f(b_smem.load(l))\nl = 2\nz = f(b_smem.load(l))\n",
        MADE + "h(b_smem)\nx = f(b_smem.load(lhs_layout))\nz = f(b_smem.load(lhs_layout))\n",
        "b_smem = gl.allocate_shared_memory(x.dtype, [16, 16], shared)\n"
        "x = f(b_smem.load(lhs_layout))\nz = f(b_smem.load(lhs_layout))\n",
    ],
    ids=["two layouts", "written", "two arms", "an arm", "made again", "another layout", "passed", "made empty"],
)
def test_what_may_not_be_the_same_is_read_again(body: str) -> None:
    assert once(body) == body


def test_products_read_a_tile_once() -> None:
    made = once(
        MADE
        + """\
x = mfma(b_smem.load(lhs_layout), y, x)
for i in range(n):
    x = mfma(b_smem.load(lhs_layout), y, x)
z = mfma(y, b_smem.load(rhs_layout), mfma(b_smem.load(lhs_layout), b_smem.load(rhs_layout), x))
"""
    )
    assert made == (
        MADE
        + """\
b_lhs = b_smem.load(lhs_layout)
x = mfma(b_lhs, y, x)
for i in range(n):
    x = mfma(b_lhs, y, x)
b_rhs = b_smem.load(rhs_layout)
z = mfma(y, b_rhs, mfma(b_lhs, b_rhs, x))
"""
    )


@pytest.mark.parametrize(
    "first", ["x = mfma(b_smem.load(lhs_layout), y, x)\n", "b = b_smem.load(lhs_layout)\nx = f(b)\n"]
)
def test_what_was_read_under_a_name_has_one(first: str) -> None:
    made = once(MADE + first + "b_lhs = b_smem.load(lhs_layout)\nz = mfma(b_lhs, y, x)\n")
    name = "b" if first.startswith("b") else "b_lhs"
    product = "x = f(b)\n" if name == "b" else "x = mfma(b_lhs, y, x)\n"
    assert made == MADE + f"{name} = b_smem.load(lhs_layout)\n{product}z = mfma({name}, y, x)\n"
