"""What stays of a loop's body when its loads run ahead, each marker a slot of its ring."""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import takewhile

import libcst as cst

from tt2gl.pipelining.branches import branched, joined
from tt2gl.pipelining.conditions import guarded
from tt2gl.pipelining.direct import Read
from tt2gl.pipelining.late_reads import with_late_reads
from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.lookups import PlainLookups
from tt2gl.pipelining.loop_plan import LoopPlan
from tt2gl.pipelining.rings import Amount
from tt2gl.pipelining.tma import of_ring
from tt2gl.pipelining.trees import Member, Replaced, calls_in, code, edited, leading, lines_of, statement, under
from tt2gl.pipelining.walking import Compound, Lines
from tt2gl.trees import blocks, nodes_in
from tt2gl.words import RING_MARK


@dataclass
class Consumer:
    """The body without what only loads need, each marker a slot of its ring."""

    plan: LoopPlan
    rebuild: Compound
    indent: int

    def __post_init__(self) -> None:
        plan = self.plan
        tiles = {ring.name: plan.tile(ring) for ring in plan.rings}
        direct = [ring.name for ring in plan.rings if ring.direct]
        self.replaced = Read(RING_MARK, tiles, direct) if direct else Replaced(RING_MARK, tiles)
        self.plain = PlainLookups(plan.spec.rings)

    def lines(self, loop: ast.For, node: cst.For) -> Lines:
        """The whole body, the wait before the first statement that reads a ring. `indent` is that of the body."""
        made: Lines = []
        # Before copies that go directly to LDS all waves meet, so the wait stands at the top.
        waited: set[str] = {""} if self.plan.direct else set()
        for line, members, first in with_late_reads(loop, node, self.plan.late, self.plan.buffers):
            nodes: Sequence[cst.CSTNode] = [small for _, small in members] or [line]
            waits: Lines = []
            if not isinstance(first, ast.For):
                before = {*waited}
                waits = self._waits([marker for each in nodes for marker in calls_in(each, RING_MARK)], waited)
                if waits and waited - before == {""} and _loads_above(first, self.plan.parts.kept):
                    assert isinstance(first, ast.If)
                    assert isinstance(line, cst.If)
                    made += self._branches(first, line, self.indent, waits)
                    continue
            made += _below_blanks(waits, self._line(line, members, first, self.indent))
        return made

    def _waits(self, markers: Sequence[cst.Call], waited: set[str]) -> Lines:
        """The waits for tiles of markers, but those in `waited`, where they are noted."""
        plan = self.plan
        made: Lines = []
        for marker in markers:
            ring = plan.spec.ring(code(marker.func).removeprefix(RING_MARK))
            if ring.registers or ring.looked_up:
                continue
            arrivals = of_ring(plan.barriers, ring)
            name = arrivals.name if arrivals is not None else ""
            if name not in waited:
                waited.add(name)
                made += self.wait() if arrivals is None else arrivals.wait(plan.slots[arrivals.depth])
        return made

    def wait(self, *, last: bool = False) -> Lines:
        """The wait for the copies of an iteration's tiles; of the `last` ones, after which nothing is copied."""
        plan = self.plan
        younger = Amount("", 0) if last else plan.spec.ahead.plus(-1)
        note = "all copies are done, this iteration's among them"
        if younger.known != 0:
            further = "iteration" if younger.known == 1 else f"{younger.source} iterations"
            note = f"at most the copies of the next {further} are under way: this one's tiles are there"
        count = younger.source
        if plan.lookups is not None and plan.lookups.slots:
            # Of an iteration there are two groups; all but the last one's are done where their lookups were awaited.
            ahead = plan.spec.ahead
            fixed = "0" if ahead.known == 1 else "2"
            count = fixed if ahead.known is not None else f"0 if {ahead.base} == {1 - ahead.offset} else 2"
            note = "this iteration's tiles are there"
        made: Lines = [guarded(statement(f"async_copy.wait_group({count})", note), plan.flags)] if plan.copied else []
        if plan.moved:
            many = f"{plan.moved} * {younger.factor}" if plan.moved > 1 and younger.known != 0 else younger.source
            made.append(statement(f"tdm.async_wait({many})", *([] if made else [note])))
        if plan.spec.fenced and any(ring.in_memory and not ring.tile for ring in plan.rings):
            made.append(guarded(statement("fence_async_shared()"), plan.flags))
        return joined(made)

    def _block(self, statements: Sequence[ast.stmt], block: cst.BaseSuite, indent: int, waits: Lines) -> Lines:
        """The lines of a block, `waits` above the first of them that reads a ring."""
        made: Lines = []
        for line, members, first in lines_of(statements, block):
            here = waits if calls_in(line, RING_MARK) else []
            made += _below_blanks(here, self._line(line, members, first, indent))
            waits = [] if here else waits
        return made

    def _line(self, line: cst.BaseStatement, members: Sequence[Member], first: ast.stmt, indent: int) -> Lines:
        kept = self.plan.parts.kept
        if isinstance(line, cst.SimpleStatementLine):
            stays = [small for each, small in members if each in kept]
            left = [self._small(each, small) for each, small in members if each in kept]
            if len(left) == len(members) and all(map(_same, stays, left)):
                return [line]
            if not left:
                return []
            left[-1] = left[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            return [line.with_changes(body=left)]
        if first not in kept:
            return []
        if isinstance(line, cst.If) and isinstance(first, ast.If):
            return self._branches(first, line, indent, [])
        return self.rebuild(first, line, indent)

    def _small(self, each: ast.stmt, small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        if each in self.plan.carried:
            assert isinstance(small, cst.Assign)
            return small.with_changes(value=cst.parse_expression(f"{self.plan.carried[each]}[0]"))
        return edited(edited(small, self.plain), self.replaced)

    def _branches(self, first: ast.If, line: cst.If, indent: int, waits: Lines) -> Lines:
        """A branch, in each of its arms `waits` above the first line that reads a ring."""
        body = self._block(first.body, line.body, indent + 4, waits)
        other: Lines = []
        if isinstance(line.orelse, cst.Else):
            other = self._block(first.orelse, line.orelse.body, indent + 4, waits)
        elif isinstance(line.orelse, cst.If):
            assert isinstance(first.orelse[0], ast.If)
            other = self._branches(first.orelse[0], line.orelse, indent, waits)
        if body and calls_in(line, RING_MARK) and [code(each) for each in body] == [code(each) for each in other]:
            return [under(body[0], [*line.leading_lines, *leading(body[0])]), *body[1:]]
        return branched(line, body, other)


def _below_blanks(waits: Lines, lines: Lines) -> Lines:
    """Waits above the statement that they are for, the author's blank lines above both."""
    if not waits or not lines:
        return [*waits, *lines]
    above = leading(lines[0])
    blanks = list(takewhile(lambda each: each.comment is None, above))
    return [
        under(waits[0], [*blanks, *leading(waits[0])]),
        *waits[1:],
        under(lines[0], above[len(blanks) :]),
        *lines[1:],
    ]


def _loads_above(branch: ast.stmt, kept: Container[ast.stmt]) -> bool:
    """Whether every arm of a branch reads a ring, and one of them loads something else before.

    Triton's compiler waits below that load, whose latency the wait does not add to.
    """
    if not isinstance(branch, ast.If):
        return False
    above: list[ast.stmt] = []
    for arm in _arms(branch):
        first = next((at for at, each in enumerate(arm) if any(map(is_marker, nodes_in(each)))), len(arm))
        if first == len(arm) or any(list(blocks(each)) for each in arm[: first + 1]):
            return False
        above += [each for each in arm[:first] if each in kept]
    calls = [node for each in above for node in nodes_in(each) if isinstance(node, ast.Call)]
    return any(ast.unparse(call.func) == "gl.load" for call in calls)


def _arms(branch: ast.If) -> list[list[ast.stmt]]:
    """What a branch does either way, the arms of an `elif` among them; an empty one where there is no `else`."""
    match branch.orelse:
        case [ast.If() as other]:
            return [branch.body, *_arms(other)]
    return [branch.body, branch.orelse]


def _same(before: cst.CSTNode, after: cst.CSTNode) -> bool:
    return code(before) == code(after)
