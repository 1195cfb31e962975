"""One loop with markers, written anew: rings, prologue, steady state and drain."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from tt2gl.pipelining.counting import Count, without_option
from tt2gl.pipelining.loads import Load
from tt2gl.pipelining.rings import MARKER, Amount, LoopRings, NotPipelinedError, Ring
from tt2gl.pipelining.slices import Slice
from tt2gl.pipelining.texts import call, conjunction, operand
from tt2gl.pipelining.trees import (
    Member,
    Renamed,
    Replaced,
    Uncommented,
    alone,
    calls_in,
    code,
    comments,
    edited,
    indented,
    leading,
    lines_of,
    statement,
    under,
)
from tt2gl.pipelining.walking import Compound, Lines


@dataclass(frozen=True)
class LoopPlan:
    """All that is decided of one loop. `buffers`: the name of each ring's memory. `names`: names added, by use.

    `bindings`: what is bound before the loop, name and source.
    """

    spec: LoopRings
    copy: str
    parts: Slice
    count: Count
    rings: tuple[Ring, ...]
    buffers: Mapping[str, str]
    ahead: str
    turn: str | None
    stage: str
    first: str
    renamed: Mapping[str, str]
    bindings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class LoopWriter:
    """Writes one loop; `rebuild` does the statements nested in it that are not its own. `indent`: of the loop."""

    plan: LoopPlan
    rebuild: Compound
    indent: int

    def lines(self, loop: ast.For, node: cst.For) -> Lines:
        """What stands in the loop's place."""
        plan = self.plan
        lead = list(node.leading_lines)
        blank = [line for line in lead if line.comment is None][
            : lead.index(comments(lead)[0]) if comments(lead) else None
        ]
        made: Lines = [*self._rings(), *(statement(f"{name} = {source}") for name, source in plan.bindings)]
        made[0] = under(made[0], [*blank, *leading(made[0])])
        made += self._constants(loop.body, node.body)
        made += self._prologue(loop, node)
        body = _Consumer(self, loop, node).lines()
        body += _Producer(self, "steady").lines(loop.body, node.body)
        if plan.turn:
            body.append(statement(f"{plan.turn} += 1"))
        inner = indented(node.body)
        made.append(
            node.with_changes(
                leading_lines=[cst.EmptyLine(indent=False), *lead[len(blank) :]],
                target=cst.Name(plan.count.variable),
                iter=self._header(node.iter),
                body=inner.with_changes(body=body),
            )
        )
        return [*made, statement("async_copy.wait_group(0)")]

    def _rings(self) -> Lines:
        spec, made = self.plan.spec, []
        for ring in self.plan.rings:
            shape = ", ".join([spec.depth(ring).source, *ring.shape])
            source = f"gl.allocate_shared_memory({ring.dtype}, [{shape}], {ring.layout})"
            made.append(statement(f"{self.plan.buffers[ring.name]} = {source}"))
        note = _rings_note([spec.depth(ring) for ring in self.plan.rings], spec.ahead)
        made[0] = made[0].with_changes(leading_lines=[cst.EmptyLine(comment=cst.Comment(f"# {note}"))])
        return list(made)

    def _constants(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        return [
            alone(line, small)
            for line, members, _ in lines_of(statements, block)
            for each, small in members
            if each in self.plan.parts.constants and isinstance(line, cst.SimpleStatementLine)
        ]

    def _prologue(self, loop: ast.For, node: cst.For) -> Lines:
        plan, count, ahead = self.plan, self.plan.count, self.plan.spec.ahead
        lines: Lines = []
        if plan.stage == plan.first:
            span = f"0, {ahead.factor} * {operand(count.step)}, {count.step}" if count.step != "1" else ahead.source
        else:
            span = ahead.source
            start = "" if count.lower == "0" else f"{count.lower} + "
            times = plan.stage if count.step == "1" else f"{plan.stage} * {operand(count.step)}"
            if count.downwards:
                start, times = f"{count.lower} - ", f"{plan.stage} * {operand(count.step[1:].strip())}"
            lines.append(statement(f"{plan.first} = {start}{times}"))
        lines += _Producer(self, "prologue").lines(loop.body, node.body)
        block = cst.IndentedBlock(lines)
        return [cst.For(cst.Name(plan.stage), cst.parse_expression(f"gl.static_range({span})"), block)]

    def _header(self, iterable: cst.BaseExpression) -> cst.BaseExpression:
        """The loop's range, with its bounds as they are called now."""
        assert isinstance(iterable, cst.Call)
        count = self.plan.count
        bounds = (
            [count.upper] if sum(each.keyword is None for each in iterable.args) == 1 else [count.lower, count.upper]
        )
        given = without_option(iterable, "num_stages")
        named = {"step": count.step}
        changed = []
        for index, argument in enumerate(given.args):
            if argument.keyword is None:
                source = [*bounds, count.step][index]
            else:
                source = named.get(argument.keyword.value, code(argument.value))
            same = code(argument.value) == source
            changed.append(argument if same else argument.with_changes(value=cst.parse_expression(source)))
        return given.with_changes(args=changed)

    # ------------------------------------------------------------------------------------------------ slots of rings

    def slot(self, ring: Ring) -> str:
        """Where the tile of this iteration is."""
        plan, depth = self.plan, self.plan.spec.depth(ring)
        if depth.known == 1:
            return "0"
        return f"{plan.turn or plan.count.number(plan.count.variable)} % {depth.factor}"

    def coming_slot(self, ring: Ring) -> str:
        """Where the tile of the iteration ahead goes."""
        plan, depth = self.plan, self.plan.spec.depth(ring)
        if depth == plan.spec.ahead:
            return self.slot(ring)
        if plan.turn:
            return f"({plan.turn} + {plan.spec.ahead.source}) % {depth.factor}"
        return f"{plan.count.number(plan.ahead)} % {depth.factor}"

    def first_slot(self) -> str:
        """Where a tile of the prologue goes."""
        return self.plan.count.number(self.plan.stage) if self.plan.stage == self.plan.first else self.plan.stage


def _rings_note(depths: Sequence[Amount], ahead: Amount) -> str:
    run = "one iteration" if ahead.known == 1 else f"{ahead.source} iterations"
    sizes = list(dict.fromkeys("one tile" if depth.known == 1 else f"{depth.source} tiles" for depth in depths))
    kind = "a ring" if len(depths) == 1 else "rings"
    return f"{kind} of {' and '.join(sizes)}; loads run {run} ahead"


@dataclass
class _Consumer:
    """The body without what only loads need, each marker a slot of its ring."""

    writer: LoopWriter
    loop: ast.For
    node: cst.For

    def lines(self) -> Lines:
        """The whole body, the wait before the first statement that reads a ring."""
        plan = self.writer.plan
        slots = {ring.name: f"{plan.buffers[ring.name]}.index({self.writer.slot(ring)})" for ring in plan.rings}
        self.replaced = Replaced(MARKER, slots)
        made: Lines = []
        waited = False
        for line, members, first in lines_of(self.loop.body, self.node.body):
            nodes: Sequence[cst.CSTNode] = [small for _, small in members] or [line]
            if not waited and not isinstance(first, ast.For) and any(calls_in(node, MARKER) for node in nodes):
                made += self._wait()
                waited = True
            made += self._line(line, members, first, self.writer.indent + 4)
        return made

    def _wait(self) -> Lines:
        plan = self.writer.plan
        younger = plan.spec.ahead.plus(-1)
        note = "all copies are done, this iteration's among them"
        if younger.known != 0:
            note = (
                f"at most the copies of the next {younger.source} iterations are under way: this one's tiles are there"
            )
        made: Lines = [statement(f"async_copy.wait_group({younger.source})", note)]
        if any(ring.in_memory for ring in plan.rings):
            made.append(statement("fence_async_shared()"))
        return made

    def _block(self, statements: Sequence[ast.stmt], block: cst.BaseSuite, indent: int) -> Lines:
        return [made for line in lines_of(statements, block) for made in self._line(*line, indent)]

    def _line(self, line: cst.BaseStatement, members: Sequence[Member], first: ast.stmt, indent: int) -> Lines:
        kept = self.writer.plan.parts.kept
        if isinstance(line, cst.SimpleStatementLine):
            left = [edited(small, self.replaced) for each, small in members if each in kept]
            if len(left) == len(members) and not calls_in(line, MARKER):
                return [line]
            if not left:
                return []
            left[-1] = left[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            return [line.with_changes(body=left)]
        if first not in kept:
            return []
        if isinstance(line, cst.If) and isinstance(first, ast.If):
            return self._branches(first, line, indent)
        return self.writer.rebuild(first, line, indent)

    def _branches(self, first: ast.If, line: cst.If, indent: int) -> Lines:
        body = self._block(first.body, line.body, indent + 4)
        other: Lines = []
        if isinstance(line.orelse, cst.Else):
            other = self._block(first.orelse, line.orelse.body, indent + 4)
        elif isinstance(line.orelse, cst.If):
            assert isinstance(first.orelse[0], ast.If)
            other = self._branches(first.orelse[0], line.orelse, indent)
        if body and calls_in(line, MARKER) and [code(each) for each in body] == [code(each) for each in other]:
            return [under(body[0], [*line.leading_lines, *leading(body[0])]), *body[1:]]
        return branched(line, body, other)


def branched(line: cst.If, body: Lines, other: Lines) -> Lines:
    """An `if` with other branches, either of which may have become empty."""
    if not body and not other:
        return []
    if not body:
        test = cst.parse_expression(f"not {operand(code(line.test))}")
        return [line.with_changes(test=test, body=cst.IndentedBlock(other), orelse=None)]
    orelse: cst.If | cst.Else | None = None
    if len(other) == 1 and isinstance(line.orelse, cst.If) and isinstance(other[0], cst.If):
        orelse = other[0]
    elif other and isinstance(line.orelse, cst.Else):
        orelse = line.orelse.with_changes(body=indented(line.orelse.body).with_changes(body=other))
    elif other:
        orelse = cst.Else(cst.IndentedBlock(other))
    return [line.with_changes(body=indented(line.body).with_changes(body=body), orelse=orelse)]


@dataclass
class _Producer:
    """The statements that loads need, and the copies, for an iteration of the prologue or the one ahead."""

    writer: LoopWriter
    place: Literal["prologue", "steady"]

    def __post_init__(self) -> None:
        plan = self.writer.plan
        self.variable = plan.first if self.place == "prologue" else plan.ahead
        self.exists = plan.count.exists(self.variable)
        self.names = {**plan.renamed, plan.count.variable: self.variable}

    def lines(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        """The slice in its order."""
        plan = self.writer.plan
        made: Lines = []
        if self.place == "steady":
            made.append(statement(f"{plan.ahead} = {plan.count.further(plan.spec.ahead)}"))
        made += self._block(statements, block, {}, self.writer.indent + 4)
        last = max(index for index, line in enumerate(made) if f"{plan.copy}(" in code(line))
        return [*made[: last + 1], statement("async_copy.commit_group()"), *made[last + 1 :]]

    def _block(
        self, statements: Sequence[ast.stmt], block: cst.BaseSuite, copied: dict[str, str], indent: int
    ) -> Lines:
        parts = self.writer.plan.parts
        made: Lines = []
        for line, members, first in lines_of(statements, block):
            if isinstance(line, cst.SimpleStatementLine):
                said = any(each in parts.kept for each, _ in members)
                for each, small in members:
                    if each in parts.taken:
                        made.append(self._statement(line, small, comment=not said))
                        said = True
                    made += self._copies(small, copied, indent)
            elif isinstance(line, cst.If) and isinstance(first, ast.If):
                made += self._branches(first, line, copied, indent)
            elif first in parts.taken:
                raise NotPipelinedError("what a load needs is computed in a loop of its own")
        return made

    def _statement(
        self, line: cst.SimpleStatementLine, small: cst.BaseSmallStatement, *, comment: bool
    ) -> cst.BaseStatement:
        made = alone(line, edited(small, _Guarded(self.exists, self.names)))
        if comment and self.place == "steady":
            return under(made, comments(line.leading_lines))
        return under(edited(made, Uncommented()), [])

    def _copies(self, small: cst.BaseSmallStatement, copied: dict[str, str], indent: int) -> Lines:
        writer, plan = self.writer, self.writer.plan
        made: Lines = []
        for marker in calls_in(small, MARKER):
            assert isinstance(marker.func, cst.Name)
            name = marker.func.value.removeprefix(MARKER)
            ring = plan.spec.ring(name)
            renamed = edited(marker, _Guarded(self.exists, self.names))
            load = Load.of(renamed if self.place == "steady" else edited(renamed, Uncommented()))
            told = " ".join(f"{load.pointers}, {load.mask}".split())
            if name in copied:
                if copied[name] != told:
                    raise NotPipelinedError(f"ring {name} is loaded from two places in one iteration")
                continue
            copied[name] = told
            slot = writer.first_slot() if self.place == "prologue" else writer.coming_slot(ring)
            arguments = [
                f"{plan.buffers[name]}.index({slot})",
                load.pointers,
                f"mask={conjunction(load.mask, self.exists)}",
                *(f"{option}={value}" for option, value in load.options),
            ]
            made.append(cst.parse_statement(call(plan.copy, arguments, indent)))
        return made

    def _branches(self, first: ast.If, line: cst.If, copied: dict[str, str], indent: int) -> Lines:
        here, there = dict(copied), dict(copied)
        body = self._block(first.body, line.body, here, indent + 4)
        other: Lines = []
        if isinstance(line.orelse, cst.Else):
            other = self._block(first.orelse, line.orelse.body, there, indent + 4)
        elif isinstance(line.orelse, cst.If):
            assert isinstance(first.orelse[0], ast.If)
            other = self._branches(first.orelse[0], line.orelse, there, indent)
        copied |= {**here, **there}
        made = branched(edited(line, Renamed(self.names)), body, other)
        gone = first not in self.writer.plan.parts.kept
        if gone and self.place == "steady":
            return [under(each, comments(leading(each))) for each in made]
        return [_bare(each) for each in made]


def _bare(line: cst.BaseStatement) -> cst.BaseStatement:
    """A branch without the comments beside its header."""
    assert isinstance(line, cst.If)
    body = line.body
    if isinstance(body, cst.IndentedBlock):
        body = body.with_changes(header=cst.TrailingWhitespace(), footer=[])
    return line.with_changes(leading_lines=[], body=body)


class _Guarded(Renamed):
    """Renames, and masks plain loads, as an iteration that is not there must not read."""

    def __init__(self, condition: str, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.condition = condition

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        function = updated_node.func
        if not (isinstance(function, cst.Attribute) and code(function) in ("gl.load", "tl.load")):
            return updated_node
        arguments = list(updated_node.args)
        places = [index for index, each in enumerate(arguments) if each.keyword and each.keyword.value == "mask"]
        if not places and len(arguments) > 1 and arguments[1].keyword is None:
            places = [1]
        if places:
            old = arguments[places[0]]
            mask = cst.parse_expression(conjunction(code(old.value), self.condition))
            arguments[places[0]] = old.with_changes(value=mask)
            return updated_node.with_changes(args=arguments)
        made = cst.parse_expression(f"f(mask={self.condition})")
        assert isinstance(made, cst.Call)
        arguments[-1] = arguments[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        return updated_node.with_changes(args=[*arguments, made.args[0]])
