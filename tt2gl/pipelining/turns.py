"""Loads that run on from turn to turn of a loop around theirs, as its author has them do by `flatten=True`.

for tile in range(first, tiles, programs):                                         # before
    offs_m = tile * BLOCK_M
    for k in range(k_tiles):
        a = _tt2gl_ring_a(a_desc, [offs_m, k * BLOCK_K])
        ...
    c_desc.store(...)

tile_ahead = first                                                                 # after
offs_m_ahead = tile_ahead * BLOCK_M
k_ahead = 0
more = (tile_ahead < tiles) & (k_ahead < k_tiles)
...                                                                                # the first copies
for tile in range(first, tiles, programs):
    for k in range(k_tiles):
        ...
        tma_load(a_desc, [offs_m_ahead, k_ahead * BLOCK_K], bars.index(free_slot), a_buf.index(free_slot), pred=more)
        k_ahead += 1
        if k_ahead >= k_tiles:
            tile_ahead += programs
            offs_m_ahead = tile_ahead * BLOCK_M
            k_ahead = 0
            more = (tile_ahead < tiles) & (k_ahead < k_tiles)
        ...
    c_desc.store(...)

So the copies of a turn's first tiles are under way while the turn before it still computes and stores. Triton makes one
loop of the two for it. Of tiles that threads copy, where those ahead are from is carried from turn to turn as tensors,
and each iteration ends a group of copies, so that the waits count as they do in one loop.

Where other loads of the loop inside go by its variable, it is counted on through both, as in Triton's one loop, and
what is made of it alone is carried with it:

    for _ in range(k_tiles):
        b = gl.load(b_ptr + offs[:, None] * stride_bk)
        ...
        k = gl.where(k + 1 >= k_tiles, 0, k + 1)
        offs = k * BLOCK_K + offs_k

A persistent matmul on an H100 goes from 0.968 of Triton's speed to 0.977 by the latter. The loop's own variable LLVM
would widen to 64 bits, and the masks with it, as addresses are made of it: for sm80 a matmul of 128 by 256 tiles then
spills 10 registers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.counting import Count, header_of
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import Names, inside, reads, writes
from tt2gl.pipelining.rings import Amount, NotPipelinedError
from tt2gl.pipelining.slices import Around, Slice, slice_around
from tt2gl.pipelining.static import called, is_unrolled
from tt2gl.pipelining.texts import operand
from tt2gl.pipelining.trees import (
    Renamed,
    alone,
    bare,
    code,
    comment,
    comments,
    edited,
    indented,
    leading,
    lines_of,
    statement,
    under,
)
from tt2gl.pipelining.walking import Lines


@dataclass(frozen=True)
class Turns:
    """How loads go through two loops at once, ahead of both.

    `around`, `inner`: how the loops count; `around_ahead`, `inner_ahead`: their variables ahead. `entry`: what a turn
    of the loop around does for its loads, in names of their own. `more`: the name for whether there is such an
    iteration. `counted_on`: the variable of the loop inside is carried through both; `made_of_it`: what is with it.
    """

    around: Count
    inner: Count
    around_ahead: str
    inner_ahead: str
    more: str
    entry: Lines
    counted_on: bool = False
    made_of_it: Lines = field(default_factory=list)

    def started(self) -> Lines:
        """The variable of the loop inside before both, where it is carried."""
        if not self.counted_on:
            return []
        return [statement(f"{self.inner.variable} = {self.inner.lower}"), *map(bare, self.made_of_it)]

    def counted(self, loop: cst.For) -> cst.For:
        """The loop inside with its variable counted at the body's end, where it is carried."""
        if not self.counted_on:
            return loop
        following = self.inner.further(Amount("", 1))
        step = f"gl.where({self.inner.over(following)}, {self.inner.lower}, {following})"
        block = indented(loop.body)
        made = {code(bare(line)) for line in self.made_of_it}
        left = [line for line in block.body if code(bare(line)) not in made]
        body = [*left, statement(f"{self.inner.variable} = {step}"), *self.made_of_it]
        return loop.with_changes(target=cst.Name("_"), body=block.with_changes(body=body))

    def first(self) -> Lines:
        """The first iteration of both."""
        made = [statement(f"{self.around_ahead} = {self.around.lower}"), *self.entry, *self._begun()]
        note = "where the next copies are from: they run on into the next turn of the loop around"
        return [under(made[0], [*comment(note)]), *made[1:]]

    def following(self) -> Lines:
        """The next iteration: of the next turn, where this one has no more."""
        turn = [statement(f"{self.around_ahead} += {self.around.step}"), *map(bare, self.entry), *self._begun()]
        test = cst.parse_expression(self.inner.over(self.inner_ahead))
        return [statement(f"{self.inner_ahead} += {self.inner.step}"), cst.If(test, cst.IndentedBlock(turn))]

    def _begun(self) -> Lines:
        """Start with the inner loop; it may have no iterations at all."""
        exist = (self.around.exists(self.around_ahead), self.inner.exists(self.inner_ahead))
        return [
            statement(f"{self.inner_ahead} = {self.inner.lower}"),
            statement(f"{self.more} = {' & '.join(map(operand, exist))}"),
        ]


def entry_of(outer: ast.For, node: cst.For, found: Around, names: Mapping[str, str]) -> Lines:
    """What a turn does for loads, in other names; comments are kept of lines that nothing else needs."""
    return [
        under(alone(line, edited(small, Renamed(names))), comments(leading(line)) if each in found.gone else [])
        for line, members, _ in lines_of(outer.body, node.body)
        if isinstance(line, cst.SimpleStatementLine)
        for each, small in members
        if each in found.taken
    ]


def needed_around(
    outer: ast.For,
    inner: ast.For,
    loads: Mapping[ast.Call, Sequence[ast.expr]],
    parts: Slice,
    live_after: Names,
    effects: Effects,
) -> Around | None:
    """What the loads of a loop need of the one around it; None where they may not run on into its next turns.

    Every turn has as many iterations, so that an iteration ahead is never in a turn after the next that has any.
    """
    if inner not in outer.body or parts.constants or any(isinstance(each, _LEAVES) for each in inside(outer.body)):
        return None
    if any(each is not inner and _is_loop(each) for each in inside(outer.body)):
        # Triton makes one loop of two, never of more.
        return None
    try:
        variable = header_of(outer).variable
    except NotPipelinedError:
        return None
    assigned = writes(outer)
    if any(variable in writes(each) for each in outer.body) or reads(inner.iter) & assigned:
        return None
    found = slice_around(outer, inner, loads, parts, live_after)
    # They are done for a turn that there is not, too.
    early = all(isinstance(each, ast.Assign | ast.AugAssign) and effects.only_computes(each) for each in found.taken)
    return found if early and found.top & assigned == {variable} and found.taken <= set(outer.body) else None


def loads_by(variable: str, kept: Iterable[ast.stmt]) -> bool:
    """Whether the statements that stay in a loop load from addresses made of its variable."""
    made = frozenset({variable})
    for each in sorted(kept, key=lambda statement: statement.lineno):
        loads = [node for node in ast.walk(each) if isinstance(node, ast.Call) and called(node) == "load"]
        if any(reads(argument) & made for load in loads for argument in load.args[:1]):
            return True
        if reads(each) & made and isinstance(each, ast.Assign):
            made |= writes(each)
    return False


def made_of(variable: str, inner: ast.For, node: cst.For, kept: Iterable[ast.stmt], assigned: Names) -> Lines:
    """The lines of a loop that compute from its variable, and from nothing else that the loop around has `assigned`."""
    effects, lines = Effects({}), lines_of(inner.body, node.body)
    written = [name for each in inside(inner.body) for name in writes(each)]
    return [
        line
        for line, members, first in lines
        if len(members) == 1 and first in kept and isinstance(first, ast.Assign) and effects.only_computes(first)
        if variable in reads(first) and reads(first) & assigned <= {variable}
        if all(written.count(name) == 1 for name in writes(first))
    ]


def _is_loop(statement: ast.stmt) -> bool:
    """Whether a statement is a loop in the compiled kernel, too: not one that is unrolled."""
    return isinstance(statement, ast.For | ast.While) and not is_unrolled(statement)


_LEAVES = (ast.Break, ast.Continue, ast.Return)
