"""Calls of helpers that are better written out: those between a loop and loads that Triton copies ahead of it, or
products that it has there beside such loads, and those that want different layouts of one helper; and whose those are.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from tt2gl.analysis.facts import CallChain, LaunchFacts, Lowered
from tt2gl.analysis.uses import stages_of
from tt2gl.trees import nodes_in

_RANGES = ("range", "persistent_range")

_Loop = tuple[str, tuple[int, int], tuple[int, int]]
"""A loop's file, and where its body begins and ends."""


def calls_in_between(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path
) -> set[tuple[int, int]]:
    """The places of calls that lead to such loads, line and column: of several in a row, of the one in the loop.

    Loads whose tiles wait in registers are some where that is so under all launches (as `staging` wants it).
    """
    known = _Loops(trees, path)
    held = [{chain for chain in seen.lowered.held if known.is_beside_rings(chain, seen.lowered)} for seen in facts]
    chains = {chain for seen in facts for chain in seen.lowered.rings}.union(set.intersection(*held) if held else ())
    return {place for chain in chains if (place := known.call(chain)) is not None}


def calls_of_products(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path
) -> set[tuple[int, int]]:
    """The same of calls that lead to products, in loops whose tiles Triton copies ahead.

    As an argument such a tile would come in registers, and go back to shared memory for its product.
    """
    known = _Loops(trees, path)
    found: set[tuple[int, int]] = set()
    for seen in facts:
        ahead = {known.loop(chain)[1] for chain in seen.lowered.rings}
        for chain in seen.lowered.dots:
            place = known.call(chain)
            if place is not None and known.loop(chain)[1] in ahead:
                found.add(place)
    return found


def calls_of_lasting_operands(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path
) -> set[tuple[int, int]]:
    """The same of calls that lead to products, in any loop, of which an operand comes from before that.

    It is put into shared memory, or converted, once: a helper would do so on each call. And of those that lead to
    products by ordinary instructions, which read what the loop loads as it lies in shared memory, too.
    """
    known = _Loops(trees, path)
    dots = [each for seen in facts for each in seen.lowered.dots.items()]
    chains = {chain for chain, dot in dots if dot.at_hand or dot.instruction == "fma"}
    return {place for chain in chains if (place := known.call(chain)) is not None}


def helpers_elsewhere(
    facts: Collection[LaunchFacts], places: Collection[tuple[int, int]], path: Path
) -> set[tuple[str, int]]:
    """The helpers of other files that a file calls at these places, by file and line."""
    own = str(path.absolute())
    return {
        (callee.path, callee.line)
        for seen in facts
        for function in seen.functions.values()
        for position, name in function.callees.items()
        if function.path == own and position[:2] in places and (callee := seen.functions[name]).path != own
    }


class _Loops:
    """The loops of a kernel's functions that Triton's pipeliner looks at."""

    def __init__(self, trees: Mapping[str, ast.Module], path: Path) -> None:
        self._own = str(path.absolute())
        self._bodies = {
            file: [_extent(node) for node in nodes_in(tree) if isinstance(node, ast.For) and _counts(node)]
            for file, tree in trees.items()
        }

    def loop(self, chain: CallChain) -> tuple[int, _Loop | None]:
        """The loop around an operation, the innermost, and by how many calls it leads there."""
        for depth, (file, line, column) in enumerate(chain):
            around = [each for each in self._bodies.get(file, ()) if each[0] <= (line, column) < each[1]]
            if around:
                return depth, (file, *max(around))
        return len(chain), None

    def is_beside_rings(self, chain: CallChain, lowered: Lowered) -> bool:
        """Whether a tile that waits in registers is loaded as far ahead as the tiles of its loop's rings, all alike."""
        _, loop = self.loop(chain)
        depths = {stages_of(ring) for other, ring in lowered.rings.items() if self.loop(other)[1] == loop}
        return loop is not None and depths == {stages_of(lowered.held[chain])}

    def call(self, chain: CallChain) -> tuple[int, int] | None:
        """The place of the call in that loop; None where there is none, or it is another file's."""
        depth, loop = self.loop(chain)
        return chain[depth][1:] if loop is not None and depth and loop[0] == self._own else None


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
