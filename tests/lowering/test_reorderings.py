"""Reshapes in any order: what is lowered, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.convert import convert
from tt2gl.lowering.reorderings import in_any_order, reorderings
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


HELPERS = f"""{HEADER}def total(x):
    return tl.sum(tl.ravel(x, can_reorder=True), 0)


@triton.jit
def both(x):
    return tl.cat(x, x, can_reorder=True)


@triton.jit
def plain(x):
    return total(x) + 1
"""


def test_those_of_another_file_are_found(tmp_path: Path) -> None:
    path = tmp_path / "sums.py"
    path.write_text(HELPERS)
    lines = {function.name: function.line for function in read_source(path).functions}
    assert in_any_order([(str(path), lines["plain"])]) == frozenset()
    assert {line for _, line in in_any_order((str(path), line) for line in lines.values())} == {
        lines["total"],
        lines["both"],
    }


def test_a_helper_of_another_file_is_brought(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(HELPERS)
    path = tmp_path / "kernel.py"
    path.write_text(
        HEADER.replace("import triton\n", "import triton\nfrom sums import plain\n", 1)
        + "def kernel(x, y, B: tl.constexpr):\n"
        + "    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]\n"
        + "    tl.store(y, plain(tl.load(x + at)))\n"
    )
    made = convert(path, target="sm90")
    assert [report.status for report in made.kernels] == ["converted"]
    assert "tl.sum(tl.ravel(x), 0)" in made.text
