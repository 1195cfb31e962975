"""Memory for products that one arm of the compilation's alone reads is made in that arm; other memory stays."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.arms_memory import with_memory_in_arms

HEAD = "def kernel(h, n, q, acc, shared, turned, layout, FIRST: gl.constexpr, WIDE: gl.constexpr):\n"
MADE = "h_smem = gl.allocate_shared_memory(h.dtype, [n], shared, h)\n"
TURNED = """t = gl.permute(h, (1, 0))
t_smem = gl.allocate_shared_memory(t.dtype, [n], turned, t)
acc = t_smem.load(layout)
"""
READ = "acc = gl.dot_fma(q, h_smem.load(layout), acc)\n"
STEP, CHANGE = "q += 1\n", "h += 1\n"


def indented(text: str) -> str:
    """Some lines in a block."""
    return textwrap.indent(text, "    ")


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    return textwrap.dedent(with_memory_in_arms(HEAD + indented(body), {"kernel"}).removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{MADE}if n:\n{indented(READ)}", id="a branch of the launch"),
        pytest.param(f"{MADE}if FIRST:\n{indented(READ)}else:\n{indented(READ)}", id="both arms"),
        pytest.param(f"{MADE}if FIRST:\n{indented(READ)}{READ}", id="what comes after it"),
        pytest.param(f"{MADE}h += 1\nif FIRST:\n{indented(READ)}", id="another value"),
        pytest.param(f"{MADE}for i in range(n):\n{indented(READ)}", id="a loop"),
        pytest.param(f"{MADE}{STEP}", id="nothing"),
        pytest.param(
            f"{MADE}if FIRST:\n{indented(STEP)}elif WIDE:\n{indented(READ)}else:\n{indented(READ)}",
            id="two of three arms",
        ),
    ],
)
def test_memory_stays(body: str) -> None:
    assert moved(body) == body


def test_it_is_made_in_the_arm_that_reads_it() -> None:
    before = f"{MADE}if FIRST:\n{indented(TURNED)}else:\n{indented(STEP + READ)}"
    assert moved(before) == f"if FIRST:\n{indented(TURNED)}else:\n{indented(STEP + MADE + READ)}"


def test_it_is_made_in_the_innermost_arm() -> None:
    inner = f"if WIDE:\n{indented(READ)}"
    after = f"if WIDE:\n{indented(MADE + READ)}"
    assert moved(f"{MADE}if FIRST:\n{indented(inner)}") == f"if FIRST:\n{indented(after)}"


def test_a_value_that_the_arm_changes_is_there_before() -> None:
    before = f"{MADE}if FIRST:\n{indented(CHANGE + READ)}"
    assert moved(before) == f"if FIRST:\n{indented(MADE + CHANGE + READ)}"


def test_it_is_made_in_the_last_of_three_arms() -> None:
    before = f"{MADE}if FIRST:\n{indented(STEP)}elif WIDE:\n{indented(STEP)}else:\n{indented(READ)}"
    after = f"if FIRST:\n{indented(STEP)}elif WIDE:\n{indented(STEP)}else:\n{indented(MADE + READ)}"
    assert moved(before) == after
