"""What is computed without a sum, where the sum moves down: first what moves along."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.early_parts import with_early_parts
from tt2gl.pipelining.naming import Fresh

LOAD = "acc = acc_tmem.load(registers)"


def parted(text: str) -> str:
    """The text of a block with parts made early."""
    module = cst.parse_module(textwrap.dedent(text))
    lines = [each for each in module.body if isinstance(each, cst.BaseStatement)]
    return module.with_changes(body=with_early_parts(lines, {"acc_tmem"}, Fresh({"acc", "acc_part_2"}))).code


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{LOAD}\nacc *= gl.exp(g)\nuse(acc)\n", id="nothing moves"),
        pytest.param(f"{LOAD}\nother()\nuse(acc * gl.exp(g))\n", id="the reader"),
        pytest.param(f"{LOAD}\nacc = acc * scale[:, None] + 1.0\nother()\nuse(acc)\n", id="nothing is computed"),
        pytest.param(f"{LOAD}\nacc = gl.exp(acc)\nother()\nuse(acc)\n", id="of the sum"),
        pytest.param(f"{LOAD}\nacc = acc.to(kind(x))\nother()\nuse(acc)\n", id="a type"),
        pytest.param(f"{LOAD}\nacc = gl.convert_layout(acc, made(x))\nother()\nuse(acc)\n", id="a layout"),
        pytest.param(f"{LOAD}\nacc = acc if flag else gl.exp(g)\nother()\nuse(acc)\n", id="under a condition"),
        pytest.param(f"if flag:\n    {LOAD}\nacc *= gl.exp(g)\nother()\nuse(acc)\n", id="a load under a test"),
        pytest.param(f"for i in n:\n    {LOAD}\n    acc *= gl.exp(g)\n    other()\n    use(acc)\n", id="in a loop"),
        pytest.param("acc = acc_smem.load(x)\nacc *= gl.exp(g)\nother()\nuse(acc)\n", id="shared memory"),
    ],
)
def test_what_stays(body: str) -> None:
    assert parted(body) == body


def test_parts_are_made_where_they_are() -> None:
    text = f"{LOAD}\n\n# decays\nacc = gl.where(m, acc * gl.exp(g[:, None]), gl.zeros(s))\nv = load(p)\nuse(acc)\n"
    assert parted(text) == (
        f"{LOAD}\n\nacc_part = gl.exp(g[:, None])\nacc_part_3 = gl.zeros(s)\n"
        "# decays\nacc = gl.where(m, acc * acc_part, acc_part_3)\nv = load(p)\nuse(acc)\n"
    )


def test_in_branches() -> None:
    inner = f"{LOAD}\nacc *= gl.exp(g)\nv = load(p)\nuse(acc)\n"
    made = inner.replace("acc *= gl.exp(g)", "acc_part = gl.exp(g)\nacc *= acc_part")
    for head in ("if flag:\n", "if flag:\n    other()\nelse:\n"):
        assert parted(head + textwrap.indent(inner, "    ")) == head + textwrap.indent(made, "    ")


def test_a_part_on_several_lines() -> None:
    text = f"{LOAD}\nacc = gl.where(m, acc, gl.exp(g)\n    + x)\nother()\nuse(acc)\n"
    assert "acc_part = (gl.exp(g)\n    + x)\nacc = gl.where(m, acc, acc_part)\n" in parted(text)
