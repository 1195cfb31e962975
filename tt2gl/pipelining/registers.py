"""Tiles that come to registers, and go to their slots from there: where nothing copies them to shared memory itself.

a_next = gl.load(a_ptrs, mask=more)         # at the top of an iteration: a tile of one ahead
a = a_buf.index(slot).load(a_layout)
acc = mfma(a, b, acc)
a_buf.index(slot).store(a_next)             # at its end: into the slot that has been read
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

import libcst as cst

from tt2gl.pipelining.branches import branched, joined, parted
from tt2gl.pipelining.conditions import guarded
from tt2gl.pipelining.flow import NONE, reads, writes
from tt2gl.pipelining.loop_plan import LoopPlan
from tt2gl.pipelining.trees import calls_in, code, comment, lines_of, under
from tt2gl.pipelining.walking import Lines
from tt2gl.plan import Ring
from tt2gl.visitors import Editor
from tt2gl.words import RING_MARK


def stored(plan: LoopPlan, ring: Ring, slot: str, value: str) -> cst.BaseStatement:
    """Puts a tile that has come into a slot."""
    if ring.stored:
        value = f"{ring.stored}({value})"
    return cst.parse_statement(f"{plan.buffers[ring.name]}.index({slot}).store({value})")


def replaced(plan: LoopPlan, ring: Ring, slots: str, value: str) -> Lines:
    """Puts a tile that has come into the slot of the oldest, as the last one."""
    if ring.stored:
        value = f"{ring.stored}({value})"
    slot = f"{plan.buffers[ring.name]}.index({plan.slot(ring)})"
    return [
        cst.parse_statement(f"{slots} = {slots}[1:] + ({slot},)"),
        cst.parse_statement(f"{slots}[-1].store({value})"),
    ]


def placed(plan: LoopPlan) -> Lines:
    """The slots of tiles that have come, before the first iteration."""
    slots = {} if plan.last is None else plan.last.slots
    if plan.last is None or not slots:
        return []
    made: Lines = [cst.parse_statement(f"{name} = ()") for name in slots.values()]
    made[0] = under(made[0], comment("the slots that tiles are in, the next one to read first"))
    each = [
        guarded(
            cst.parse_statement(f"{name} = {name} + ({plan.buffers[ring]}.index({plan.last.counter}),)"),
            plan.conditions.get(ring, ()),
        )
        for ring, name in slots.items()
    ]
    span = cst.parse_expression(f"gl.static_range({plan.spec.ahead.source})")
    return [*made, cst.For(cst.Name(plan.last.counter), span, cst.IndentedBlock(joined(each)))]


def held(plan: LoopPlan, ring: Ring, tile: str, *, gone: bool = False) -> cst.BaseStatement:
    """Has a tile wait in registers behind those that came before it; the first of which may be `gone` by then."""
    tiles = plan.buffers[ring.name]
    return cst.parse_statement(f"{tiles} = {tiles}{'[1:]' if gone else ''} + ({tile},)")


def rotated(plan: LoopPlan) -> Lines:
    """The tiles in registers, and the places of others, the next one first, where no other comes."""
    names = [plan.buffers[ring.name] for ring in plan.rings if ring.held]
    names += plan.last.slots.values() if plan.last is not None else []
    return [cst.parse_statement(f"{name} = {name}[1:] + {name}[:1]") for name in names]


class TilesRead(Editor):
    """What is read of rings, outside of branches, under names; `found`: the names and what they are of.

    `names`: of what is read of each ring, by its tile. Of a ring that is read in two layouts it is the first.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names
        self.found: dict[str, str] = {}

    def visit_If(self, node: cst.If) -> bool:
        """Leave what is in a branch where it is."""
        return False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Name what is read of a ring."""
        match original_node.func:
            case cst.Attribute(tile, cst.Name("load")):
                name, source = self.names.get(code(tile), ""), code(original_node)
                if name and self.found.setdefault(name, source) == source:
                    return cst.Name(name)
        return updated_node


def stores(plan: LoopPlan, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
    """Puts the tiles that an iteration has loaded ahead into the slots that it has read."""
    return _Stores(plan, partial(_ahead, plan)).lines(statements, block, frozenset())


def first_stores(plan: LoopPlan, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
    """Puts the tiles of an iteration of the prologue into their slots, all of which have been loaded, as Triton's."""
    return _Stores(plan, partial(_at_first, plan)).lines(statements, block, frozenset())


def _ahead(plan: LoopPlan, ring: Ring) -> Lines:
    coming = plan.coming[ring.name]
    if ring.held:
        return [held(plan, ring, coming, gone=True)]
    if plan.last is not None and ring.name in plan.last.slots:
        return replaced(plan, ring, plan.last.slots[ring.name], coming)
    return [stored(plan, ring, plan.free_slot(ring), coming)]


def _at_first(plan: LoopPlan, ring: Ring) -> Lines:
    return [stored(plan, ring, plan.first_slot(ring), plan.begun[ring.name])] if ring.name in plan.begun else []


def between(plan: LoopPlan, ahead: Lines, here: Lines) -> Lines:
    """An iteration that loads the tiles of one ahead beside the lines that read its own, as Triton's does.

    Above them, or below where it does (`Ring.late`): so the registers of a tile that is read late are held for less.
    All loads stand above the whole where either part of it binds what the other reads or binds. Branches on constants
    of the compilation are taken apart for it.
    """
    whole = [*ahead, *here]
    ahead, here = (
        [part for line in lines for part in (parted(line, own=True) if is_decided(line, plan) else [line])]
        for lines in (ahead, here)
    )
    loading, reading = ([ast.parse(code(line)) for line in part] for part in (ahead, here))
    bound, rebound = (NONE.union(*map(writes, part)) for part in (loading, reading))
    if bound & NONE.union(rebound, *map(reads, reading)) or rebound & NONE.union(*map(reads, loading)):
        return whole
    made: Lines = []
    done = 0
    for line in here:
        for late in (False, True):
            tiles = {plan.coming[ring.name] for ring in _read(plan, line) if ring.late == late}
            last = max((at for at, each in enumerate(loading, 1) if writes(each) & tiles), default=0)
            made += [*joined(ahead[done:last]), *([] if late else [line])]
            done = max(done, last)
    return joined([*made, *ahead[done:]])


def is_decided(line: cst.BaseStatement, plan: LoopPlan) -> TypeGuard[cst.If]:
    """Whether a line is a branch on a constant of the compilation."""
    return isinstance(line, cst.If) and ast.unparse(ast.parse(code(line.test), mode="eval")) in plan.decided


def _read(plan: LoopPlan, line: cst.BaseStatement) -> list[Ring]:
    """The rings whose tiles a line reads."""
    text = code(line)
    return [ring for ring in plan.rings if ring.name in plan.coming and plan.tile(ring) in text]


@dataclass(frozen=True)
class _Stores:
    """`put`: the lines that put a ring's tile where it belongs."""

    plan: LoopPlan
    put: Callable[[Ring], Lines]

    def lines(self, statements: Sequence[ast.stmt], block: cst.BaseSuite, above: frozenset[str]) -> Lines:
        """The stores of a block, each ring's once, and none of the rings `above`."""
        made: Lines = []
        done = set(above)
        for line, _, first in lines_of(statements, block):
            if isinstance(line, cst.If) and isinstance(first, ast.If):
                made += self._branches(first, line, frozenset(done))
                continue
            for marker in calls_in(line, RING_MARK) if isinstance(line, cst.SimpleStatementLine) else ():
                ring = self.plan.spec.ring(code(marker.func).removeprefix(RING_MARK))
                if ring.registers and ring.name not in done:
                    done.add(ring.name)
                    made += self.put(ring)
        return made

    def _branches(self, first: ast.If, line: cst.If, above: frozenset[str]) -> Lines:
        body = self.lines(first.body, line.body, above)
        other: Lines = []
        if isinstance(line.orelse, cst.Else):
            other = self.lines(first.orelse, line.orelse.body, above)
        elif isinstance(line.orelse, cst.If):
            assert isinstance(first.orelse[0], ast.If)
            other = self._branches(first.orelse[0], line.orelse, above)
        if [code(each) for each in body] == [code(each) for each in other]:
            return body
        return [under(each, []) for each in branched(line, body, other)]
