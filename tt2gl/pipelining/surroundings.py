"""Loops around a pipelined one: where its rings are made once for all their turns.

for tile in range(first, tiles, programs):                                         # before
    a_buf = gl.allocate_shared_memory(...)
    bars = gl.allocate_shared_memory(...)
    for slot in gl.static_range(3):
        mbarrier.init(bars.index(slot), count=1)
    ...

a_buf = gl.allocate_shared_memory(...)                                             # after
bars = gl.allocate_shared_memory(...)
for slot in gl.static_range(3):
    mbarrier.init(bars.index(slot), count=1)
slot = 0
phase = 0
for tile in range(first, tiles, programs):
    ...

It pays for rings with mbarriers, which must be initialised and seen by all threads, and is needed where copies run on
into the next turn. Other rings lie where they are used, so that their memory serves what follows the loop, too.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.counting import Count, with_bounds
from tt2gl.pipelining.flow import NONE, inside, reads, writes
from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.trees import code, comments, indented, leading, lines_of, under
from tt2gl.pipelining.walking import Lines
from tt2gl.trees import nodes_in


@dataclass
class Surroundings:
    """A loop on the way to a pipelined one: what comes to stand before and after it.

    `gone`: statements of its body that are needed no more; `count`: how it counts, where its bounds have other names.
    """

    loop: ast.For | ast.While
    node: cst.BaseStatement
    before: Lines = field(default_factory=list)
    after: Lines = field(default_factory=list)
    gone: frozenset[ast.stmt] = frozenset()
    count: Count | None = None

    def lines(self, made: Lines) -> Lines:
        """What was made of the loop, with those around it: empty lines stand above all, comments stay with the loop."""
        if not self.before:
            return made
        if self.count is not None:
            made = [self._recounted(made[0], self.count), *made[1:]]
        lead = list(leading(made[0]))
        spoken = lead.index(comments(lead)[0]) if comments(lead) else len(lead)
        first = under(self.before[0], [*lead[:spoken], *leading(self.before[0])])
        gap = [cst.EmptyLine(indent=False)]
        return [first, *self.before[1:], under(made[0], [*gap, *lead[spoken:]]), *made[1:], *self.after]

    def _recounted(self, made: cst.BaseStatement, count: Count) -> cst.For:
        """The loop with the names of its bounds, and without what is gone."""
        assert isinstance(made, cst.For)
        assert isinstance(self.node, cst.For)
        gone = {
            id(line)
            for line, members, _ in lines_of(self.loop.body, self.node.body)
            if members and all(each in self.gone for each, _ in members)
        }
        block = indented(made.body)
        left = [line for line in block.body if id(line) not in gone]
        return made.with_changes(iter=with_bounds(made.iter, count, count.upper), body=block.with_changes(body=left))


def home_of(rings: Lines, around: Sequence[Surroundings]) -> Surroundings | None:
    """The outermost of the loops `around` a pipelined one before which its rings may be made; None for none.

    A loop that has another pipelined one inside is none: the rings of both would lie side by side in memory.
    """
    needed = NONE.union(*(reads(ast.parse(code(line))) for line in rings))
    for each in around:
        if not needed & writes(each.loop) and _pipelined_inside(each.loop) == 1:
            return each
    return None


def _pipelined_inside(loop: ast.For | ast.While) -> int:
    """The loops inside this one that have markers of their own."""
    loops = [each for each in inside(loop.body) if isinstance(each, ast.For | ast.While)]
    return sum(any(is_marker(node) for node in _own_nodes(each)) for each in loops)


def _own_nodes(loop: ast.For | ast.While) -> list[ast.AST]:
    """The nodes of a loop's body without those of loops inside it."""
    nested = {node for each in inside(loop.body) if isinstance(each, ast.For | ast.While) for node in nodes_in(each)}
    return [node for statement in loop.body for node in nodes_in(statement) if node not in nested]
