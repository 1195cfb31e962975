"""What runs ahead of a loop: the statements that its loads need, and the copies."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from tt2gl.pipelining.advances import after_first, stepping
from tt2gl.pipelining.branches import branched, joined
from tt2gl.pipelining.conditions import guarded as under_tests
from tt2gl.pipelining.direct import direct_call, direct_copy
from tt2gl.pipelining.flow import NONE, reads, writes
from tt2gl.pipelining.guards import Guarded, Loaded
from tt2gl.pipelining.loads import Load, as_load
from tt2gl.pipelining.lookups import Iteration
from tt2gl.pipelining.loop_plan import LoopPlan
from tt2gl.pipelining.registers import first_stores, held, stored
from tt2gl.pipelining.rings import NotPipelinedError
from tt2gl.pipelining.scalars import pointers_of
from tt2gl.pipelining.texts import call, guarded
from tt2gl.pipelining.tma import Barriers, moved, of_ring, offsets_of
from tt2gl.pipelining.trees import (
    Renamed,
    Uncommented,
    alone,
    bare,
    calls_in,
    code,
    comment,
    comments,
    edited,
    leading,
    lines_of,
    parsed,
    statement,
    under,
)
from tt2gl.pipelining.walking import Lines
from tt2gl.plan import Ring
from tt2gl.syntax import is_name
from tt2gl.words import RING_MARK


@dataclass
class Producer:
    """The statements that loads need, and the copies, for an iteration of the prologue or the one ahead."""

    plan: LoopPlan
    place: Literal["prologue", "steady"]
    indent: int

    def __post_init__(self) -> None:
        plan = self.plan
        self.variable = plan.first if self.place == "prologue" else plan.ahead
        steady = "" if plan.drain else plan.more
        counted = self.place == "prologue" and plan.turns is None
        self.exists = plan.count.exists(self.variable) if counted else steady
        self.names = {**plan.renamed, plan.count.variable: self.variable}
        self.taken = plan.parts.taken
        self.values: dict[ast.stmt, Sequence[str]] = {}
        self.copies: set[str] = set()
        self.told: set[str] = set()
        self.partly: dict[str, str] = {}
        if plan.lookups is not None and self.place == "steady":
            self.names |= plan.lookups.given
            self.taken, self.values = plan.lookups.used, dict(plan.lookups.values)

    def lines(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        """The slice in its order."""
        plan = self.plan
        made = self._block(statements, block, {}, self.indent)
        following = plan.turns.following() if plan.turns is not None else []
        if self.place == "steady" and plan.turns is None:
            made = with_variable(plan.ahead, plan.count.further(plan.spec.ahead), made)
        if not plan.copied:
            if plan.brought and plan.turns is None:
                made = self._advanced(made, self._brought(made))
            return [*made, *self._stores(statements, block), *following]
        if self.place == "steady" and plan.lookups is not None and plan.lookups.slots:
            made = [*self._awaited(), *made]
        last = max(index for index, line in enumerate(made) if any(call in code(line) for call in self.copies))
        made.insert(last + 1, under_tests(statement("async_copy.commit_group()"), plan.flags))
        at_once = plan.turns is None and (plan.read_at_once or plan.awaited)
        return [*(self._advanced(made, last + 2) if at_once else made), *following]

    def _brought(self, made: Lines) -> int:
        """How many lines there are up to the last load of a tile to registers."""
        names = self.plan.coming if self.place == "steady" else {**self.plan.buffers, **self.plan.begun}
        said = [NONE.union(reads(tree), writes(tree)) for tree in (ast.parse(code(line)) for line in made)]
        return max(at for at, each in enumerate(said, 1) if each & set(names.values()))

    def _stores(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        """The stores of a prologue's tiles below all of their loads."""
        if self.place == "steady":
            return []
        return [edited(line, Renamed(self.names)) for line in first_stores(self.plan, statements, block)]

    def _advanced(self, made: Lines, end: int) -> Lines:
        """The slice with what steps from tile to tile before its loads, of which `made[:end]` has the last.

        What lookups step is by then where they are for the iteration after, and stays behind. So does all where some
        stop with the last iteration: those take as many steps as there are iterations, and the first copies one; and
        where some step by what is looked up, of which the copies have that of the iteration after by then.
        """
        if self.plan.stops.names:
            return made
        lookups = self.plan.lookups
        own = NONE if lookups is None else NONE.union(*map(writes, lookups.found))
        looked_up = (
            own if lookups is None else own.union(lookups.given, lookups.given.values(), *lookups.values.values())
        )
        head, rest = made[:end], made[end:]
        steps = [line for line in rest if not own & writes(ast.parse(code(line)))]
        left = [line for line in rest if line not in steps]
        by_lookup = any(reads(ast.parse(code(line))) & looked_up for line in steps)
        if by_lookup or not stepping(steps, [*head, *left], self.variable):
            return made
        if self.place == "prologue":
            steps = [] if self.plan.spec.ahead.known == 1 else after_first(steps, self.plan.stage)
        return [*steps, *head, *left]

    def _awaited(self) -> Lines:
        """The wait for what was looked up last, where the wait for tiles leaves it under way."""
        ahead = self.plan.spec.ahead
        if ahead.known == 1:
            return []
        wait = "async_copy.wait_group(0)"
        if ahead.known is None:
            return [parsed(f"if {ahead.base} > {1 - ahead.offset}:\n    {wait}\n")]
        return [statement(wait)]

    def coming(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        """What is looked up for the iteration after the last whose copies are started."""
        plan, lookups = self.plan, self.plan.lookups
        if lookups is None:
            return []
        count, ahead = plan.count, plan.spec.ahead
        if self.place == "steady":
            here = Iteration({count.variable: lookups.variable}, lookups.more, plan.parts.kept, comments=True)
            found = lookups.lines(statements, block, here, plan.copy, self.indent)
            made = with_variable(lookups.variable, count.further(ahead.plus(1)), found)
            note = "where the tiles after these are"
        else:
            here = Iteration({count.variable: plan.first}, count.exists(plan.first), frozenset(), comments=False)
            made = [statement(f"{name} = {source}") for name, source in lookups.carried.items()]
            number = ahead.source if count.step == "1" else ahead.factor
            made += lookups.lines(statements, block, here, plan.copy, self.indent)
            made = with_variable(plan.first, count.at(number), made)
            note = "where the next tiles are, looked up one iteration before they are copied"
        if lookups.slots:
            made.append(statement("async_copy.commit_group()"))
        return [under(made[0], [*comment(note), *leading(made[0])]), *made[1:]]

    def _block(
        self, statements: Sequence[ast.stmt], block: cst.BaseSuite, copied: dict[str, str], indent: int
    ) -> Lines:
        parts = self.plan.parts
        made: Lines = []
        for line, members, first in lines_of(statements, block):
            if isinstance(line, cst.SimpleStatementLine):
                said = any(each in parts.kept for each, _ in members)
                for each, small in members:
                    if each in self.taken:
                        known = self._known(each, small)
                        made += self._looked_up(small, indent)
                        made.append(self._statement(line, each, known, noted=not said))
                        said = True
                    if each in self.plan.carried:
                        made.append(self._carried(each))
                    made += self._copies(small, copied, indent)
            elif isinstance(line, cst.If) and isinstance(first, ast.If):
                made += self._branches(first, line, copied, indent)
            elif first in self.taken:
                raise NotPipelinedError("what a load needs is computed in a loop of its own")
        return joined(made)

    def _known(self, each: ast.stmt, small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        """A statement with what it looks up as it is known by then."""
        lookups = self.plan.lookups
        if lookups is not None and self.place == "steady" and each in lookups.again:
            return cst.ensure_type(small, cst.Assign).with_changes(value=cst.Name(lookups.again[each]))
        if self.values.get(each):
            return edited(small, Loaded(iter(self.values[each])))
        return lookups.read(small) if lookups is not None and each in lookups.values else small

    def _looked_up(self, small: cst.BaseSmallStatement, indent: int) -> Lines:
        """What a prologue waits for, which has not looked it up before."""
        lookups = self.plan.lookups
        if lookups is None or not lookups.slots or self.place == "steady":
            return []
        renamed = edited(small, Guarded(self.exists, self.names))
        made = lookups.copies(renamed, self.exists, self.told, self.plan.copy, indent)
        if not made:
            return []
        return [*made, statement("async_copy.commit_group()"), statement("async_copy.wait_group(0)")]

    def _stopping(self, each: ast.stmt, small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        """A step that is none where there is no such iteration, if it is to stop."""
        if each not in self.plan.stops.steps:
            return small
        assert isinstance(small, cst.AugAssign)
        return small.with_changes(value=cst.parse_expression(f"gl.where({self.exists}, {code(small.value)}, 0)"))

    def _statement(
        self, line: cst.SimpleStatementLine, each: ast.stmt, small: cst.BaseSmallStatement, *, noted: bool
    ) -> cst.BaseStatement:
        if isinstance(small, cst.Assign) and is_name(small.value, "None"):
            # The mask gets the iterations' own beside it, and nothing is in the slice that is None but a mask.
            small = small.with_changes(value=cst.Name("True"))
        made = alone(line, self._stopping(each, edited(small, Guarded(self.exists, self.names))))
        if noted and self.place == "steady":
            return under(made, comments(line.leading_lines))
        return bare(made)

    def _carried(self, each: ast.stmt) -> cst.BaseStatement:
        """Has a value wait behind those of the iterations before, of which the first one is done with its own."""
        (name,) = writes(each)
        waiting = self.plan.carried[each]
        others = waiting if self.place == "prologue" else f"{waiting}[1:]"
        return statement(f"{waiting} = {others} + ({self.names.get(name, name)},)")

    def _copies(self, small: cst.BaseSmallStatement, copied: dict[str, str], indent: int) -> Lines:
        plan = self.plan
        made: Lines = []
        for marker in calls_in(small, RING_MARK):
            assert isinstance(marker.func, cst.Name)
            name = marker.func.value.removeprefix(RING_MARK)
            ring = plan.spec.ring(name)
            if ring.looked_up:
                continue
            renamed = edited(marker, Guarded(self.exists, self.names))
            if (arrivals := of_ring(plan.barriers, ring)) is not None:
                made += self._arrivals(arrivals, ring, renamed, copied, indent)
                continue
            bare_marker = renamed if self.place == "steady" else edited(renamed, Uncommented())
            load = Load.of(bare_marker)
            told = offsets_of(bare_marker) if ring.tile else " ".join(f"{load.pointers}, {load.mask}".split())
            if name in copied:
                if copied[name] != told:
                    raise NotPipelinedError(f"ring {name} is loaded from two places in one iteration")
                if name not in self.partly:
                    continue
            copied[name] = told
            if ring.registers:
                made.append(self._loaded(ring, marker))
                continue
            slot = plan.first_slot(ring) if self.place == "prologue" else plan.free_slot(ring)
            target = f"{plan.buffers[name]}.index({slot})"
            if ring.tile:
                given = moved(load.pointers, told, target, self.exists)
                made.append(cst.parse_statement(call(ring.direct, given, indent)))
                continue
            if ring.direct:
                copy, arguments = direct_call(ring.direct, load), direct_copy(target, load, self.exists)
            else:
                options = [f"{option}={value}" for option, value in load.options]
                pointers = pointers_of(load.pointers, plan.layouts[name]) if ring.scalar else load.pointers
                arguments = [target, pointers, f"mask={guarded(load.mask, self.exists)}", *options]
                copy = plan.copy
            self.copies.add(f"{copy}(")
            made.append(cst.parse_statement(call(copy, arguments, indent)))
        return made

    def _loaded(self, ring: Ring, marker: cst.Call) -> cst.BaseStatement:
        """A tile's load to registers: on to its slot at once, where that is free already."""
        load = edited(as_load(marker), Guarded(self.exists, self.names))
        if self.place == "steady" and self.plan.early:
            return cst.parse_statement(f"{self.plan.coming[ring.name]} = {code(load)}")
        tile = code(edited(load, Uncommented()))
        if ring.held:
            return held(self.plan, ring, tile)
        if self.place == "prologue" and ring.name in self.plan.begun:
            return cst.parse_statement(f"{self.plan.begun[ring.name]} = {tile}")
        slot = self.plan.first_slot(ring) if self.place == "prologue" else self.plan.free_slot(ring)
        return stored(self.plan, ring, slot, tile)

    def _arrivals(self, arrivals: Barriers, ring: Ring, marker: cst.Call, copied: dict[str, str], indent: int) -> Lines:
        """A tile's copy by TMA; before the first of those that one mbarrier is for, what that is to expect."""
        plan, name = self.plan, ring.name
        offsets = offsets_of(marker if self.place == "steady" else edited(marker, Uncommented()))
        if name in copied:
            if copied[name] != offsets:
                raise NotPipelinedError(f"ring {name} is loaded from two places in one iteration")
            if name in self.partly:
                raise NotPipelinedError(f"ring {name} is loaded under one condition or another")
            return []
        slot = plan.first_slot(ring) if self.place == "prologue" else plan.free_slot(ring)
        made: Lines = []
        if not copied.keys() & arrivals.descriptors.keys():
            made.append(arrivals.expect(slot, self.exists, indent))
        copied[name] = offsets
        made.append(arrivals.copy(name, offsets, slot, plan.buffers[name], self.exists, indent))
        return made

    def _branches(self, first: ast.If, line: cst.If, copied: dict[str, str], indent: int) -> Lines:
        here, there = dict(copied), dict(copied)
        test, partly = ast.unparse(first.test), self.partly
        self.partly = {name: under_which for name, under_which in partly.items() if under_which != test}
        body = self._block(first.body, line.body, here, indent + 4)
        self.partly = {**self.partly, **partly}
        other: Lines = []
        if isinstance(line.orelse, cst.Else):
            other = self._block(first.orelse, line.orelse.body, there, indent + 4)
        elif isinstance(line.orelse, cst.If):
            assert isinstance(first.orelse[0], ast.If)
            other = self._branches(first.orelse[0], line.orelse, there, indent)
        # What follows a branch may have to load what only one side of it does: under another flag, say.
        self.partly |= {
            name: test if name in here else "" for name in sorted((here.keys() ^ there.keys()) - copied.keys())
        }
        copied |= {**here, **there}
        made = branched(edited(line, Renamed(self.names)), body, other)
        gone = first not in self.plan.parts.kept
        if gone and self.place == "steady":
            return [under(each, comments(leading(each))) for each in made]
        return [_uncommented(each) for each in made]


def with_variable(name: str, source: str, lines: Lines) -> Lines:
    """Statements under one that binds a variable, where they read it."""
    read = any(name in reads(ast.parse(code(line))) for line in lines)
    return [statement(f"{name} = {source}"), *lines] if read else lines


def _uncommented(line: cst.BaseStatement) -> cst.BaseStatement:
    """A branch without the comments beside its header."""
    assert isinstance(line, cst.If)
    body = line.body
    if isinstance(body, cst.IndentedBlock):
        body = body.with_changes(header=cst.TrailingWhitespace(), footer=[])
    return line.with_changes(leading_lines=[], body=body)
