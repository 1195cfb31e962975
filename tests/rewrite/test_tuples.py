"""Rule `tuples`: a statement for each part of `a, b = x, y`, where one of them changes alone."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from tt2gl.plan import Conversion, Edits, Position

Rewritten = Callable[..., str]
Place = Callable[..., Position]

HEADER = "import triton\nimport triton.language as tl\n\n\n"
TOP = "@triton.jit\ndef kernel(x_ptr, BLOCK):\n"


@pytest.fixture
def parted(rewritten: Rewritten, position: Place) -> Callable[..., str]:
    """A statement whose part `rows` stands a second time as `rows_b`, or is converted to it: its text."""

    def apply(statement: str, target: str = "rows", read: str = "offs", converted: bool = False) -> str:
        text = TOP + textwrap.indent(statement, "    ") + "\n"
        place = position(HEADER + text, target)
        again = Edits(targets={place: "rows_b"}, reads={position(HEADER + text, read): "offs_b"})
        step = Conversion("rows_b", "rows", "layout")
        plan = {"conversions": {place: (step,)}} if converted else {"copies": {place: (Edits(), again)}}
        return textwrap.dedent(rewritten(text, plan=plan).partition("BLOCK):\n")[2]).rstrip("\n")

    return apply


@pytest.mark.parametrize("statement", ["rows, cols = f(offs)", "rows = cols = offs < 3", "rows = offs, 3"])
def test_other_statements_stay_whole(parted: Callable[..., str], statement: str) -> None:
    assert parted(statement) == statement


def test_a_part_stands_twice(parted: Callable[..., str]) -> None:
    made = parted("# masks\nrows, cols = offs < M, cs < N  # both")
    assert made == "# masks\nrows = offs < M  # both\nrows_b = offs_b < M\ncols = cs < N"


def test_the_last_part_stands_twice(parted: Callable[..., str]) -> None:
    assert parted("(cols, rows) = (cs < N, offs < M)") == "cols = cs < N\nrows = offs < M\nrows_b = offs_b < M"


def test_a_part_is_converted(parted: Callable[..., str]) -> None:
    made = parted("rows, cols = offs < M, cs < N", converted=True)
    assert made == "rows = offs < M\nrows_b = gl.convert_layout(rows, layout)\ncols = cs < N"


def test_a_part_of_several_lines_keeps_them_together(parted: Callable[..., str]) -> None:
    made = parted("rows, cols = (\n    offs\n    < M, cs < N)")
    assert [line for line in made.splitlines() if "=" in line] == ["rows = (offs", "rows_b = (offs_b", "cols = cs < N"]
