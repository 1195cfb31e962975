"""The calls of helpers that stand between a load which Triton copies ahead and the loop that it is copied ahead of."""

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
    own = str(path.resolve())
    found: set[tuple[int, int]] = set()
    for chain in {chain for seen in facts for chain in seen.lowered.rings}:
        for depth, (file, line, column) in enumerate(chain):
            if any(first <= (line, column) < last for first, last in bodies.get(file, ())):
                if depth and file == own:
                    found.add((line, column))
                break
    return found


def _counts(loop: ast.For) -> bool:
    """Whether Triton's pipeliner looks at a loop: one over a range, that is not written out."""
    function = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    return (getattr(function, "attr", None) or getattr(function, "id", None)) in _RANGES


def _extent(loop: ast.For) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the body of a loop begins and ends."""
    first, last = loop.body[0], loop.body[-1]
    return (first.lineno, first.col_offset), (last.end_lineno or last.lineno, last.end_col_offset or 0)
