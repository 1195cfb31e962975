"""Rule `hoist` on AMD: what is converted alike on every turn of a loop is converted once, before it.

    for m in range(0, M, BLOCK_M):                                                            # before
        k_rhs = gl.convert_layout(tl.trans(k), rhs_layout)
        s = mfma(q, k_rhs, zeros)

    k_rhs = gl.convert_layout(tl.trans(k), rhs_layout)                                        # after
    for m in range(0, M, BLOCK_M):
        s = mfma(q, k_rhs, zeros)

Triton's LICM pass moves conversions out of loops, and its HoistLayoutConversions what its products read; Gluon runs
neither, and LLVM moves nothing over the barriers of their way through shared memory. The gradients of keys and values
of an attention, which reads both transposed, take 187 registers for 206 on gfx942, where Triton's kernel takes 176.

What a conversion is of that the loop computes alike, too, moves with it.
The last iterations, which stand apart, have the same words: what they say of such a tile is said already.

Not here: conversions under conditions, of what is loaded there, and of what divides by a variable, which may be zero
where a loop has no turn.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places
from tt2gl.names import claimed
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import Liveness, reads, writes
from tt2gl.pipelining.invariant_tiles import Loop, loop_by_loop, turns_of
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import called, is_unrolled
from tt2gl.trees import blocks, nodes_in

_CONVERSION = "gl.convert_layout"
_PRODUCTS = ("mfma", "wmma", "dot_fma")
_LINES = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)


def without_invariant_conversions(text: str, functions: Collection[str]) -> str:
    """The text with the invariant conversions of the loops of these functions before them."""
    return loop_by_loop(text, functions, lambda *function: _Function(*function).edits())


@dataclass(frozen=True)
class _Conversion:
    """A conversion: where it is, its source, and the statement that it is all of, if any, with the block of that."""

    call: ast.Call
    source: str
    whole: ast.Assign | None = None
    block: tuple[ast.stmt, ...] = ()


class _Function:
    def __init__(self, function: ast.FunctionDef, effects: Effects, places: Places) -> None:
        self.places, self.function, self.effects = places, function, effects
        self.live = Liveness()
        self.live.before(function.body, frozenset())

    def edits(self) -> list[Edit]:
        """The edits of the first loop that has such conversions, from the outside in."""
        return next((edits for edits in self._loops(self.function.body) if edits), [])

    def _loops(self, block: Sequence[ast.stmt]) -> Iterator[list[Edit]]:
        """The edits of each loop of a block, and of those in it."""
        for at, statement in enumerate(block):
            if isinstance(statement, ast.For | ast.While) and not is_unrolled(statement):
                yield self._moved(statement, block[at + 1 :])
            for inner in blocks(statement):
                yield from self._loops(inner)

    def _moved(self, loop: ast.For | ast.While, behind: Sequence[ast.stmt]) -> list[Edit]:
        always = [each for each in _conversions(loop.body, always=True) if self._may_move(each.call)]
        question = Loop(self.function, loop, turns_of(self.function, loop), self.effects, self.live.after[loop])
        needed = {each.source: _needed(question, each) for each in always}
        found = {each.source: each for each in always if needed[each.source] is not None}
        if not found:
            return []
        made = {part for source in found for part in needed[source] or ()}
        moved = [each for each in loop.body if each in made]
        indent = self.places.line(loop.lineno)[: loop.col_offset].decode()
        start, _ = self.places.lines(loop, comments=True)
        taken = names_of(nodes_in(self.function))
        said = "".join(textwrap.indent(question.said(each, self.places), indent) for each in moved)
        edits = [Edit(*question.lines(each, self.places), "") for each in moved]
        for source, conversion in found.items():
            name = self._own_name(source) or claimed(_label(self.function, conversion), taken)
            said += f"{indent}{name} = {source}\n"
            same = [each for each in _conversions(loop.body) if each.source == source]
            for statement in behind:
                if reads(conversion.call) & writes(statement):
                    break
                same += [each for each in _conversions([statement]) if each.source == source]
            edits += [self._named(each, name) for each in same]
        return [Edit(start, start, said), *edits]

    def _may_move(self, call: ast.Call) -> bool:
        """Whether a conversion only computes, and can do so where a loop has no turn."""
        for node in nodes_in(call):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
                return False
            if isinstance(node, ast.Call) and (called(node).endswith("load") or self.effects.trouble(node)):
                return False
        return len(call.args) == 2 and not call.keywords

    def _own_name(self, source: str) -> str:
        """The name that a conversion has wherever it is made, and nothing else has."""
        made = [
            each.whole.targets[0] for each in _conversions(self.function.body) if each.source == source and each.whole
        ]
        names = {each.id for each in made if isinstance(each, ast.Name)}
        stored = [node.id for node in nodes_in(self.function) if isinstance(node, ast.Name) and _is_stored(node)]
        return next((name for name in sorted(names) if stored.count(name) == sum(_is(name, each) for each in made)), "")

    def _named(self, conversion: _Conversion, name: str) -> Edit:
        """The edit by which a conversion is what has a name already."""
        whole = conversion.whole
        if whole is not None and _is(name, whole.targets[0]) and len(conversion.block) > 1 and self._is_alone(whole):
            return Edit(*self.places.lines(whole), "")
        return Edit(*self.places.of(conversion.call), name)

    def _is_alone(self, statement: ast.stmt) -> bool:
        """Whether nothing else stands on a statement's lines."""
        before = self.places.line(statement.lineno)[: statement.col_offset]
        after = self.places.line(statement.end_lineno or 0)[statement.end_col_offset or 0 :]
        return not before.strip() and not after.strip()


def _needed(loop: Loop, conversion: _Conversion) -> frozenset[ast.stmt] | None:
    """The statements of a loop's body that a conversion of it needs before the loop; None where it must stay."""
    needed: set[ast.stmt] = set()
    for name in sorted(reads(conversion.call) & loop.changed):
        made = next((each for each in loop.loop.body if name in writes(each)), None)
        parts = loop.needed(made) if made is not None else None
        if parts is None or any(loop.bindings.count(each) > 1 for part in parts for each in writes(part)):
            return None
        needed |= parts
    # A load would have to ask whether there is a turn.
    loads = any(
        called(node).endswith("load") for part in needed for node in nodes_in(part) if isinstance(node, ast.expr)
    )
    return None if loads else frozenset(needed)


def _conversions(block: Sequence[ast.stmt], *, always: bool = False) -> Iterator[_Conversion]:
    """The conversions of a block; `always`: those alone that each turn of a loop around it makes."""
    for statement in block:
        if isinstance(statement, _LINES):
            for node in nodes_in(statement):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == _CONVERSION:
                    whole = statement if isinstance(statement, ast.Assign) and statement.value is node else None
                    if whole is not None and (len(whole.targets) > 1 or not isinstance(whole.targets[0], ast.Name)):
                        whole = None
                    yield _Conversion(node, ast.unparse(node), whole, tuple(block))
        if not always:
            for inner in blocks(statement):
                yield from _conversions(inner)


def _label(function: ast.FunctionDef, conversion: _Conversion) -> str:
    """What a conversion is called that has no name: after its first variable, and the side of its product."""
    functions = [id(node.func) for node in nodes_in(conversion.call) if isinstance(node, ast.Call)]
    named = [node for node in nodes_in(conversion.call.args[0]) if isinstance(node, ast.Name)]
    variables = [node for node in named if id(node) not in functions and node.id not in ("gl", "tl")]
    first = min(variables, key=lambda node: (node.lineno, node.col_offset)).id if variables else "tile"
    for node in nodes_in(function):
        if isinstance(node, ast.Call) and called(node).startswith(_PRODUCTS):
            for side, operand in zip(("lhs", "rhs"), node.args, strict=False):
                if operand is conversion.call:
                    return f"{first}_{side}"
    return f"{first}_converted"


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is(name: str, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == name
