"""Comparisons that a load's mask has, too: what is made above the load, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.early_masks import early_masks
from tt2gl.lowering.lowered_source import lowered_source
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source
from tt2gl.targets import get_target

LOAD = "x = tl.load(p + at, mask=(at[None, :] < n) & live, other=0.0)\n"
KEEP = "keep = at[None, :] < n\n"


def kernel(body: str, head: str = "for k in range(n):") -> str:
    return f"{HEADER}def kernel(p, at, live, n):\n    {head}\n{textwrap.indent(body, '        ')}"


def lower(text: str) -> Lowered:
    return early_masks(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(LOAD + "keep = at[None, :] < k\n", id="another comparison"),
        pytest.param(LOAD + "at += 1\n" + KEEP, id="of something else by then"),
        pytest.param(LOAD + "if live:\n    n = k\n" + KEEP, id="of something else under a flag"),
        pytest.param(LOAD + "x = tl.where(keep, x, 0.0)\n" + KEEP, id="the name is read before"),
        pytest.param(LOAD + "keep = at[None, :] < n  # who counts\n", id="a comment beside it"),
        pytest.param(LOAD + "# who counts\n" + KEEP, id="a comment above it"),
        pytest.param("x = tl.load(p, mask=f(n) < k)\nkeep = f(n) < k\n", id="a call"),
        pytest.param("x = tl.load(p + tl.sum(at[None, :] < n))\n" + KEEP, id="not in the mask"),
        pytest.param("if live:\n    " + LOAD + KEEP, id="a load under a flag"),
        pytest.param(KEEP + LOAD, id="made above it"),
    ],
)
def test_what_stays(body: str) -> None:
    assert lower(kernel(body)).functions == ()


def test_outside_of_loops() -> None:
    assert lower(kernel(LOAD + KEEP, "if n:")).functions == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LOAD + KEEP, KEEP + LOAD),
        ("at = k + at\n" + LOAD + KEEP + "keep &= live\n", "at = k + at\n" + KEEP + LOAD + "keep &= live\n"),
        (LOAD + LOAD + KEEP, KEEP + LOAD + LOAD),
        (LOAD + "if live:\n    x = 2\n" + KEEP, KEEP + LOAD + "if live:\n    x = 2\n"),
    ],
)
def test_what_is_made_above_the_load(before: str, after: str) -> None:
    done = lower(kernel(before))
    assert done.functions == ("kernel",)
    assert done.text == kernel(after)
    assert lower(done.text).functions == ()


@pytest.mark.parametrize(("target", "moved"), [("gfx942", True), ("sm90", False)])
def test_on_amd(target: str, *, moved: bool) -> None:
    made = lowered_source(read_source(Path("kernel.py"), kernel(LOAD + KEEP)), get_target(target)).work.text
    assert (made == kernel(KEEP + LOAD)) is moved
