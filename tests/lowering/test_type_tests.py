"""Functions that reductions combine by ask for types where they branch on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.type_tests import branching_on_types, type_tests
from tt2gl.source import read_source

ASKING = """\
def is_floating(x):
    return x.dtype.is_floating()


@triton.jit
def maximum(a, b):
    mask = a > b
    if {test}:
        mask |= a != a
    return tl.where(mask, a, b)


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, maximum))
"""


def _lowered(test: str, text: str = ASKING) -> str:
    source = read_source(Path("kernel.py"), HEADER + text.format(test=test))
    return type_tests(source).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("is_floating(a)", "a.dtype.is_floating()"),
        ("not is_floating(a + b)", "not (a + b).dtype.is_floating()"),
        ("is_floating(a) and is_floating(b)", "a.dtype.is_floating() and b.dtype.is_floating()"),
    ],
)
def test_a_test_is_what_its_function_returns(before: str, after: str) -> None:
    assert _lowered(before) == HEADER + ASKING.format(test=after)


@pytest.mark.parametrize("test", ["is_floating(*a)", "is_floating(x=a)", "other(a)", "a.dtype.is_floating()"])
def test_other_tests_stay(test: str) -> None:
    assert _lowered(test) == HEADER + ASKING.format(test=test)


def test_a_function_that_computes_is_called() -> None:
    text = ASKING.replace("    return x.dtype", "    x = x + 1\n    return x.dtype")
    assert _lowered("is_floating(a)", text) == HEADER + text.format(test="is_floating(a)")


def test_what_nothing_combines_by_stays() -> None:
    text = ASKING.replace("tl.reduce(x, 0, maximum)", "maximum(x, tl.reduce(x, 0, other))")
    assert _lowered("is_floating(a)", text) == HEADER + text.format(test="is_floating(a)")


def test_functions_of_other_files_that_branch_so_are_found(tmp_path: Path) -> None:
    path = tmp_path / "helpers.py"
    path.write_text(HEADER + ASKING.format(test="is_floating(a)"))
    lines = {each.name: each.line for each in read_source(path).functions}
    places = [(str(path), line) for line in lines.values()]
    assert branching_on_types(places) == {(str(path), lines["maximum"])}
    assert branching_on_types([(str(path), lines["kernel"])]) == frozenset()
