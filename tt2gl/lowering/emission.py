"""Writes a function's block pointers as pointers, masks and offsets: the edits of its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.lowering.expressions import Expression
from tt2gl.lowering.flow import Reaching
from tt2gl.lowering.naming import Names, beside, stem
from tt2gl.lowering.outline import Branch, Define, Element, Loop, Move, Node, Nothing, Pass, Step, assigned
from tt2gl.lowering.pointer_calls import Access, Make
from tt2gl.lowering.shapes import Role, Shape, always_inside
from tt2gl.lowering.signs import Signs
from tt2gl.source import SourceFile
from tt2gl.syntax import comments_in

Part = Role | Literal["block"]

# Beyond this a line of a load or store gives its mask a line of its own.
_WIDTH = 120


@dataclass(frozen=True)
class Spans:
    """Where nodes stand in a text, in bytes."""

    source: SourceFile
    raw: bytes

    def of(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end, without the parentheses around an expression."""
        span = self.source.spans[node]
        return span.start, span.start + span.length

    def whole(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Start and end with its parentheses."""
        start, end = self.of(node)
        for _ in node.lpar:
            start = self._opening(start)
        for _ in node.rpar:
            while self.raw[end : end + 1] != b")":
                end = self.raw.index(b"\n", end) if self.raw[end : end + 1] == b"#" else end + 1
            end += 1
        return start, end

    def _opening(self, end: int) -> int:
        """The parenthesis that opens before a place; one in a comment is none."""
        start = self.raw.rfind(b"(", 0, end)
        if self.raw[start + 1 : end].strip():
            while (comment := self.raw.find(b"#", self.raw.rfind(b"\n", 0, start) + 1, start)) >= 0:
                start = self.raw.rfind(b"(", 0, comment)
        return start

    def argument(self, arg: cst.Arg) -> tuple[int, int]:
        """Start and end of an argument, keyword and all."""
        start, end = self.whole(arg.value)
        return (self.of(arg.keyword)[0] if arg.keyword is not None else start), end

    def text(self, node: cst.BaseExpression) -> str:
        """An expression as it is written, with its parentheses."""
        start, end = self.whole(node)
        return self.raw[start:end].decode()

    def gone(self, start: int, end: int) -> Edit:
        """A statement taken away, with its line if nothing else is there."""
        first, last = self.raw.rfind(b"\n", 0, start) + 1, self.raw.find(b"\n", end)
        rest = self.raw[end:last]
        return Edit(start, end + len(rest) - len(rest.lstrip()), "") if rest.strip() else Edit(first, last + 1, "")

    def line(self, place: int) -> tuple[str, int]:
        """The indentation of the line of a place, and how long the line is up to there."""
        start = self.raw.rfind(b"\n", 0, place) + 1
        line = self.raw[start:]
        return line[: len(line) - len(line.lstrip(b" \t"))].decode(), place - start


@dataclass(frozen=True, eq=False)
class Given:
    """What a call gives a function of a block pointer.

    `parts` as source; `signs`: which offsets are never negative; `optional`: it may be None.
    """

    event: Pass
    language: str
    rank: int
    parts: Mapping[tuple[Part, int], str]
    signs: tuple[bool, ...]
    optional: bool


@dataclass
class Emission:
    """One function on its way.

    `at_use`: addresses are made where they are used, as Triton makes them. `summed`: offsets that blocks of several
    tensors have are added up before they are added to a base, where they are not.
    """

    spans: Spans
    reaching: Reaching
    shapes: Mapping[str, Shape]
    signs: Signs
    names: Names
    newline: str
    at_use: bool = False
    summed: bool = False
    edits: list[Edit] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)

    def run(self, nodes: Sequence[Node], parameters: Mapping[str, Make], first: cst.CSTNode) -> None:
        """Make the edits of a function; `parameters` are those that are block pointers, `first` its first statement."""
        available: dict[tuple[str, str], frozenset[str]] = {}
        lines = [line for name, make in parameters.items() for line in self._define(name, make, available)]
        if lines:
            self._insert(first, lines)
        self._walk(nodes, available)

    # ------------------------------------------------------------------------------------------------ the statements

    def _walk(self, nodes: Sequence[Node], available: dict[tuple[str, str], frozenset[str]]) -> None:
        """Lower statements; `available` are the keys of indices at hand, with the names that each depends on."""
        for node in nodes:
            if isinstance(node, Step):
                self._step(node, available)
                continue
            bodies = node.bodies if isinstance(node, Branch) else (node.body,)
            killed = assigned([node])
            if isinstance(node, Loop):
                _kill(available, killed)
            for body in bodies:
                self._walk(body, dict(available))
            _kill(available, killed)

    def _step(self, step: Step, available: dict[tuple[str, str], frozenset[str]]) -> None:
        lines: list[str] = []
        for event in step.events:
            if isinstance(event, Access) and event in self.reaching:
                self._access(event, step, lines, available)
            elif isinstance(event, Pass) and event in self.reaching:
                self._pass(event)
            elif isinstance(event, Element) and event in self.reaching:
                # What a block pointer has become may be a pointer or a tensor of pointers: both say it so.
                start, end = self.spans.of(event.node)
                self.edits.append(Edit(start, end, f"{event.name}.dtype.element_ty"))
        for event in step.events:
            if isinstance(event, Define):
                lines += self._define(event.name, event.make, available, event.condition)
                lines = [*self._comments(event.make, step), *lines]
                self._replace(step, event.value, lines)
            elif isinstance(event, Nothing):
                lines = [f"{name} = None" for name in self._parts(event)]
                if lines:
                    self._insert(step.node, lines, inline=step.inline)
                    lines = []
            elif isinstance(event, Move):
                lines += self._move(event)
                self._replace(step, event.advance.node, lines)
        if lines and not any(isinstance(event, (Define, Move)) for event in step.events):
            self._insert(step.node, lines, inline=step.inline)
        _kill(available, step.assigned)

    def _insert(self, node: cst.CSTNode, lines: Sequence[str], *, inline: bool = False) -> None:
        place = self.spans.of(node)[0]
        separator = self._separator(node, inline=inline)
        self.edits.append(Edit(place, place, "".join(f"{line}{separator}" for line in lines)))

    def _replace(self, step: Step, value: cst.BaseExpression, lines: Sequence[str]) -> None:
        start, end = self.spans.of(step.node)[0], self.spans.whole(value)[1]
        self.edits.append(Edit(start, end, self._separator(step.node, inline=step.inline).join(lines)))

    def _separator(self, node: cst.CSTNode, *, inline: bool) -> str:
        return "; " if inline else self.newline + self.spans.line(self.spans.of(node)[0])[0]

    def _comments(self, make: Make, step: Step) -> list[str]:
        """The author's comments between the arguments of a call that goes."""
        return [] if step.inline else comments_in(make.node)

    # ---------------------------------------------------------------------------------------------- the three events

    def _define(
        self, pointer: str, make: Make, available: dict[tuple[str, str], frozenset[str]], condition: str = ""
    ) -> Iterator[str]:
        shape = self.shapes[pointer]
        rank = len(make.dimensions)
        terms = [make.base.summand()]
        for dimension, part in enumerate(make.dimensions):
            values: dict[Role, Expression] = {"offset": part.offset, "stride": part.stride, "bound": part.bound}
            for role, value in values.items():
                if shape.has(role, dimension):
                    name = self.names.beside(pointer, role, dimension, rank)
                    asked = value.text if value.text.isidentifier() else pointer
                    present = condition or (f" if {asked} is not None else None" if make.optional else "")
                    yield f"{name} = {make.language}.cast({value.text}, {make.language}.int64){present}"
            if dimension in shape.late:
                continue
            kept = shape.has("index", dimension)
            private = self.names.beside(pointer, "index", dimension, rank) if kept else ""
            index, lines = self._index(pointer, make, dimension, available, private=private)
            yield from lines
            terms.append(_term(index, dimension, rank, part.stride))
        if terms != [pointer] or condition:
            yield f"{pointer} = {self._address(terms, together=self.summed and make in self._alike)}{condition}"

    def _parts(self, event: Nothing) -> Iterator[str]:
        """What stands beside a variable that is None."""
        shape = self.shapes.get(event.name)
        for role, dimension in sorted(shape.beside) if shape is not None else ():
            yield self.names.beside(event.name, role, dimension, self._rank(event.name))

    def _rank(self, pointer: str) -> int:
        """How many dimensions a variable's blocks have."""
        for event, reach in self.reaching.items():
            read = event.advance.pointer if isinstance(event, Move) else getattr(event, "pointer", None)
            name = event.name if isinstance(event, Pass) else read.value if isinstance(read, cst.Name) else ""
            if name == pointer:
                return len(self._first(reach.origins).dimensions)
        return 0

    def _move(self, event: Move) -> Iterator[str]:
        source, shape = event.advance.pointer.value, self.shapes[event.name]
        rank = len(event.advance.offsets)
        written = False
        if source != event.name:
            yield f"{event.name} = {source}"
            written = True
        for role, dimension in sorted(shape.beside):
            if dimension >= rank:
                continue
            own = self.names.beside(event.name, role, dimension, rank)
            other = self.names.beside(source, role, dimension, rank)
            step = event.advance.offsets[dimension]
            if role == "offset" and step.literal != 0:
                yield f"{own} += {step.text}" if own == other else f"{own} = {other} + {step.operand()}"
                written = True
            elif own != other:
                yield f"{own} = {other}"
        if not written:
            yield "pass"

    def _pass(self, event: Pass) -> None:
        """Note what a function is to be given beside a pointer."""
        makes = self.reaching[event].origins
        make = self._first(makes)
        shape, rank = self.shapes[event.name], len(make.dimensions)
        parts: dict[tuple[Part, int], str] = {}
        for dimension, part in enumerate(make.dimensions):
            values: dict[Role, Expression] = {"offset": part.offset, "stride": part.stride, "bound": part.bound}
            for role, value in values.items():
                kept = shape.has(role, dimension)
                parts[role, dimension] = self.names.beside(event.name, role, dimension, rank) if kept else value.text
            parts["block", dimension] = part.block.text
        signs = tuple(self._nonnegative(makes, dimension) for dimension in range(rank))
        self.given.append(Given(event, make.language, rank, parts, signs, self.reaching[event].absent))

    def _first(self, makes: Iterable[Make]) -> Make:
        return min(makes, key=lambda make: self.spans.of(make.node)[0])

    def _access(
        self, event: Access, step: Step, lines: list[str], available: dict[tuple[str, str], frozenset[str]]
    ) -> None:
        makes = self.reaching[event].origins
        make = self._first(makes)
        rank = len(make.dimensions)
        name = "" if isinstance(event.pointer, Make) else event.pointer.value
        shape = self.shapes[name] if name else Shape(frozenset(), frozenset(range(rank)), frozenset())
        terms = [name or make.base.summand()]
        checks: list[str] = []
        for dimension, part in enumerate(make.dimensions):
            checked = dimension in event.checked and not all(always_inside(m.dimensions[dimension]) for m in makes)
            late = dimension in shape.late
            if not late and not checked:
                continue
            if shape.has("index", dimension) and not late:
                index = self.names.beside(name, "index", dimension, rank)
            else:
                index, made = self._index(name, make, dimension, available)
                lines += made
            if late:
                stride = part.stride.operand() if part.stride.literal != 1 else ""
                if shape.has("stride", dimension):
                    stride = self.names.beside(name, "stride", dimension, rank)
                terms.append(_sliced(index, dimension, rank) + (f" * {stride}" if stride else ""))
            if checked:
                bound = part.bound.summand()
                if shape.has("bound", dimension):
                    bound = self.names.beside(name, "bound", dimension, rank)
                here = _sliced(index, dimension, rank)
                if not self._nonnegative(makes, dimension):
                    checks.append(f"{here} >= 0")
                checks.append(f"{here} < {bound}")
        mask = checks[0] if len(checks) == 1 else " & ".join(f"({check})" for check in checks)
        self._arguments(event, step, lines, self._address(terms, together=self.at_use), mask)

    @staticmethod
    def _address(terms: Sequence[str], *, together: bool) -> str:
        """The pointers of a block: Triton's RewriteTensorPointer adds offsets up before it adds them to the base."""
        base, *offsets = terms
        return f"{base} + ({' + '.join(offsets)})" if together and len(offsets) > 1 else " + ".join(terms)

    @cached_property
    def _alike(self) -> set[Make]:
        """Those with the offsets and strides of one of another base: the sum of them is computed once."""
        by_offsets: dict[tuple[tuple[str, ...], ...], set[Make]] = {}
        for make in (each for reach in self.reaching.values() for each in reach.origins):
            parts = tuple((part.offset.text, part.stride.text, part.block.text) for part in make.dimensions)
            by_offsets.setdefault(parts, set()).add(make)
        several = (makes for makes in by_offsets.values() if len({make.base.text for make in makes}) > 1)
        return {make for makes in several for make in makes}

    def _arguments(self, event: Access, step: Step, lines: list[str], pointer: str, mask: str) -> None:
        """The edits of a load's or store's own arguments."""
        start, end = self.spans.whole(event.where.value)
        self.edits.append(Edit(start, end, pointer))
        place = self.spans.of(event.node)
        if mask and not step.inline and self.spans.line(place[0])[1] + len(pointer) + len(mask) > _WIDTH - 40:
            of = event.pointer if isinstance(event.pointer, Make) else event.pointer.value
            named = self.names.fresh(f"{'block' if isinstance(of, Make) else stem(of)}_mask")
            lines.append(f"{named} = {mask}")
            mask = named
        said = [f"mask={mask}"] if mask else []
        if mask and event.other is not None:
            said.append(f"other={event.other}")
        for arg in (event.check, event.padding):
            if arg is None:
                continue
            start, end = self.spans.argument(arg)
            if said:
                self.edits.append(Edit(start, end, ", ".join(said)))
                said = []
            else:
                before = event.node.args[event.node.args.index(arg) - 1]
                self.edits.append(Edit(self.spans.argument(before)[1], end, ""))

    # ---------------------------------------------------------------------------------------------------- the indices

    def _index(
        self,
        pointer: str,
        make: Make,
        dimension: int,
        available: dict[tuple[str, str], frozenset[str]],
        private: str = "",
    ) -> tuple[str, list[str]]:
        """The name of the index along a dimension, and the statement that makes it where it is not at hand."""
        part, rank = make.dimensions[dimension], len(make.dimensions)
        shape = self.shapes.get(pointer)
        kept = shape is not None and shape.has("offset", dimension)
        offset = self.names.beside(pointer, "offset", dimension, rank) if kept else part.offset.summand()
        # The offset is 32 bits wide, and is added in 64: as `make_block_ptr` has it.
        words = f"{make.language}.arange(0, {part.block.text})"
        if not kept:
            words += f".to({make.language}.int64)"
        if kept or part.offset.literal != 0:
            words = f"{offset} + {words}"
        if private:
            return private, [f"{private} = {words}"]
        key = (offset, part.block.text)
        wanted = beside(pointer or "block", "index", dimension, rank)
        if not kept and not part.offset.pure:
            name = self.names.beside(pointer or "block", "index", dimension, rank)
            return name, [f"{name} = {words}"]
        name = self.names.shared(None if kept else part.offset, part.bound, key, wanted)
        if key in available:
            return name, []
        # What stands beside a pointer changes with it.
        available[key] = part.block.names | ({pointer} if kept else part.offset.names)
        return name, [f"{name} = {words}"]

    def _nonnegative(self, makes: frozenset[Make], dimension: int) -> bool:
        """Whether a block never starts before its dimension does."""
        moves = [
            event.advance.offsets[dimension]
            for event, reach in self.reaching.items()
            if isinstance(event, Move) and reach.origins & makes
        ]
        values = [make.dimensions[dimension].offset for make in makes] + moves
        return all(self.signs.nonnegative(value.node) for value in values)


def _kill(available: dict[tuple[str, str], frozenset[str]], names: frozenset[str]) -> None:
    for key in [key for key, reads in available.items() if reads & names]:
        del available[key]


def _sliced(index: str, dimension: int, rank: int) -> str:
    if rank == 1:
        return index
    return f"{index}[{', '.join(':' if axis == dimension else 'None' for axis in range(rank))}]"


def _term(index: str, dimension: int, rank: int, stride: Expression) -> str:
    sliced = _sliced(index, dimension, rank)
    return sliced if stride.literal == 1 else f"{sliced} * {stride.operand()}"
