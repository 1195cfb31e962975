"""Calls of helpers that are better written out: those between a loop and loads that Triton copies ahead of it, and
those that want different layouts of one helper.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from tt2gl.analysis.facts import LaunchFacts

_RANGES = ("range", "persistent_range")


def calls_in_between(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path
) -> set[tuple[int, int]]:
    """The places of such calls in a file, line and column: of several that lead to a load, the one in the loop."""
    bodies = {
        file: [_extent(node) for node in ast.walk(tree) if isinstance(node, ast.For) and _counts(node)]
        for file, tree in trees.items()
    }
    own = str(path.absolute())
    found: set[tuple[int, int]] = set()
    for chain in {chain for seen in facts for chain in seen.lowered.rings}:
        for depth, (file, line, column) in enumerate(chain):
            if any(first <= (line, column) < last for first, last in bodies.get(file, ())):
                if depth and file == own:
                    found.add((line, column))
                break
    return found


def calls_of(names: Collection[str], facts: Collection[LaunchFacts], path: Path) -> set[tuple[int, int]]:
    """The places of all calls of these functions of a file."""
    own = str(path.absolute())
    return {
        position[:2]
        for seen in facts
        for function in seen.functions.values()
        for position, callee in function.callees.items()
        if function.path == own and seen.functions[callee].path == own and seen.functions[callee].name in names
    }


def _counts(loop: ast.For) -> bool:
    """Whether Triton's pipeliner looks at a loop: one over a range, that is not written out."""
    function = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    return (getattr(function, "attr", None) or getattr(function, "id", None)) in _RANGES


def _extent(loop: ast.For) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the body of a loop begins and ends."""
    first, last = loop.body[0], loop.body[-1]
    return (first.lineno, first.col_offset), (last.end_lineno or last.lineno, last.end_col_offset or 0)
