"""Rows that are converted behind a loop: first those that stay where they are, then those that move."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.rows_behind_loops import with_rows_behind_loops

HEAD = "def kernel(p, q, n, layout: gl.constexpr):\n"
ROW = "row_out = gl.convert_layout(row, gl.SliceLayout(1, layout))\n"
LOOP = "for k in range(n):\n    x = x + k\n"
READER = "for k in range(n):\n    y = y * row_out[:, None]\n"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = with_rows_behind_loops(HEAD + textwrap.indent(body, "    "), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        f"{ROW}{READER}{LOOP}",
        f"{ROW}x = x + 1\n{READER}",
        f"{ROW}{LOOP}",
        f"{ROW}{READER}{LOOP}{READER}",
        f"{ROW}{LOOP}row = row + 1\n{READER}",
        f"{ROW}{LOOP.replace('x = x', 'row = x')}{READER}",
        f"{ROW}{LOOP}row_out = row\n{READER}",
        f"{ROW}{LOOP.replace('range', 'gl.static_range')}{READER}",
        f"{ROW.replace('gl.SliceLayout(1, layout)', 'layout')}{LOOP}{READER}",
        f"{ROW.replace('row, ', 'row + 1, ')}{LOOP}{READER}",
        f"{ROW}if n:\n{textwrap.indent(LOOP, '    ')}{READER}",
    ],
    ids=[
        "read in the next loop", "no loop before", "not read", "read before", "changed", "changed in the loop",
        "another value", "written out", "a tile", "computed", "a loop in a branch",
    ],
)  # fmt: skip
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_a_row_is_converted_above_the_first_that_reads_it() -> None:
    assert moved(f"{ROW}{LOOP}x = x + 1\n# the rest\n{READER}") == f"{LOOP}x = x + 1\n{ROW}# the rest\n{READER}"
    last = "gl.store(p, row_out)\n"
    assert moved(f"{ROW}{LOOP}{LOOP}{last}") == f"{LOOP}{LOOP}{ROW}{last}"


def test_rows_keep_their_order() -> None:
    other = ROW.replace("row_out", "row_in")
    last = "gl.store(p, row_out + row_in)\n"
    assert moved(f"{ROW}{other}{LOOP}{last}") == f"{LOOP}{ROW}{other}{last}"


def test_so_does_one_in_a_block() -> None:
    body = f"{ROW}{LOOP}{READER}"
    after = f"{LOOP}{ROW}{READER}"
    for head in ("if n:\n", "for s in range(n):\n"):
        assert moved(head + textwrap.indent(body, "    ")) == head + textwrap.indent(after, "    ")
