"""Tensor descriptors made in kernels as pointers and masks, Triton to Triton: for targets that have no TMA.

    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    a = a_desc.load([offs_m, offs_k])

becomes

    a_rows = offs_m + tl.arange(0, BLOCK_M).to(tl.int64)
    a_cols = offs_k + tl.arange(0, BLOCK_K).to(tl.int64)
    a = tl.load(
        a_ptr + a_rows[:, None] * stride_am + a_cols[None, :],
        mask=(a_rows[:, None] < M) & (a_cols[None, :] < K),
        other=0.0,
    )

What it means follows Triton's own RewriteTensorDescriptorToPointer: indices of 64 bits, both ends of every dimension
checked (the lower one unless the text shows that an offset is never negative), the descriptor's padding outside,
atomics in order of release. Of one name that several blocks make a descriptor under, as arms of a branch do, each is
known to the end of its block. A function whose descriptors are used in another way stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import libcst as cst

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.descriptor_calls import Descriptor, Extent, Transfer, is_make, read_make, read_transfer, transferred
from tt2gl.lowering.descriptor_texts import Assigned, Makes, Resolve, stem_of
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.expressions import Expression, target_names
from tt2gl.lowering.naming import Names
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.lowering.signs import Signs
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.source import SourceFile
from tt2gl.syntax import comments_in, is_name
from tt2gl.visitors import VariableReader

_WIDTH = 120
_AXES = {1: ("offs",), 2: ("rows", "cols")}

Indices = dict[tuple[str, str, str], tuple[str, frozenset[str]]]
"""Names of indices that hold their value, by descriptor, dimension and offset, each with the names it was made of."""


def lowered_descriptors(source: SourceFile) -> Lowered:
    """Lower the descriptors of every Triton function of a file, each function on its own."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        return _Function(function, source.module, spans, source.names.of, Names.of(source.text)).edits()

    def told(refused: Refused) -> Diagnostic:
        return _diagnostic(source, refused)

    return each_function(source, ["make_tensor_descriptor"], edits, told)


def _diagnostic(source: SourceFile, refused: Refused) -> Diagnostic:
    start = source.positions[refused.node].start
    message = f"Its tensor descriptors cannot be written as pointers: {refused.reason}."
    hint = "The kernel stays Triton; see the page of this code."
    return Diagnostic("TTG304", Severity.WARNING, str(source.path), start.line, start.column, message, hint)


@dataclass(frozen=True)
class _Made:
    """A descriptor as its users write it: what it was made of, by names that still hold there."""

    descriptor: Descriptor
    base: str
    bounds: tuple[str, ...]
    strides: tuple[str, ...]


@dataclass(frozen=True)
class _Loop:
    """A loop that is being walked: where it starts, what it assigns, and the indices at hand in it.

    `flattened`: Triton makes it one with a loop inside, whose loads run on from turn to turn.
    """

    start: int
    assigned: frozenset[str]
    at_hand: Indices
    flattened: bool


@dataclass
class _Function:
    """One function on its way.

    `made`: its descriptors, as far as they are known at the statement at hand, `defined`: the calls that made
    those so far, `several`: names that each of several assignments makes one under. `found`: the edits, `assigned`: how
    often each name is assigned. `loops`: those around the statement at hand, as far as its being reached follows from
    theirs.
    """

    function: JitFunction
    module: cst.Module
    spans: Spans
    resolve: Resolve
    names: Names
    made: dict[str, _Made] = field(default_factory=dict)
    defined: list[cst.Call] = field(default_factory=list)
    several: frozenset[str] = frozenset()
    found: list[Edit] = field(default_factory=list)
    assigned: Counter[str] = field(default_factory=Counter)
    loops: list[_Loop] = field(default_factory=list)

    def edits(self) -> list[Edit]:
        """The edits of the function; none where it makes no descriptors. Raises Refused."""
        makes = Makes(self.resolve)
        self.function.node.body.visit(makes)
        if not makes.calls:
            return []
        assigned = Assigned()
        self.function.node.body.visit(assigned)
        self.assigned.update([*assigned.names, *(parameter.name for parameter in self.function.parameters)])
        self.several = frozenset(name for name, count in makes.names.items() if 1 < count == self.assigned[name])
        blocks = [extent.block.text for call in makes.calls for extent in read_make(call, self.module).extents]
        self.signs = Signs(self.function.node, [block for block in blocks if block.isidentifier()])
        self.body(self.function.node.body, {})
        if len(self.defined) != len(makes.calls):
            lost = next(call for call in makes.calls if all(call is not own for own in self.defined))
            raise Refused(lost, "one is not simply assigned to a name")
        return self.found

    # ------------------------------------------------------------------------------------------------ the statements

    def body(self, suite: cst.BaseSuite, at_hand: Indices) -> None:
        """Lower the statements of a block; `at_hand`: indices by what they are of, with the names they depend on."""
        around = dict(self.made)
        if isinstance(suite, cst.SimpleStatementSuite):
            for small in suite.body:
                self.step(small, at_hand, inline=True, needed=True)
        else:
            self.lines(suite, at_hand)
        self.made = around | {name: own for name, own in self.made.items() if name not in self.several}

    def lines(self, suite: cst.BaseSuite, at_hand: Indices) -> None:
        """Lower those of an indented block."""
        steps = [small for line in suite.body if isinstance(line, cst.SimpleStatementLine) for small in line.body]
        needed = len(steps) == len(suite.body) and all(self.makes(small) for small in steps)
        for statement in suite.body:
            if isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self.step(small, at_hand, inline=len(statement.body) > 1, needed=needed)
            elif isinstance(statement, cst.BaseCompoundStatement):
                self.compound(statement, at_hand)

    def compound(self, node: cst.BaseCompoundStatement, at_hand: Indices) -> None:
        """Lower what is in a statement's blocks; its header must not load."""
        for child in node.children:
            if not isinstance(child, (cst.BaseSuite, cst.If, cst.Else)):
                self.header(child)
        found = Assigned()
        node.visit(found)
        changed = frozenset(found.names)
        around = self.loops
        self.loops = around if isinstance(node, cst.With) else []
        if isinstance(node, (cst.For, cst.While)):
            _forget(at_hand, changed)
            at_hand_inside = dict(at_hand)
            self.loops = [*around, _Loop(self.spans.of(node)[0], changed, at_hand_inside, _is_flattened(node))]
            self.body(node.body, at_hand_inside)
        else:
            self.branches(node, at_hand)
        self.loops = around
        _forget(at_hand, changed)

    def branches(self, node: cst.BaseCompoundStatement, at_hand: Indices) -> None:
        """Lower the blocks of an `if` or `with`, each on its own."""
        inner: cst.BaseCompoundStatement | cst.Else | None = node
        while inner is not None:
            self.body(inner.body, dict(at_hand))
            inner = getattr(inner, "orelse", None)
            if isinstance(inner, cst.If):
                self.header(inner.test)

    def header(self, node: cst.CSTNode) -> None:
        """Refuse what cannot be put before a compound statement."""
        uses = _Uses(self)
        node.visit(uses)
        if uses.transfers:
            raise Refused(uses.transfers[0].node, "it is used in the header of a statement")

    def step(
        self,
        node: cst.BaseSmallStatement,
        at_hand: Indices,
        *,
        inline: bool,
        needed: bool,
    ) -> None:
        """Lower a simple statement."""
        if (made := self.makes(node)) is not None:
            self.define(*made, inline=inline, needed=needed)
            return
        uses = _Uses(self)
        for child in node.children:
            child.visit(uses)
        start = self.spans.of(node)[0]
        separator = "; " if inline else "\n" + self.spans.line(start)[0]
        lines: list[str] = []
        for transfer in uses.transfers:
            lines += self.transfer(transfer, at_hand, inline=inline)
        if lines:
            self.found.append(Edit(start, start, "".join(f"{line}{separator}" for line in lines)))
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
            targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]
            _forget(at_hand, target_names(targets))

    def makes(self, node: cst.BaseSmallStatement) -> tuple[cst.Assign, cst.Call] | None:
        """The statement and its call, where it makes a descriptor."""
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call) and is_make(self.resolve(node.value.func)):
            return node, node.value
        return None

    # ------------------------------------------------------------------------------------------------- the two events

    def define(self, node: cst.Assign, call: cst.Call, *, inline: bool, needed: bool) -> None:
        """Take a descriptor away, and bind what it was made of where its names may change, or the base is no name.

        `needed`: its block must keep a statement.
        """
        target = node.targets[0].target
        if len(node.targets) != 1 or not isinstance(target, cst.Name):
            raise Refused(call, "it is not simply assigned to a name")
        if target.value in self.made or (self.assigned[target.value] > 1 and target.value not in self.several):
            raise Refused(call, _in_several(target.value))
        self.defined.append(call)
        descriptor = read_make(call, self.module)
        lines: list[str] = []

        def held(part: Expression, role: str, text: str, *, plain: bool = False) -> str:
            if self.stable(part) and not (plain and not isinstance(part.node, cst.Name)):
                return text
            name = self.names.fresh(f"{stem_of(target.value)}_{role}")
            lines.append(f"{name} = {part.text}")
            return name

        base = held(descriptor.base, "base", descriptor.base.text, plain=True)
        bounds: list[str] = []
        strides: list[str] = []
        for axis, part in zip(_axes(len(descriptor.extents)), descriptor.extents, strict=True):
            bounds.append(held(part.bound, f"{axis}_bound", part.bound.summand()))
            strides.append(held(part.stride, f"{axis}_stride", part.stride.operand()))
        self.made[target.value] = _Made(descriptor, base, tuple(bounds), tuple(strides))
        lines = ([] if inline else comments_in(call)) + (lines or (["pass"] if inline or needed else []))
        start, end = self.spans.of(node)[0], self.spans.whole(node.value)[1]
        separator = "; " if inline else "\n" + self.spans.line(start)[0]
        self.found.append(Edit(start, end, separator.join(lines)) if lines else self.spans.gone(start, end))

    def stable(self, part: Expression) -> bool:
        """Whether an expression means the same wherever the descriptor may be used."""
        return part.pure and all(self.assigned[name] <= 1 for name in part.names)

    def transfer(self, transfer: Transfer, at_hand: Indices, *, inline: bool) -> Iterator[str]:
        """The lines before a load or store, whose call is replaced."""
        made = self.made[transfer.name]
        language, extents = made.descriptor.language, made.descriptor.extents
        if len(transfer.offsets) != len(extents):
            raise Refused(transfer.node, "a load or store through it has another number of offsets")
        terms, checks = [made.base], []
        by_row = transfer.kind in ("gather", "scatter")
        for dimension, (extent, offset) in enumerate(zip(extents, transfer.offsets, strict=True)):
            given = by_row and dimension == 0
            key = (transfer.name, "given" if given else str(dimension), offset.text)
            name, _ = at_hand.get(key, ("", frozenset()))
            if not name:
                name = self.names.fresh(f"{stem_of(transfer.name)}_{_axes(len(extents))[dimension]}")
                wide = f"{offset.operand()}.to({language}.int64)"
                line = f"{name} = {wide if given else _index(offset, extent, language)}"
                if inline or not self.hoisted(line, key, (name, offset.names), pure=offset.pure):
                    yield line
                if offset.pure:
                    at_hand[key] = name, offset.names
            index = _sliced(name, dimension, len(extents))
            terms.append(index if extent.stride.literal == 1 else f"{index} * {made.strides[dimension]}")
            if not given and offset.literal == 0 and extent.bound.text == extent.block.text:
                continue
            if not self.signs.nonnegative(offset.node):
                checks.append(f"{index} >= 0")
            checks.append(f"{index} < {made.bounds[dimension]}")
        mask = checks[0] if len(checks) == 1 else " & ".join(f"({check})" for check in checks)
        pointer = " + ".join(terms)
        start, end = self.spans.of(transfer.node)
        indent, before = self.spans.line(start)
        value = transfer.value
        if not inline and before + len(pointer) + len(mask) > _WIDTH - 40:
            named = self.names.fresh(f"{stem_of(transfer.name)}_mask")
            yield f"{named} = {mask}"
            mask = named
        masked = [f"mask={mask}"] if mask else []
        if transfer.kind.startswith("atomic"):
            masked.append('sem="release"')
        long = not inline and before + sum(map(len, [pointer, value.text if value else "", *masked])) > _WIDTH - 30
        first, between, last = (f"\n{indent}    ", f",\n{indent}    ", f",\n{indent}") if long else ("", ", ", "")
        if value is None:
            loaded = between.join([pointer, *masked, *(f"other={made.descriptor.other}" for _ in masked)])
            self.found.append(Edit(start, end, f"{language}.load({first}{loaded}{last})"))
        else:
            inner = self.spans.whole(value.node)
            called = "store" if by_row else transfer.kind
            self.found.append(Edit(start, inner[0], f"{language}.{called}({first}{pointer}{between}"))
            self.found.append(Edit(inner[1], end, f"{''.join(between + each for each in masked)}{last})"))

    def hoisted(self, line: str, key: tuple[str, str, str], index: tuple[str, frozenset[str]], *, pure: bool) -> bool:
        """Put an index before the loops that leave its offset alone; whether there are any.

        Not to a turn of a flattened loop: Triton hoists nothing there, so that its offset is carried, and no tensor.
        """
        names = index[1]
        inner = list(takewhile(lambda loop: pure and not loop.assigned & names, reversed(self.loops)))
        outer = self.loops[: len(self.loops) - len(inner)]
        if not inner or (outer and outer[-1].flattened):
            return False
        start = inner[-1].start
        self.found.append(Edit(start, start, f"{line}\n{self.spans.line(start)[0]}"))
        for loop in inner:
            loop.at_hand[key] = index
        return True


def _is_flattened(loop: cst.For | cst.While) -> bool:
    """Whether the author may flatten a loop, by a constant or a parameter."""
    if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
        return False
    said = [each.value for each in loop.iter.args if each.keyword is not None and each.keyword.value == "flatten"]
    return any(not is_name(each, "False") for each in said)


@dataclass
class _Uses(VariableReader):
    """The loads and stores of a statement, innermost first as they run, and the element types asked for."""

    owner: _Function
    transfers: list[Transfer] = field(default_factory=list)

    def visit_Call(self, node: cst.Call) -> bool:
        owner = self.owner
        through = transferred(node, owner.resolve(node.func))
        if not isinstance(through, cst.Name) or through.value not in owner.made:
            return True
        transfer = read_transfer(node, through.value, owner.module)
        for offset in transfer.offsets:
            offset.node.visit(self)
        if transfer.value is not None:
            transfer.value.node.visit(self)
        self.transfers.append(transfer)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool | None:
        if isinstance(node.value, cst.Name) and node.value.value in self.owner.made and node.attr.value == "dtype":
            start, end = self.owner.spans.of(node)
            base = self.owner.made[node.value.value].base
            self.owner.found.append(Edit(start, end, f"{base}.dtype.element_ty"))
            return False
        return super().visit_Attribute(node)

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in self.owner.made:
            raise Refused(node, f"`{node.value}` is used for more than loads and stores")
        if node.value in self.owner.several:
            raise Refused(node, _in_several(node.value))


def _in_several(name: str) -> str:
    return f"`{name}` is assigned to in several places"


def _forget(at_hand: Indices, names: frozenset[str]) -> None:
    for key in [key for key, (_, reads) in at_hand.items() if reads & names]:
        del at_hand[key]


def _index(offset: Expression, extent: Extent, language: str) -> str:
    """Where a block's elements are along a dimension: the offset has 32 bits, and is added in 64."""
    span = f"{language}.arange(0, {extent.block.text}).to({language}.int64)"
    return span if offset.literal == 0 else f"{offset.summand()} + {span}"


def _sliced(index: str, dimension: int, rank: int) -> str:
    if rank == 1:
        return index
    return f"{index}[{', '.join(':' if axis == dimension else 'None' for axis in range(rank))}]"


def _axes(rank: int) -> tuple[str, ...]:
    return _AXES.get(rank, tuple(f"dim{dimension}" for dimension in range(rank)))
