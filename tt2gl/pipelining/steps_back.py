"""Pointers that are read after a loop go ahead of it by themselves, and are stepped back behind it.

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
    a_ptrs += BLOCK_K
for s in gl.static_range(NUM_STAGES - 1):
    a_ptrs -= BLOCK_K
a = gl.load(a_ptrs, mask=offs_k[None, :] < K, other=0)

The prologue takes as many steps as loads run ahead, and each iteration one, whether there is an iteration to load for
or not. Pointers that go with the iteration besides would take registers and additions through all of the loop. Triton's
pipeliner carries one set of them, too, and has it stop at the end. Of pointers and integers alone, which come back to
what they were.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.flow import NONE, Names, reads, writes
from tt2gl.pipelining.loads import LOADS, is_marker
from tt2gl.pipelining.rings import Amount
from tt2gl.pipelining.slices import Slice, slice_loop
from tt2gl.pipelining.static import called
from tt2gl.pipelining.trees import comment, parsed, under

Loads = Mapping[ast.Call, Sequence[ast.expr]]


@dataclass(frozen=True)
class StepsBack:
    """Which names are stepped back after a loop, and how; `counter`: what counts the steps."""

    names: Names = NONE
    steps: tuple[ast.stmt, ...] = ()
    counter: str = ""

    def lines(self, ahead: Amount) -> list[cst.BaseStatement]:
        """What stands behind a loop whose loads run that many iterations ahead."""
        if not self.steps:
            return []
        body = list(self.steps)
        if ahead.known != 1:
            span = ast.parse(f"gl.static_range({ahead.source})", mode="eval").body
            body = [ast.For(target=ast.Name(self.counter, ast.Store()), iter=span, body=body, orelse=[])]
        made = [parsed(ast.unparse(ast.fix_missing_locations(each)) + "\n") for each in body]
        run = "one iteration" if ahead.known == 1 else f"{ahead.source} iterations"
        return [under(made[0], comment(f"back from where the loads were, {run} ahead")), *made[1:]]


def steps_back(
    loop: ast.For,
    loads: Loads,
    parts: Slice,
    live_after: Names,
    static: Callable[[ast.expr], bool],
    fresh: Callable[[str], str],
) -> StepsBack:
    """What may be stepped back of what `parts`, a slice of the loop, has renamed as `live_after` reads it.

    `static`: whether a test is a constant of the compilation; `fresh`: a name that nobody has. Nothing may, where loads
    say where loads are: those of several iterations ahead are done at once.
    """
    if any(_loads(each) for each in parts.taken):
        return StepsBack()
    changed = writes(loop.target).union(*map(writes, loop.body))
    addresses = NONE.union(*(_summed(each) for needed in loads.values() for each in _addresses(needed)))
    names: set[str] = set()
    for name in sorted(parts.carried & parts.renamed & live_after & addresses):
        steps = [_back(each, name, changed, static) for each in loop.body if name in writes(each)]
        if all(steps) and not _stays(name, slice_loop(loop, loads, live_after - {name})):
            names.add(name)
    found = [_back(each, name, changed, static) for each in loop.body for name in sorted(names & writes(each))]
    taken = tuple(each for each in found if each is not None)
    return StepsBack(frozenset(names), taken, fresh("s")) if taken else StepsBack()


def _loads(statement: ast.stmt) -> bool:
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
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


def _back(statement: ast.stmt, name: str, changed: Names, static: Callable[[ast.expr], bool]) -> ast.stmt | None:
    """A statement that steps a name by what the loop leaves alone, the other way; None for any other."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=target) as own, op=ast.Add() | ast.Sub() as op, value=value):
            if target == name and not reads(value) & changed:
                return ast.AugAssign(target=own, op=ast.Sub() if isinstance(op, ast.Add) else ast.Add(), value=value)
        case ast.If(test=test, body=body, orelse=orelse) if static(test) and not reads(test) & changed:
            arms = [[each for each in arm if name in writes(each)] for arm in (body, orelse)]
            made = [[_back(each, name, changed, static) for each in arm] for arm in arms]
            if all(each is not None for arm in made for each in arm):
                first, second = ([each for each in arm if each is not None] for arm in made)
                return ast.If(test=test, body=first or [ast.Pass()], orelse=second)
    return None
