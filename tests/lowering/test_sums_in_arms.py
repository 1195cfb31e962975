"""Products that branches choose for the sum that follows: what stays, and what is made in it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.steps import Lowered
from tt2gl.lowering.sums_in_arms import sums_in_arms
from tt2gl.source import read_source

IEEE = 'tl.dot(a, b, input_precision="ieee")'
CHOICE = f"if WIDE:\n    s = {IEEE}\nelse:\n    s = tl.dot(a, b)\n"


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel(a, b, x, y, n, WIDE: tl.constexpr):\n{textwrap.indent(body, '    ')}"
    return sums_in_arms(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{CHOICE.replace('WIDE', 'n')}x += s\n", id="of a value"),
        pytest.param(f"{CHOICE}x += s\ny = s\n", id="read again"),
        pytest.param(f"{CHOICE}x *= s\n", id="no sum"),
        pytest.param(f"{CHOICE}x = s * y + x\n", id="a product of it"),
        pytest.param(f"{CHOICE}x = s + s\n", id="twice"),
        pytest.param(f"{CHOICE}y = 1\nx += s\n", id="later"),
        pytest.param(f"{CHOICE}# why\nx += s\n", id="with a comment"),
        pytest.param(f"{CHOICE}x = s + tl.dot(b, a)\n", id="added to a product"),
        pytest.param(f"if WIDE:\n    s = {IEEE}\nx += s\n", id="one arm"),
        pytest.param("if WIDE:\n    s = a\nelse:\n    s = b\nx += s\n", id="no products"),
        pytest.param("if WIDE:\n    s = tl.dot(a, b)\nelse:\n    y = tl.dot(a, b)\nx += s\n", id="other names"),
        pytest.param("if WIDE:\n    s = tl.dot(a, b, x)\nelse:\n    s = tl.dot(a, b, y)\nx += s\n", id="with a start"),
        pytest.param(f"s = x\n{CHOICE}x += s\n", id="a name that is something before"),
        pytest.param("if WIDE:\n    s = a\nelse:\n    s = b\nx = s\n", id="another name of no product"),
        pytest.param(f"{CHOICE}x = y = s\n", id="two other names"),
        pytest.param(f"{CHOICE}x[0] = s\n", id="an element"),
    ],
)
def test_what_stays(body: str) -> None:
    assert lower(body).functions == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{CHOICE}x += s\n", f"if WIDE:\n    x += {IEEE}\nelse:\n    x += tl.dot(a, b)\n"),
        (
            f"{CHOICE}x = (s + y[None, :]) * 2\n",
            f"if WIDE:\n    x = ({IEEE} + y[None, :]) * 2\nelse:\n    x = (tl.dot(a, b) + y[None, :]) * 2\n",
        ),
        (
            f"if WIDE:\n    s = {IEEE}\nelif MODE == 2:\n    s = a * b\nelse:\n    a = x\n    s = tl.dot(a, b)\n"
            "x = y + s\n",
            f"if WIDE:\n    x = y + {IEEE}\nelif MODE == 2:\n    x = y + (a * b)\nelse:\n    a = x\n    "
            "x = y + tl.dot(a, b)\n",
        ),
        (
            f"for k in range(n):\n{textwrap.indent(CHOICE, '    ')}    x += s\n",
            f"for k in range(n):\n    if WIDE:\n        x += {IEEE}\n    else:\n        x += tl.dot(a, b)\n",
        ),
        (
            "if WIDE:\n    s = tl.dot(a, b, x)\nelif MODE == 2:\n    s = a * b\nelse:\n    s = tl.dot(a, a)\nx = s\n",
            "if WIDE:\n    x = tl.dot(a, b, x)\nelif MODE == 2:\n    x = a * b\nelse:\n    x = tl.dot(a, a)\n",
        ),
    ],
)
def test_what_is_made_in_the_sum(before: str, after: str) -> None:
    done = lower(before)
    assert done.functions == ("kernel",)
    assert done.text.endswith(f"\n{textwrap.indent(after, '    ')}")
