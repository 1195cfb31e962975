"""Quotients of constants that loops count to: which are found where Triton has them as scalars."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tt2gl.analysis.constant_quotients import constant_quotients
from tt2gl.analysis.facts import ConstFact, LaunchFacts, TensorFact
from tt2gl.analysis.kernel import parsed
from tt2gl.analysis.statics import position_of
from tt2gl.launches import Launch
from tt2gl.slicing.slices import Slice
from tt2gl.trees import nodes_in

KERNEL = """
@triton.jit
def kernel(x_ptr, n, D: tl.constexpr, B: tl.constexpr):
    for d in range(BOUND):
        tl.store(x_ptr + d, d)
"""
Observed = Callable[..., tuple[Slice, list[LaunchFacts]]]


def found(observed: Observed, launch: Callable[..., Launch], bound: str) -> set[tuple[int, int]]:
    """The quotients of a loop's bound, where Triton has all of them as scalars."""
    kernel, (facts,) = observed(
        KERNEL.replace("BOUND", bound),
        launch("x_ptr=*i32 n=i32", D=64, B=48),
        target="sm80",
    )
    trees, entry = parsed(kernel), facts.functions[facts.entry]
    for call in (each for tree in trees.values() for each in nodes_in(tree) if isinstance(each, ast.Call)):
        if isinstance(entry.expressions.get(position_of(call)), ConstFact):
            dict.__setitem__(entry.expressions, position_of(call), TensorFact((), "int32"))
    return constant_quotients([facts], trees, Path(entry.path))


@pytest.mark.parametrize(
    "bound", ["tl.cdiv(n, B)", "tl.cdiv(D, n)", "D // B", "tl.minimum(D, B)", "tl.cdiv(D, B) + n"], ids=str
)
def test_what_is_no_quotient_of_constants_stays(observed: Observed, launch: Callable[..., Launch], bound: str) -> None:
    assert found(observed, launch, bound) == set()


@pytest.mark.parametrize("bound", ["tl.cdiv(D, B)", "0, tl.cdiv(D + 1, B)"], ids=str)
def test_quotients_of_constants_are_found(observed: Observed, launch: Callable[..., Launch], bound: str) -> None:
    assert len(found(observed, launch, bound)) == 1
