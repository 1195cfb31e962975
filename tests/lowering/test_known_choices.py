"""Loads that an expression chooses between: which stay there, and which go into branches."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.known_choices import known_choices
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

LOADED = "tl.load(a_ptr) if EVEN else tl.load(a_ptr, mask=n > k, other=0.0)"


def lower(body: str, looping: str = "for k in range(n):\n") -> Lowered:
    loop = f"{looping}{textwrap.indent(body, '    ' if looping.startswith('for') else '')}"
    text = f"{HEADER}def kernel(a_ptr, b, acc, n, EVEN: tl.constexpr, FEW: tl.constexpr):\n"
    return known_choices(read_source(Path("kernel.py"), f"{text}{textwrap.indent(loop, '    ')}    tl.dot(b, b)\n"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("a = tl.load(a_ptr) if n > 3 else 0.0\n", id="no constant"),
        pytest.param("a = n + k if EVEN else n\n", id="nothing loaded"),
        pytest.param(f"a = tl.dot({LOADED}, {LOADED})\n", id="two choices"),
        pytest.param("a = (tl.load(a_ptr)  # why\n     if EVEN else 0.0)\n", id="a comment"),
        pytest.param("a = tl.load(a_ptr) if EVEN else 0.0; b = a\n", id="two statements"),
        pytest.param("if n: a = tl.load(a_ptr) if EVEN else 0.0\n", id="on one line"),
        pytest.param("a = [tl.load(a_ptr + i) if EVEN else i for i in (1, 2)]\n", id="in a comprehension"),
    ],
)
def test_what_stays(body: str) -> None:
    assert lower(body).functions == ()


def test_what_is_in_no_loop_stays() -> None:
    assert lower(f"a = {LOADED}\n", looping="k = 1\n").functions == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"a = {LOADED}  # why\n",
            "if EVEN:\n    a = tl.load(a_ptr)\nelse:\n    a = tl.load(a_ptr, mask=n > k, other=0.0)  # why\n",
        ),
        (
            f"a = ({LOADED}).to(tl.float32)\n",
            "if EVEN:\n    a = tl.load(a_ptr).to(tl.float32)\n"
            "else:\n    a = tl.load(a_ptr, mask=n > k, other=0.0).to(tl.float32)\n",
        ),
        (
            "acc += 2 * (tl.load(a_ptr) if EVEN else n + k)\n",
            "if EVEN:\n    acc += 2 * tl.load(a_ptr)\nelse:\n    acc += 2 * (n + k)\n",
        ),
        (
            "a = (\n    tl.load(a_ptr)\n    + k\n    if EVEN == 1\n    else 0.0\n)\n",
            "if EVEN == 1:\n    a = (tl.load(a_ptr)\n    + k)\nelse:\n    a = 0.0\n",
        ),
        (
            "a = tl.load(a_ptr) if EVEN else tl.load(a_ptr + 1) if FEW else 1.0 if n else 2.0\n",
            "if EVEN:\n    a = tl.load(a_ptr)\nelse:\n    if FEW:\n        a = tl.load(a_ptr + 1)\n"
            "    else:\n        a = 1.0 if n else 2.0\n",
        ),
    ],
    ids=["alone", "cast", "in a sum", "of several lines", "of several"],
)
def test_what_goes_into_branches(before: str, after: str) -> None:
    done = lower(before)
    assert done.functions == ("kernel",)
    expected = f"for k in range(n):\n{textwrap.indent(after, '    ')}"
    assert f"\n{textwrap.indent(expected, '    ')}" in done.text
