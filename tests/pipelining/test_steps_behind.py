"""Integers that a loop steps for what comes after it take all steps behind it; others stay where they are."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.steps_behind import with_steps_behind

HEAD = """
def kernel(x_ptr, x, n, start, SCALE: gl.constexpr, BLOCK: gl.constexpr):
    cols = gl.arange(0, BLOCK, layout=layout)
"""
AFTER = "gl.store(x_ptr + cols, x)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = with_steps_behind(HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n", {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD)).strip()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"for i in range(n):\n    x += cols\n    cols += BLOCK\n{AFTER}", id="read in the loop"),
        pytest.param("for i in range(n):\n    x += i\n    cols += BLOCK", id="not read after it"),
        pytest.param(f"for i in range(n):\n    x += i\n    cols += i\n{AFTER}", id="another step each turn"),
        pytest.param(f"for i in range(n):\n    x += i\n    cols += SCALE\n{AFTER}", id="a step of any type"),
        pytest.param(f"for i in range(n):\n    x += i\n    cols *= BLOCK\n{AFTER}", id="no sum"),
        pytest.param("y = x\nfor i in range(n):\n    n_i = i\n    y += BLOCK\ngl.store(x_ptr, y)", id="no range"),
        pytest.param(f"cols += SCALE\nfor i in range(n):\n    x += i\n    cols += BLOCK\n{AFTER}", id="no integer"),
        pytest.param(f"for i in range(n):\n    x += i\n    if x:\n        cols += BLOCK\n{AFTER}", id="a branch"),
        pytest.param(f"for i in range(start, n, BLOCK):\n    x += i\n    cols += BLOCK\n{AFTER}", id="maybe downwards"),
        pytest.param(f"for i in gl.static_range(4):\n    x += i\n    cols += BLOCK\n{AFTER}", id="unrolled"),
        pytest.param(f"while n:\n    n -= x\n    cols += BLOCK\n{AFTER}", id="turns not known"),
        pytest.param(f"for i in range(n):\n    n = n + 1\n    cols += BLOCK\n{AFTER}", id="turns changed in it"),
    ],
)
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


@pytest.mark.parametrize(
    ("span", "turns"),
    [
        ("n", "gl.maximum(n, 0)"),
        ("start, n", "gl.maximum(n - start, 0)"),
        ("0, n + 1, BLOCK", "gl.cdiv(gl.maximum((n + 1), 0), BLOCK)"),
        ("start, n, 2", "gl.cdiv(gl.maximum(n - start, 0), 2)"),
    ],
)
@pytest.mark.parametrize("sign", ["+", "-"])
def test_all_steps_are_taken_behind_the_loop(span: str, turns: str, sign: str) -> None:
    body = f"rows = cols\nfor i in range({span}):\n    x += i\n    rows {sign}= BLOCK\nuse(rows)"
    step = f"rows {sign}= ({turns} * BLOCK).to(rows.dtype)"
    assert moved(body) == f"rows = cols\nfor i in range({span}):\n    x += i\n{step}\nuse(rows)"
