"""Tiles read from their slots where products take them, as Triton's compiler has it, not where the author loads them.

    v = _tt2gl_ring_v(v_ptrs).load(v_layout)
    p = softmax(qk).to(v.dtype)
    acc = mma_v2(p_smem.load(p_layout), v, acc)

    p = softmax(qk).to(v_buf.dtype)                                                                     # becomes
    acc = mma_v2(p_smem.load(p_layout), _tt2gl_ring_v(v_ptrs).load(v_layout), acc)

What is read early takes registers through all that stands between, and the assembler does not move reads of shared
memory over the barriers there: attention over pages took 141 registers for Triton's 108, and takes 107 so. As by
Triton's reordering of instructions, a product's second operand is moved behind the first, where that comes from shared
memory and is read later; where the first is in registers, or read before, tiles are all read where the iteration's
arrive. Only reads that one product of the loop's own block takes, and nothing else, are moved. One that is cast there
is moved where its tile is read for another product, too, though Triton's compiler leaves both side by side: a gradient
of keys and values by tiles of 32x512, with products of 32-bit floats, spills 182 registers a thread for Triton's 414.
It goes above the product: by the barrier of the first operand's way all have then read the slot, too, and copies into
it wait for no other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.flow import Names, reads, writes
from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.static import called
from tt2gl.pipelining.trees import Line, Member, Variables, code, comment, comments, edited, leading, lines_of, under
from tt2gl.trees import blocks, nodes_in
from tt2gl.words import RING_MARK

_PRODUCT = "mma_v2"
_READ = "load"
_TYPE = "dtype"


@dataclass(frozen=True)
class Late:
    """The reads of a loop that are moved: the statement of each by the variable that it gives the tile.

    `users`: the statements that take such variables, or ask for their types. `above`: of those reads that keep
    their variables, the product that each goes above, by variable.
    """

    reads: Mapping[str, ast.stmt] = field(default_factory=dict)
    users: frozenset[ast.stmt] = frozenset()
    above: Mapping[str, ast.stmt] = field(default_factory=dict)


def late_reads(loop: ast.For, kept: frozenset[ast.stmt], live_after: Names) -> Late:
    """The reads that may be moved, of the statements that are `kept` in a loop, after which `live_after` is read."""
    written = [name for each in loop.body for name in writes(each)]
    found: dict[str, ast.stmt] = {}
    users: set[ast.stmt] = set()
    cast: dict[str, ast.stmt] = {}
    for place, statement in enumerate(loop.body):
        name = _name_of(statement)
        if not name or written.count(name) != 1 or name in live_after or reads(_layout(statement)) & {*written}:
            continue
        readers = [each for each in loop.body if each in kept and each is not statement and name in reads(each)]
        takers = [each for each in readers if any(_takes(node, name) for node in nodes_in(each))]
        if len(takers) != 1 or any(list(blocks(each)) for each in readers):
            continue
        uses = [node for each in readers for node in nodes_in(each) if isinstance(node, ast.Name) and node.id == name]
        typed = [node for each in readers for node in nodes_in(each) if is_type(node, name)]
        between = loop.body[place + 1 : loop.body.index(takers[0])]
        stands = any(each in kept and not _name_of(each) for each in between)
        early = any(loop.body.index(each) < place for each in readers)
        again = [each for each in loop.body if _ring_read(each) == _ring_read(statement)]
        second = _is_second(takers[0], name, between, cast=len(again) > 1)
        if len(uses) == len(typed) + 1 and stands and not early and second:
            found[name] = statement
            users |= {*readers}
            if _is_cast(takers[0], name):
                cast[name] = takers[0]
    return Late(found, frozenset(users), cast)


def _is_cast(taker: ast.stmt, name: str) -> bool:
    """Whether the product that takes a tile has it cast."""
    product = next(node for node in nodes_in(taker) if _takes(node, name))
    assert isinstance(product, ast.Call)
    return not any(isinstance(each, ast.Name) and each.id == name for each in product.args[:2])


def with_late_reads(loop: ast.For, node: cst.For, late: Late, buffers: Mapping[str, str]) -> Iterator[Line]:
    """The lines of a loop's body with its late reads moved, their comments with them. `buffers`: of rings, by name."""
    values: dict[str, cst.BaseExpression] = {}
    notes: dict[str, list[cst.EmptyLine]] = {}
    named: dict[str, Member] = {}
    moved = {statement: name for name, statement in late.reads.items()}
    for line, members, first in lines_of(loop.body, node.body):
        if not isinstance(line, cst.SimpleStatementLine) or not any(e in moved or e in late.users for e, _ in members):
            yield line, members, first
            continue
        gone = [(moved[each], small) for each, small in members if each in moved]
        for name, small in gone:
            assert isinstance(small, cst.Assign)
            values[name], notes[name] = small.value, []
            named[name] = late.reads[name], small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        if gone:
            beside = line.trailing_whitespace.comment
            notes[gone[0][0]] = comments(line.leading_lines)
            notes[gone[0][0]] += comment(beside.value.removeprefix("#").strip()) if beside else []
        for name in (name for name, taker in late.above.items() if any(each is taker for each, _ in members)):
            read, small = named[name]
            yield cst.SimpleStatementLine([small], leading_lines=notes.pop(name)), [named[name]], read
        rings = {name: buffers[_ring_of(value)] for name, value in values.items()}
        inside = {name: value for name, value in values.items() if name not in late.above}
        taken = {name for each, _ in members for name in inside.keys() & reads(each) if each in late.users}
        editor = _Moved(inside, rings)
        stays = [(each, edited(small, editor)) for each, small in members if each not in moved]
        if not stays:
            continue
        above = [note for name in sorted(taken & editor.done) for note in notes.pop(name)]
        made = line.with_changes(body=[small for _, small in stays])
        yield under(made, _with_notes(leading(line), above)), stays, stays[0][0]


def _with_notes(above: Sequence[cst.EmptyLine], notes: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The empty lines and comments above a statement with further comments on top of its own."""
    first = next((place for place, line in enumerate(above) if line.comment is not None), len(above))
    return [*above[:first], *notes, *above[first:]]


def _name_of(statement: ast.stmt) -> str:
    """The variable that a statement gives a tile read from its slot, if it does nothing else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr="load", value=slot))):
            while isinstance(slot, ast.Call) and isinstance(slot.func, ast.Attribute):
                slot = slot.func.value
            return name if is_marker(slot) else ""
    return ""


def _ring_read(statement: ast.stmt) -> str:
    """The ring that a statement takes a tile of, as it is or read; "" where there is none, or it is compound."""
    markers = [] if list(blocks(statement)) else [node for node in nodes_in(statement) if is_marker(node)]
    return next((called(node) for node in markers if isinstance(node, ast.Call)), "")


def _is_second(taker: ast.stmt, name: str, between: Sequence[ast.stmt], cast: bool) -> bool:
    """Whether a product takes a tile as its second operand, and one that is read in it or `between` as its first.

    The tile as it is, or also `cast` there.
    """
    product = next(node for node in nodes_in(taker) if _takes(node, name))
    assert isinstance(product, ast.Call)
    first, second = product.args[:2]
    if tile_of(second) != name or not (cast or isinstance(second, ast.Name)):
        return False
    if not isinstance(first, ast.Name):
        return called(first) == _READ
    given = [each.value for each in between if isinstance(each, ast.Assign) and first.id in writes(each)]
    return any(called(value) == _READ for value in given)


def _layout(statement: ast.stmt) -> ast.expr:
    """What says how a tile is read: the arguments of that call, and of the views that it is of."""
    assert isinstance(statement, ast.Assign)
    found: list[ast.expr] = []
    call: ast.expr = statement.value
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        found += [*call.args, *(each.value for each in call.keywords)]
        call = call.func.value
    return ast.Tuple(found, ast.Load())


def _takes(node: ast.AST, name: str) -> bool:
    """Whether a node is a product with a variable as an operand."""
    operands = node.args[:2] if isinstance(node, ast.Call) and called(node) == _PRODUCT else []
    return any(tile_of(each) == name for each in operands)


def tile_of(operand: ast.expr) -> str:
    """The variable that is an operand of a product, as it is or cast there; "" where it is something else."""
    match operand:
        case ast.Name(id=name) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="to")):
            return name
    return ""


def is_type(node: ast.AST, name: str) -> bool:
    """Whether a node asks for the type of a variable's elements."""
    match node:
        case ast.Attribute(value=ast.Name(id=asked), attr=attribute):
            return (asked, attribute) == (name, _TYPE)
    return False


def _ring_of(value: cst.BaseExpression) -> str:
    """The ring that a read is of."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        value = value.func.value
    assert isinstance(value, cst.Call)
    return code(value.func).removeprefix(RING_MARK)


class _Moved(Variables):
    """Variables replaced by the reads that they stood for, their types by those of the rings; `done`: the former."""

    def __init__(self, values: Mapping[str, cst.BaseExpression], buffers: Mapping[str, str]) -> None:
        super().__init__()
        self.values, self.buffers = values, buffers
        self.done: set[str] = set()

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """Ask a ring for the type."""
        value = original_node.value
        if isinstance(value, cst.Name) and value.value in self.buffers and original_node.attr.value == _TYPE:
            return updated_node.with_changes(value=cst.Name(self.buffers[value.value]))
        return super().leave_Attribute(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """Put a read in a variable's place."""
        if original_node.value in self.values:
            self.done.add(original_node.value)
            return self.values[original_node.value]
        return updated_node
