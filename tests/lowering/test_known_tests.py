"""Tests of which constants are a part: which stay, and which are asked apart."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.known_tests import known_tests
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

BODY = "    a = tl.load(a_ptr + k)\n    acc += tl.dot(a, b)\n"


def lower(body: str, looping: str = "for k in range(n):\n") -> Lowered:
    loop = f"{looping}{textwrap.indent(body, '    ' if looping.startswith('for') else '')}"
    text = f"{HEADER}def kernel(a_ptr, b, acc, n, WIDE: tl.constexpr, FEW: tl.constexpr):\n"
    return known_tests(read_source(Path("kernel.py"), text + textwrap.indent(loop, "    ")))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"if WIDE:\n{BODY}", id="constants alone"),
        pytest.param(f"if WIDE or FEW:\n{BODY}", id="several constants"),
        pytest.param(f"if tl.sum(b) != 0:\n{BODY}", id="no constants"),
        pytest.param(f"if tl.sum(b) != 0 or WIDE:\n{BODY}", id="asked before the constants"),
        pytest.param(f"if WIDE and tl.sum(b) != 0:\n{BODY}", id="both"),
        pytest.param("if WIDE or n > 3:\n    acc += tl.dot(b, b)\n", id="nothing loaded"),
        pytest.param("if WIDE or n > 3:\n    acc += tl.load(a_ptr + k)\n", id="no product"),
        pytest.param(
            "if WIDE or n > 3:\n    if n:\n        a = tl.load(a_ptr + k)\nacc += tl.dot(a, b)\n", id="more than loads"
        ),
        pytest.param("if WIDE or n > 3: acc += tl.dot(tl.load(a_ptr), b)\n", id="on one line"),
    ],
)
def test_what_stays(body: str) -> None:
    assert lower(body).functions == ()


def test_what_is_in_no_loop_stays() -> None:
    assert lower(f"if WIDE or n > 3:\n{BODY}", looping="k = 1\n").functions == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"if not WIDE or tl.sum(b) != 0:\n{BODY}acc += 1\n",
            f"if not WIDE:\n{BODY}elif tl.sum(b) != 0:\n{BODY}acc += 1\n",
        ),
        (
            f"if WIDE or FEW == 2 or n > 3 or n < k:  # why\n    # first\n{BODY}else:\n    acc += 1\n",
            f"if WIDE or FEW == 2:  # why\n    # first\n{BODY}elif n > 3 or n < k:\n    # first\n{BODY}"
            "else:\n    acc += 1\n",
        ),
        (
            f"if (\n    WIDE\n    or (n > 3)\n):\n{BODY}",
            f"if WIDE:\n{BODY}elif (n > 3):\n{BODY}",
        ),
        (
            "if WIDE or n > 3:\n    a = tl.load(a_ptr + k)\nelse:\n    a = b\nacc += tl.dot(a, b)\n",
            "if WIDE:\n    a = tl.load(a_ptr + k)\nelif n > 3:\n    a = tl.load(a_ptr + k)\nelse:\n    a = b\n"
            "acc += tl.dot(a, b)\n",
        ),
        (
            f"if n == k:\n    acc += 1\nelif FEW or n > 3:\n{BODY}",
            f"if n == k:\n    acc += 1\nelif FEW:\n{BODY}elif n > 3:\n{BODY}",
        ),
    ],
)
def test_what_is_asked_apart(before: str, after: str) -> None:
    done = lower(before)
    assert done.functions == ("kernel",)
    expected = f"for k in range(n):\n{textwrap.indent(after, '    ')}"
    assert done.text.endswith(f"\n{textwrap.indent(expected, '    ')}")
