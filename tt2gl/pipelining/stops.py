"""Pointers that are read after a loop go ahead of it by themselves, and stop at its last iteration.

a_ptrs_ahead = a_ptrs                                                              # else
for k in range(0, steps):
    acc = warpgroup_mma(a_buf.index(slot), b_buf.index(slot), acc)
    a_ptrs += BLOCK_K
    async_load(a_buf.index(free_slot), a_ptrs_ahead, mask=more)
    a_ptrs_ahead += BLOCK_K
a = gl.load(a_ptrs, mask=offs_k[None, :] < K, other=0)

for k in range(0, steps):                                                          # so
    acc = warpgroup_mma(a_buf.index(slot), b_buf.index(slot), acc)
    async_load(a_buf.index(free_slot), a_ptrs, mask=more)
    a_ptrs += gl.where(more, BLOCK_K, 0)
a = gl.load(a_ptrs, mask=offs_k[None, :] < K, other=0)

So they take as many steps as there are iterations, some of them in the prologue. Pointers that go with the iteration
besides would take registers and additions through all of the loop: by a second set of a tile's, a product of groups by
`mma_v2` spills 24 registers a thread on sm80, where none do so. Triton's pipeliner carries one set of them, too, which
stops there. If they went on, and were put back behind the loop, LLVM would keep those of iterations before, too.
Of pointers and integers alone, which come to the same in any order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.pipelining.flow import NONE, Names, reads, writes
from tt2gl.pipelining.loads import LOADS, is_marker
from tt2gl.pipelining.slices import Slice, slice_loop
from tt2gl.pipelining.static import called
from tt2gl.trees import nodes_in

Loads = Mapping[ast.Call, Sequence[ast.expr]]


@dataclass(frozen=True)
class Stops:
    """Names that stop with the loop's last iteration, and the statements that step them."""

    names: Names = NONE
    steps: frozenset[ast.stmt] = frozenset()


def stops_of(loop: ast.For, loads: Loads, parts: Slice, live_after: Names, static: Callable[[ast.expr], bool]) -> Stops:
    """What may stop of what `parts`, a slice of the loop, has renamed as `live_after` reads it.

    `static`: whether a test is a constant of the compilation. Nothing may, where loads say where loads are: those of
    several iterations ahead are done at once.
    """
    if any(_loads(each) for each in parts.taken):
        return Stops()
    changed = writes(loop.target).union(*map(writes, loop.body))
    addresses = NONE.union(*(_summed(each) for needed in loads.values() for each in _addresses(needed)))
    found: dict[str, frozenset[ast.stmt]] = {}
    for name in parts.carried & parts.renamed & live_after & addresses:
        steps = [_steps(each, name, changed, static) for each in loop.body if name in writes(each)]
        if all(steps) and not _stays(name, slice_loop(loop, loads, live_after - {name})):
            found[name] = frozenset().union(*steps)
    return Stops(frozenset(found), frozenset().union(*found.values()))


def _loads(statement: ast.stmt) -> bool:
    calls = [node for node in nodes_in(statement) if isinstance(node, ast.Call)]
    return any(called(each) in LOADS or is_marker(each) for each in calls)


def _addresses(needed: Sequence[ast.expr]) -> list[ast.expr]:
    """What of a load's needs are pointers or offsets of a tile, and no mask."""
    return [*needed[:1], *(each for each in needed[1:] if isinstance(each, ast.List))]


def _summed(node: ast.expr) -> Names:
    """The names that an address has as a term or factor: pointers or integers, whatever they are."""
    match node:
        case ast.Name(id=name):
            return frozenset({name})
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _summed(left) | _summed(right)
        case ast.Subscript(value=value):
            return _summed(value)
        case ast.List(elts=offsets):
            return NONE.union(*map(_summed, offsets))
    return NONE


def _stays(name: str, parts: Slice) -> bool:
    """Whether an iteration needs a name for itself, too."""
    kept = [each for each in parts.kept if not isinstance(each, ast.If)]
    return name in parts.renamed or any(name in writes(each) for each in kept)


def _steps(statement: ast.stmt, name: str, changed: Names, static: Callable[[ast.expr], bool]) -> frozenset[ast.stmt]:
    """The steps of a name by what the loop leaves alone, in a statement that does no more with it; none for others."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=target), op=ast.Add() | ast.Sub(), value=value):
            return frozenset({statement}) if target == name and not reads(value) & changed else frozenset()
        case ast.If(test=test, body=body, orelse=orelse) if static(test) and not reads(test) & changed:
            made = [_steps(each, name, changed, static) for each in (*body, *orelse) if name in writes(each)]
            return frozenset().union(*made) if all(made) else frozenset()
    return frozenset()
