"""Rule `ranges`."""

from __future__ import annotations

import libcst as cst
import pytest

from tt2gl.rewrite.ranges import counting

TRITON = {"triton.language.range"}


def loop(iterable: str, called: set[str]) -> str:
    made = cst.ensure_type(cst.parse_statement(f"for k in {iterable}:\n    pass\n"), cst.For)
    return cst.Module([counting(made, called)]).code.removesuffix(":\n    pass\n").removeprefix("for k in ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tl.range(n)", "range(n)"),
        ("tl.range(0, n, 2)", "range(0, n, 2)"),
        ("tl.range(0, n, BLOCK, num_stages=3)", "range(0, n, BLOCK)"),
        ("tl.range(0, n, BLOCK, 3)", "range(0, n, BLOCK)"),
        ("tl.range(0, n, step=BLOCK, flatten=True)", "range(0, n, BLOCK)"),
        ("tl.range(\n    0, n, flatten=True\n)", "range(0, n)"),
        ("tl.range(\n    0,\n    n,\n    warp_specialize=True,\n)", "range(0, n)"),
        ("tl.range(  # all\n    0, n, flatten=True\n)", "range(  # all\n    0, n\n)"),
    ],
)
def test_hints_to_passes_that_do_not_run_are_left_out(before: str, after: str) -> None:
    assert loop(before, TRITON) == after


@pytest.mark.parametrize("stays", ["tl.range(0, n, loop_unroll_factor=4)", "tl.range(n, step=2)", "tl.range(*bounds)"])
def test_what_range_cannot_say_stays(stays: str) -> None:
    assert loop(stays, TRITON) == stays


@pytest.mark.parametrize("called", [{"builtins.range"}, set(), TRITON | {"mine.range"}])
def test_other_ranges_stay(called: set[str]) -> None:
    assert loop("tl.range(0, n, num_stages=3)", called) == "tl.range(0, n, num_stages=3)"
