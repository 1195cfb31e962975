"""Loops that the compiler writes out, of which Triton copies the loads of the first turn ahead, or of all others alone.

lo = 0
for k in tl.static_range(DIMS):
    hi = tl.load(dims_ptr + k)
    for d in range(lo, hi, BLOCK):      # of the first turn, d is a multiple of BLOCK,
        a = tl.load(a_ptrs + d)         # and tiles are copied by 16 bytes; of others they are loaded by 2
        ...
    lo = hi
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from tt2gl.analysis.facts import CallChain, LaunchFacts
from tt2gl.analysis.single_turns import turns_in
from tt2gl.analysis.spread_stores import LOOPS
from tt2gl.ir.operations import Operation
from tt2gl.trees import nodes_in

_COPY = "ttg.async_copy_global_to_local"


def uneven_loads(kernel: Operation, chain: Callable[[Operation], CallChain]) -> dict[CallChain, int]:
    """The loads that are in several loops, of which the first alone copies them ahead, or does not: how many loops."""
    seen: dict[CallChain, list[bool]] = {}
    for loop in (each for each in kernel.walk() if each.name in LOOPS):
        inside = [each for each in loop.walk() if each is not loop]
        if not any(each.name in LOOPS for each in inside):
            copied = {chain(each) for each in inside if each.name == _COPY}
            loaded = {chain(each) for each in inside if each.name == "tt.load"}
            for each in copied | loaded:
                seen.setdefault(each, []).append(each in copied)
    return {each: len(first) for each, first in seen.items() if first[0] not in first[1:] and len(set(first)) > 1}


def first_turns(facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path) -> set[tuple[int, int]]:
    """The places of those loops in a file, by line and column: such loads are in no other loop of that kind."""
    own = str(path.absolute())
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    loops = [*_written_out(trees[own])] if own in trees else []
    found = set[tuple[int, int]]()
    for chain, times in sorted({each for seen in facts for each in seen.lowered.uneven.items()}):
        around = [loop for loop in loops for place in chain if place[0] == own and _holds(loop, place[1:])]
        if len(around) == 1 and times in {turns_in(around[0], each) for each in reached}:
            found.add((around[0].lineno, around[0].col_offset))
    return found


def _written_out(tree: ast.Module) -> Iterator[ast.For]:
    for loop in nodes_in(tree):
        match loop:
            case ast.For(iter=ast.Call(func=ast.Attribute(attr="static_range")), target=ast.Name(), orelse=[]):
                yield loop


def _holds(loop: ast.For, place: tuple[int, int]) -> bool:
    start, end = (loop.body[0].lineno, loop.body[0].col_offset), (loop.end_lineno or 0, loop.end_col_offset or 0)
    return start <= place <= end
