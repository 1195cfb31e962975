"""On AMD rows of indices that a loop makes alike are named before it: first what must stay there."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.invariant_names import without_invariant_names

HEAD = """from triton.experimental import gluon

def kernel(p, x, n, at, K, cols, BLOCK: gl.constexpr):
"""
ROWS = "rows = at * BLOCK + cols.to(gl.int64)"
USE = "x += rows[:, None] * i"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    made = without_invariant_names(HEAD + body, {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD)).strip()


def loop(*lines: str, head: str = "for i in range(n):") -> str:
    return "\n    ".join([head, *lines])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{ROWS}\n{USE}", id="no loop"),
        pytest.param(loop(ROWS, USE, head="for i in gl.static_range(4):"), id="a loop that is written out"),
        pytest.param(loop(ROWS.replace("at", "i"), USE), id="of the loop's variable"),
        pytest.param(loop(ROWS, USE, "cols += BLOCK"), id="of what the loop changes"),
        pytest.param(loop("x += rows", ROWS, USE), id="read before"),
        pytest.param(loop(ROWS, USE) + "\ny = rows", id="read after"),
        pytest.param(loop(ROWS, USE, "rows = rows + 1", "x += rows"), id="given twice"),
        pytest.param(loop(ROWS.replace("* BLOCK", "// n"), USE), id="may divide by zero"),
        pytest.param(loop("rows = gl.load(p + cols)", USE), id="loaded"),
        pytest.param(loop("rows = gl.convert_layout(cols, layout)", USE), id="converted"),
        pytest.param(loop("rows = other(cols)", USE), id="by a function unknown"),
        pytest.param(loop("rows = at * BLOCK", "x += rows * i"), id="a number"),
        pytest.param(loop("if i > 3:", f"    {ROWS}", f"    {USE}"), id="under a condition"),
    ],
)
def test_names_that_stay(body: str) -> None:
    assert moved(body) == body


def test_rows_are_named_before_the_loop_with_what_they_are_made_of() -> None:
    body = loop(
        "first = at * BLOCK",
        "# of this block",
        "rows = first + gl.arange(0, BLOCK, layout=p)",
        USE,
        head="for i in range(n):",
    )
    made = f"first = at * BLOCK\n# of this block\nrows = first + gl.arange(0, BLOCK, layout=p)\n{loop(USE)}"
    assert moved("# all\n" + body) == made.replace("for i", "# all\nfor i")


def test_rows_leave_all_loops_that_have_no_part_in_them() -> None:
    inner = textwrap.indent(loop(ROWS, "x += rows[None, :] * k", head="for k in range(K):"), "    ")
    outer = textwrap.indent(loop("x += rows[None, :] * k", head="for k in range(K):"), "    ")
    assert moved(f"for i in range(n):\n    x += i\n{inner}") == f"{ROWS}\nfor i in range(n):\n    x += i\n{outer}"
