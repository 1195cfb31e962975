"""Tensors put one after the other: what is lowered, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.concatenations import concatenations
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel(x, y, cat, n):\n{textwrap.indent(body, '    ')}"
    return concatenations(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    "call",
    ["tl.cat(x, y)", "tl.cat(x, y, dim=1)", "tl.cat(x, y, can_reorder=n)", "tl.cat(x, y, False)", "x.cat(x, y, True)"],
)
def test_what_has_an_order_or_is_another_function_stays(call: str) -> None:
    assert lower(f"out = {call}\n").functions == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tl.cat(x, y, can_reorder=True)", "tl.ravel(tl.permute(tl.join(x, y), (1, 0)))"),
        ("tl.cat(x + 1, (y), True) + n", "tl.ravel(tl.permute(tl.join(x + 1, (y)), (1, 0))) + n"),
        (
            "tl.cat(x, tl.cat(y, n, True), True)",
            "tl.ravel(tl.permute(tl.join(x, tl.ravel(tl.permute(tl.join(y, n), (1, 0)))), (1, 0)))",
        ),
    ],
)
def test_any_order_is_theirs(before: str, after: str) -> None:
    done = lower(f"out = {before}\n")
    assert done.functions == ("kernel",)
    assert done.text.endswith(f"    out = {after}\n")
