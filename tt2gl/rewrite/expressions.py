"""Applies the expression rules to a statement, each at the places that the plan names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import libcst as cst

from tt2gl.names import claimed
from tt2gl.plan import Dot, Edits, Position, Upcast
from tt2gl.qualified_names import walk
from tt2gl.rewrite.buffer_ops import by_buffer, cast, in_ring, narrowed, on_base, one_side
from tt2gl.rewrite.build import MARK, through
from tt2gl.rewrite.conversions import as_operand, converted, shortened
from tt2gl.rewrite.converted_masks import after_address
from tt2gl.rewrite.creations import with_keywords, with_layout
from tt2gl.rewrite.dots import (
    argument,
    fence,
    first_name,
    is_statement,
    loaded,
    names_in,
    product,
    put,
    reshaped,
    transposed,
    widened,
)
from tt2gl.rewrite.expansions import expanded
from tt2gl.rewrite.fills import filled
from tt2gl.rewrite.index_reductions import with_helper
from tt2gl.rewrite.masked import with_other
from tt2gl.rewrite.names import rewrite_name
from tt2gl.rewrite.scaled_dots import scaled_operand, upcasted, with_scales, with_scales_beside
from tt2gl.rewrite.tiles import through_tile
from tt2gl.visitors import Editor
from tt2gl.words import HELPED, RING_MARK

Locate = Callable[[cst.CSTNode], Position | None]
Qualify = Callable[[cst.CSTNode], Collection[str]]


class Expressions(Editor):
    """Edits one statement, or all of a function's, by one set of edits.

    `renamed`: functions that it knows by other names. `taken`: variables of the function, which grow by those added.
    """

    def __init__(
        self, edits: Edits, locate: Locate, qualify: Qualify, renamed: Mapping[str, str], taken: set[str]
    ) -> None:
        super().__init__()
        self.taken = taken
        self.edits, self.locate, self.qualify, self.renamed = edits, locate, qualify, renamed
        # What is put together at these places is edited then, and not what the author has there.
        self.composed = {upcast.at for dot in edits.dots.values() for upcast in dot.upcasts}
        # What stands before a product, where the rest of its sum is edited after it.
        self.first: dict[Position, int | None] = {dot.call: None for dot in edits.dots.values() if dot.is_sum}
        # Scalar pointers that accesses by buffer operations start from, as they have become.
        self.bases: dict[Position, cst.BaseExpression] = {}
        self.pending: list[cst.BaseSmallStatement] = []
        # Whether a product reads in place what the statement has put into shared memory.
        self.shared = False
        self.before: dict[Position, list[cst.BaseSmallStatement]] = {}
        self.target, self.reads_target = "", False
        self.whole: cst.CSTNode | None = None
        self.split: set[str] = set()

    def visit_Assign(self, node: cst.Assign) -> None:
        """Note what a statement defines: a product that is all of its value needs no other name."""
        name = node.targets[0].target
        self.target = name.value if len(node.targets) == 1 and isinstance(name, cst.Name) else ""
        self.whole = node.value if self.target else None
        self.reads_target = self.whole is not None and self.target in names_in(self.whole)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        """Note what a statement defines."""
        self.target = node.target.value if isinstance(node.target, cst.Name) else ""
        self.whole, self.reads_target = None, True

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]
        """Apply every expression rule at the node's place, innermost first."""
        left = super().on_leave(original_node, updated_node)
        if isinstance(original_node, cst.BaseSmallStatement):
            place = self.locate(original_node) if self.pending else None
            if self.shared and _unfenced(self.pending):
                # A name for what lies there: the product is of another statement.
                self.pending.append(fence())
            if place is not None:
                self.before[place] = self.pending
            self.pending, self.split, self.shared = [], set(), False
            self.target, self.whole, self.reads_target = "", None, False
        if not isinstance(original_node, cst.BaseExpression) or not isinstance(left, cst.BaseExpression):
            return left
        position = self.locate(original_node)
        if position is None:
            return left
        return self._edited(original_node, left, position)

    def _edited(self, original: cst.BaseExpression, node: cst.BaseExpression, at: Position) -> cst.BaseExpression:
        edits = self.edits
        if at in self.composed:
            return node
        if isinstance(original, cst.Name):
            name = edits.reads.get(at) or edits.targets.get(at) or self.renamed.get(original.value)
            if name is not None:
                node = cst.Name(name, lpar=original.lpar, rpar=original.rpar)
            if at in edits.rebased:
                node = on_base(node, edits.rebased[at])
        if isinstance(original, (cst.Name, cst.Attribute)):
            node = rewrite_name(node, set(self.qualify(original)), edits.mover)
        if isinstance(original, cst.Call):
            if at in edits.arguments:
                node = with_keywords(node, edits.arguments[at])
            if at in edits.indexed:
                what, is_method = edits.indexed[at], self.is_method(original)
                helper = HELPED.get(what)
                node = through(node, is_method, helper) if helper else with_helper(node, is_method, what)
            if at in edits.creations and at not in edits.replaced:
                node = with_layout(node, edits.creations[at], edits.mover, self.is_method(original))
            elif isinstance(node, cst.Call) and not self.is_method(original):
                node = after_address(node, self.qualify(original.func))
        if at in edits.replaced:
            node = cst.Name(edits.replaced[at])
        node = self._in_memory(original, self._buffered(original, node, at), at)
        if at in edits.converts:
            node = self._converted(node, at)
        if at in edits.fills:
            extents, layout = edits.fills[at]
            is_method = isinstance(original, cst.Call) and self.is_method(original)
            node = filled(node, extents, layout, is_method)
            node = narrowed(node, edits.narrowed[at]) if at in edits.narrowed else node
        if at in edits.stretched:
            node = narrowed(node, edits.stretched[at])
        if at in edits.expansions:
            missing, rank = edits.expansions[at]
            node = expanded(node, missing, rank)
        if at in self.first:
            self.first[at] = len(self.pending)
        return node

    def _converted(self, node: cst.BaseExpression, at: Position) -> cst.BaseExpression:
        """The value in the layout that it is wanted in there."""
        layout, passed, element = self.edits.converts[at], self.edits.passed.get(at), self.edits.shortened.get(at)
        if passed is not None:
            return as_operand(node, layout, *passed)
        if element and isinstance(node, cst.Name):
            return widened(converted(cast(node, element, method=True), layout), node.value)
        return converted(node, layout)

    def _buffered(self, original: cst.BaseExpression, node: cst.BaseExpression, at: Position) -> cst.BaseExpression:
        """Apply what makes addresses a scalar pointer and offsets."""
        edits = self.edits
        if at in edits.shortened and isinstance(node, cst.Call):
            node = shortened(node, edits.buffers[at].element if at in edits.buffers else edits.shortened[at])
        if at in edits.buffers and isinstance(node, cst.Call):
            base = edits.buffers[at].base
            node = by_buffer(node, edits.buffers[at], cst.Name(base) if isinstance(base, str) else self.bases[base])
        if edits.buffers:
            self.bases[at] = node
        if at in edits.sides and isinstance(original, cst.BinaryOperation):
            node = one_side(node, edits.sides[at])
        is_narrowed = at in edits.narrowed and at not in edits.fills
        return narrowed(node, edits.narrowed[at]) if is_narrowed else node

    def _in_memory(self, original: cst.BaseExpression, node: cst.BaseExpression, at: Position) -> cst.BaseExpression:
        """Apply what has to do with shared memory and products."""
        edits = self.edits
        # First, as a product may be what another takes from memory.
        if at in edits.dots and isinstance(original, cst.Call | cst.BinaryOperation):
            node = self._product(original, node, edits.dots[at])
            if is_statement(edits.dots[at]) and (original is not self.whole or at in edits.converts):
                name = self._split_off(edits.dots[at])
                self.pending.append(cst.Assign([cst.AssignTarget(cst.Name(name))], node))
                node = cst.Name(name)
        if at in edits.tiles and isinstance(node, cst.Call):
            node = through_tile(node, edits.tiles[at])
        if at in edits.staged and isinstance(node, cst.Call):
            ring, layout = edits.staged[at]
            call = node = in_ring(node) if at in edits.buffers else node
            if ring:
                node = node.with_changes(func=cst.Name(f"{MARK}{RING_MARK}{ring}"))
            if layout:
                node = loaded(node, layout)
                node = with_other(node, call) if at in edits.zeroed and at not in edits.tiles else node
        if at in edits.views:
            node = transposed(node, edits.views[at]) if edits.views[at] else reshaped(node)
        if at in edits.loads and at not in edits.stores:
            node = loaded(node, edits.loads[at])
            variables = (each for each in walk(original) if isinstance(each, cst.Name) and edits.widened)
            if variable := next((each for each in variables if self.locate(each) in edits.widened), None):
                node = widened(node, variable.value)
        if at in edits.stores:
            name = claimed(f"{first_name(node)}_smem", self.taken)
            held = "" if isinstance(node, cst.Name) else claimed(f"{first_name(node)}_operand", self.taken)
            self.pending.extend(put(name, node, edits.stores[at], held))
            self.shared = self.shared or edits.stores[at].in_place
            node = cst.Name(name)
            if at in edits.loads:
                # An operand in registers comes there through shared memory.
                node = loaded(node, edits.loads[at])
        return node

    def _product(self, original: cst.CSTNode, node: cst.BaseExpression, dot: Dot) -> cst.BaseExpression:
        """A product, from its call or from the sum of the call and what it takes as accumulator."""
        added: cst.BaseExpression | None = None
        if isinstance(original, cst.BinaryOperation) and isinstance(node, cst.BinaryOperation):
            on_left = self.locate(original.left) == dot.call
            node, added = (node.left, node.right) if on_left else (node.right, node.left)
        return self._instruction(node, dot, added)

    def _instruction(self, node: cst.BaseExpression, dot: Dot, added: cst.BaseExpression | None) -> cst.BaseExpression:
        assert isinstance(node, cst.Call)
        a, b = self._operands(node, dot)
        if dot.accumulator is not None:
            added = argument(node, "acc", 2 if dot.scaled is None else 6)
        if is_statement(dot) and _unfenced(self.pending):
            self.pending.append(fence())
        made = product(dot, a, b, added)
        if dot.instruction in ("mma_v2_scaled", "mfma_scaled", "wmma_scaled"):
            return with_scales_beside(made, node)
        return with_scales(made, node) if dot.instruction == "tcgen05_scaled" else made

    def _operands(self, node: cst.Call, dot: Dot) -> tuple[cst.BaseExpression, cst.BaseExpression]:
        """Both operands of a product, as its instruction takes them."""
        if dot.scaled is None:
            a, b = argument(node, "input", 0), argument(node, "other", 1)
        else:
            a, b = (
                scaled_operand(node, side) if upcast is None else self._upcast(node, side, upcast, is_statement(dot))
                for side, upcast in enumerate(dot.scaled.upcasts)
            )
        assert a is not None
        assert b is not None
        return self._held(a, dot.a, dot), self._held(b, dot.b, dot)

    def _held(self, operand: cst.BaseExpression, at: Position, dot: Dot) -> cst.BaseExpression:
        """An operand that is computed before the products of what its own is added to, as the author has it.

        By then it may be narrower than what it is made of, which else would be held while those run.
        """
        place, edits = self.first.get(dot.call), self.edits
        if place is None or place == len(self.pending) or at in edits.loads or at in edits.stores:
            return operand
        if isinstance(operand, cst.Name | cst.Attribute):
            return operand
        name = claimed(f"{first_name(operand)}_operand", self.taken)
        self.pending.insert(place, cst.Assign([cst.AssignTarget(cst.Name(name))], operand))
        return cst.Name(name)

    def _upcast(self, node: cst.Call, side: int, upcast: Upcast, held: bool) -> cst.BaseExpression:
        """An operand as one of 16 bits, in the layout or the memory that it is wanted in.

        One in registers is `held` by a name where the other may be put into shared memory: what that needs for its own
        conversions it then does not hold beside the other, and nothing stands between the fence and the instruction.
        """
        call = upcasted(node, side, upcast)
        made = self._in_memory(call, call, upcast.at)
        layout = self.edits.converts.get(upcast.at)
        if layout is not None:
            made = converted(made, layout)
        if not held or upcast.at in self.edits.stores:
            return made
        name = claimed(f"{first_name(call)}_operand", self.taken)
        self.pending.append(cst.Assign([cst.AssignTarget(cst.Name(name))], made))
        return cst.Name(name)

    def _split_off(self, dot: Dot) -> str:
        """What a product is called that the rest of its statement reads: the statement's result, where it may be."""
        if self.target and not self.reads_target and self.target not in self.split:
            self.split.add(self.target)
            return self.target
        return claimed(f"{self.target or dot.name}_product", self.taken)

    def is_method(self, call: cst.Call) -> bool:
        """Whether a call is of a tensor's method, not of a module's function."""
        if not isinstance(call.func, cst.Attribute):
            return False
        owner = call.func.value
        is_path = isinstance(owner, (cst.Name, cst.Attribute))
        return not is_path or not any("triton" in name for name in self.qualify(call.func))

    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.BaseSmallStatement:
        """`x += y` becomes `x = ...` where its result is converted or named anew."""
        target, at = original_node.target, self.locate(original_node.target)
        whole = self.locate(original_node)
        if not isinstance(target, cst.Name) or at is None:
            return updated_node
        # What is read of the target is edited as any other name; what is written to it is a name all the same.
        reading: cst.BaseExpression = cst.Name(self.edits.reads.get(at, target.value))
        if at in self.edits.loads:
            reading = loaded(reading, self.edits.loads[at])
        if at in self.edits.converts:
            reading = converted(reading, self.edits.converts[at])
        written = self.edits.targets.get(at, target.value)
        if at in self.edits.begun:
            return cst.Assign([cst.AssignTarget(cst.Name(self.edits.begun[at]))], updated_node.value)
        layout = self.edits.converts.get(whole) if whole is not None else None
        if whole is not None and whole in self.edits.dots:
            made: cst.BaseExpression = self._instruction(updated_node.value, self.edits.dots[whole], reading)
            if layout and is_statement(self.edits.dots[whole]):
                name = claimed(f"{target.value}_product", self.taken)
                self.pending.append(cst.Assign([cst.AssignTarget(cst.Name(name))], made))
                made = cst.Name(name)
            return cst.Assign([cst.AssignTarget(cst.Name(written))], converted(made, layout) if layout else made)
        if isinstance(reading, cst.Name) and reading.value == written and layout is None:
            return updated_node.with_changes(target=cst.Name(written))
        operator = _BINARY[type(original_node.operator)]()
        right = updated_node.value
        if not isinstance(right, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)):
            right = right if right.lpar else right.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        value: cst.BaseExpression = cst.BinaryOperation(reading, operator, right)
        if layout is not None:
            value = converted(value, layout)
        return cst.Assign([cst.AssignTarget(cst.Name(written))], value)


def _unfenced(statements: Sequence[cst.BaseSmallStatement]) -> bool:
    """Whether something is put into shared memory after the last fence."""
    for each in reversed(statements):
        if each.deep_equals(fence()):
            return False
        if _stores(each):
            return True
    return False


def _stores(statement: cst.BaseSmallStatement) -> bool:
    return isinstance(statement, cst.Assign) and "allocate_shared_memory" in cst.Module([]).code_for_node(statement)


_BINARY: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
    cst.LeftShiftAssign: cst.LeftShift,
    cst.RightShiftAssign: cst.RightShift,
    cst.PowerAssign: cst.Power,
}
