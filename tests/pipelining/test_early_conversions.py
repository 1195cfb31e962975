"""Conversions above loads: first those that stay where they are, then those that move."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.early_conversions import with_early_conversions

HEAD = "def kernel(acc, p, mask, layout: gl.constexpr):\n"
LOAD = "r = gl.load(p, mask=mask)"
SUM = "acc = gl.convert_layout(acc, layout) + r.to(gl.float32)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = with_early_conversions(HEAD + textwrap.indent(body, "    "), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        f"{SUM}\n{LOAD}\n",
        f"r = r_buf.index(0).load(layout)\n{SUM}\n",
        f"{LOAD}\nacc += 1\n{SUM}\n",
        f"{LOAD}\nlayout = other()\n{SUM}\n",
        f"{LOAD}\nout = gl.convert_layout(acc, layout) + r\n",
        f"{LOAD}\nacc = acc * (gl.convert_layout(acc, layout) + r)\n",
        f"{LOAD}\nacc = gl.convert_layout(acc + r, layout)\n",
        f"{LOAD}\nacc = gl.convert_layout(acc, layout)\n",
        f"if flag:\n    {LOAD}\n{SUM}\n",
        f"{LOAD}\nfor k in range(4):\n    {SUM}\n",
        f"{LOAD}\nr_smem.store(r)\nacc = mma_v2(a, r_smem.load(operand), gl.convert_layout(acc, layout)) * scale\n",
    ],
    ids=[
        "loaded later", "a slot", "changed between", "another layout", "another name", "read twice", "a value",
        "converted alone", "loaded in a branch", "a loop", "loaded for memory",
    ],
)  # fmt: skip
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_a_value_is_converted_before_what_is_loaded_beside_it() -> None:
    early = "acc = gl.convert_layout(acc, layout)\n"
    assert moved(f"acc = f(acc)\n# the rest\n{LOAD}\n{SUM}\n") == (
        f"acc = f(acc)\n{early}# the rest\n{LOAD}\nacc += r.to(gl.float32)\n"
    )
    assert moved(f"if flag:\n    {LOAD}\n    {SUM}\n") == (
        f"if flag:\n    {early}    {LOAD}\n    acc += r.to(gl.float32)\n"
    )
    where = "acc = gl.where(r > 0, gl.convert_layout(acc, layout), 0.0)"
    assert moved(f"{LOAD}\n{where}\n") == f"{early}{LOAD}\nacc = gl.where(r > 0, acc, 0.0)\n"


def test_the_rule_is_stable() -> None:
    once = moved(f"{LOAD}\nmask = r > 0\n{SUM}\n")
    assert once != f"{LOAD}\nmask = r > 0\n{SUM}\n"
    assert moved(once) == once
