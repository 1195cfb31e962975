"""Reshapes in any order: what is lowered, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.reorderings import reorderings
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source


def lower(body: str, top: str = "") -> Lowered:
    text = f"{top}{HEADER}def kernel(x, n):\n{textwrap.indent(body, '    ')}"
    return reorderings(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    "call", ["ops.view(x, (n, 2))", "view(x, (n, 2))", "tl.reshape(x, n, 2)", "x.cat(x, can_reorder=True)"]
)
def test_what_is_in_order_or_is_another_function_stays(call: str) -> None:
    assert lower(f"out = {call}\n", "from ops import view\nimport ops\n").functions == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.reshape(n, 2, can_reorder=True)", "x.reshape(n, 2)"),
        ("tl.reshape(x, (n, 2), can_reorder=n)", "tl.reshape(x, (n, 2))"),
        ("tl.view(x, (n, 2)) + tl.view(x, [n, 2])", "tl.reshape(x, (n, 2)) + tl.reshape(x, [n, 2])"),
        ("tl.max(tl.ravel(x, can_reorder=True), 0)", "tl.max(tl.ravel(x), 0)"),
        ("tl.load(x).view(n, 2)", "tl.load(x).reshape(n, 2)"),
        ("(x + 1).view(n, 2)", "(x + 1).reshape(n, 2)"),
        ("view(x, n).view(n, 2)", "view(x, n).reshape(n, 2)"),
        ("x.view(n, 2)", "x.reshape(n, 2)"),
    ],
)
def test_any_order_is_the_elements_own(before: str, after: str) -> None:
    done = lower(f"out = {before}\n")
    assert done.functions == ("kernel",)
    assert done.text.endswith(f"    out = {after}\n")
