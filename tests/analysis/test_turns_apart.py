"""Helpers that compute with other shapes in each turn of a loop that the compiler writes out."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tt2gl.analysis.facts import FunctionFacts, LaunchFacts, TensorFact
from tt2gl.analysis.turns_apart import reshaping_helpers

PATH = Path("kernel.py").absolute()
FIRST, OTHER = (3, 8, 3, 20), (5, 8, 5, 20)


def _copy(name: str, place: tuple[int, int, int, int], *shape: int) -> FunctionFacts:
    return FunctionFacts(str(PATH), name, 1, {place: TensorFact(shape, "fp32")})


@pytest.mark.parametrize("order", [*permutations("abc")])
@pytest.mark.parametrize(("last", "found"), [((4, 2), {"stage"}), ((2, 4), set())])
def test_shapes_are_compared_where_copies_meet_whichever_comes_first(
    order: tuple[str, ...], last: tuple[int, ...], found: set[str]
) -> None:
    """One copy takes a branch of its own: it has no tensor in common with the others."""
    copies = {"a": _copy("stage", FIRST, 8), "b": _copy("stage", OTHER, 2, 4), "c": _copy("stage", OTHER, *last)}
    # A set of names is in any order.
    kernel = FunctionFacts(str(PATH), "kernel", 9, called={(10, 4, 10, 20): cast("set[str]", dict.fromkeys(order))})
    facts = cast(LaunchFacts, SimpleNamespace(functions={"kernel": kernel, **copies}))
    assert reshaping_helpers([facts], PATH) == found
