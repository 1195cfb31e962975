"""What several products read from shared memory is put there once; what they read into registers, read once, too.

    dv_operand = dv.to(w.dtype)                                                               # before
    dv_smem = gl.allocate_shared_memory(dv_operand.dtype, [BLOCK_K, BLOCK_N], dv_shared, dv_operand)
    fence_async_shared()
    x = warpgroup_mma(w, dv_smem, zeros)
    if K > 64:
        w = w_2_buf.index(slot)
        dv_operand_2 = dv.to(w.dtype)
        dv_smem_2 = gl.allocate_shared_memory(dv_operand_2.dtype, [BLOCK_K, BLOCK_N], dv_shared, dv_operand_2)
        fence_async_shared()
        y = warpgroup_mma(w, dv_smem_2, zeros)

    dv_operand = dv.to(w.dtype)                                                               # after
    dv_smem = gl.allocate_shared_memory(dv_operand.dtype, [BLOCK_K, BLOCK_N], dv_shared, dv_operand)
    fence_async_shared()
    x = warpgroup_mma(w, dv_smem, zeros)
    if K > 64:
        w = w_2_buf.index(slot)
        gl.static_assert(dv_smem.dtype == w.dtype, "both products are taken to read the same tile")
        fence_async_shared()
        y = warpgroup_mma(w, dv_smem, zeros)

As Triton's CSE has it. Gluon's memory can be written to, so that no pass makes one of two; each costs its stores, and a
barrier besides. A cast to the type of a name that has changed since is the same where both types are: that is asserted.

What `mma_v2` takes, and AMD's instructions, and first operands of `wgmma` that come in registers, go through shared
memory into those, and stay there, as Triton converts them once, and casts them for each product. What another product
reads in another layout is in memory once:

    v_smem = gl.allocate_shared_memory(v.dtype, [BLOCK_T, BLOCK_V], v_shared, v)              # before
    x = mma_v2(k, v_smem.load(rhs_layout), x)
    v_smem_2 = gl.allocate_shared_memory(v.dtype, [BLOCK_T, BLOCK_V], v_shared, v)
    y = mma_v2(k_2, v_smem_2.load(rhs_layout), y)

    v_smem = gl.allocate_shared_memory(v.dtype, [BLOCK_T, BLOCK_V], v_shared, v)              # after
    v_rhs = v_smem.load(rhs_layout)
    x = mma_v2(k, v_rhs, x)
    y = mma_v2(k_2, v_rhs, y)

Not here: tiles made in a loop or branch that the second one is not in, but for branches of the compilation that both
are in; those of products that read their other operand where they stand, before this one; what is turned for products
that read shared memory themselves; and tensor memory's products.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.pipelining.flow import Names, reads, writes
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.trees import nodes_in

_OF_REGISTERS = {"mma_v2", "mfma", "wmma", "warpgroup_mma"}
"""What takes its operands from registers, the last its first one alone: instructions of NVIDIA and of AMD."""

_TURNS = {"trans", "permute", "turned_in_threads"}
"""What leaves a tile's elements as they are, and is the same of the same."""

_MESSAGE = "both products are taken to read the same tile"

_Branches = frozenset[tuple[str, bool]]
"""Conditions of the compilation, as source, and whether they hold."""


def with_shared_operands(text: str, functions: Collection[str]) -> str:
    """The text with the operands of several products of these functions put into shared memory once."""
    return in_functions(text, functions, lambda places, function: _Tiles(places, function).edits())


@dataclass(frozen=True)
class _Read:
    """Where a product reads a tile into registers: the product, the call that reads, and its source, but for the tile.

    `side`: which operand it is.
    """

    product: ast.stmt
    call: ast.Call
    source: str
    side: str


@dataclass
class _Tile:
    """A value in shared memory: its name there, what is put there, in which layout, and under which branches.

    `value`: the source, but for the `kind` that it is cast to; `inputs`: the names that it is made of. `read`: how it
    comes to registers, if it does, and `registers`: the name that it has there. `changed`: the kind has another type
    now, maybe.
    """

    name: str
    value: str
    kind: str
    form: tuple[str, str]
    inputs: Names
    branches: _Branches
    lines: Sequence[ast.stmt]
    read: _Read | None = None
    registers: str = ""
    changed: bool = False

    def is_like(self, other: _Tile) -> bool:
        """Whether both have the same elements, where products take them."""
        if self.read is not None and other.read is not None and other.read.product.lineno < self.read.product.lineno:
            return False
        alike = (self.value, self.kind, self.form) == (other.value, other.kind, other.form)
        return alike and (self.read is None) == (other.read is None)

    def reads_like(self, other: _Tile) -> bool:
        """Whether products read both into registers in the same way."""
        return self.read is not None and other.read is not None and self.read.source == other.read.source


class _Tiles:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        self.fixed, self.variables = constants(function), bound(function)
        names = [each for each in nodes_in(function) if isinstance(each, ast.Name)]
        self.bindings = [each.id for each in names if isinstance(each.ctx, ast.Store)]
        self.taken = names_of(nodes_in(function))
        self.uses: dict[str, list[ast.Name]] = {}
        for each in names:
            self.uses.setdefault(each.id, []).append(each)

    def edits(self) -> Iterator[Edit]:
        """The edits of the function."""
        yield from self._block(self.function.body, [], frozenset())

    def _block(self, block: Sequence[ast.stmt], known: list[_Tile], branches: _Branches) -> Iterator[Edit]:
        """The edits of a block, as tiles are known before it; those after it are left in `known`."""
        for at, statement in enumerate(block):
            match statement:
                case ast.If(test=test) if is_static(test, self.fixed, self.variables):
                    for body, holds in ((statement.body, True), (statement.orelse, False)):
                        yield from self._block(body, known, branches | {(ast.unparse(test), holds)})
                case ast.If():
                    before = [*known]
                    for body in (statement.body, statement.orelse):
                        yield from self._block(body, [*before], branches)
                    _forget(known, writes(statement))
                case ast.For() | ast.While():
                    yield from self._block(statement.body, [], branches)
                    _forget(known, writes(statement))
                case _:
                    _forget(known, writes(statement))
                    tile = self._tile(block, at, branches)
                    if tile is None:
                        continue
                    first = next((each for each in known if each.is_like(tile) and each.branches <= branches), None)
                    if first is None:
                        known.append(tile)
                    else:
                        yield from self._shared(first, tile)

    def _tile(self, block: Sequence[ast.stmt], at: int, branches: _Branches) -> _Tile | None:
        """The tile that a statement makes for products, with the statement before it that computes it alone."""
        match statement := block[at]:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(args=[_, dims, layout, ast.Name() as given]) as call
            ) if called(call) == "allocate_shared_memory" and self.bindings.count(name) == 1:
                read = None if self._is_operand(name) else self._read(name, block[at + 1 :])
                if read is None and not self._is_operand(name):
                    return None
                lines: list[ast.stmt] = [statement]
                value: ast.expr = given
                match block[at - 1] if at else None:
                    case ast.Assign(targets=[ast.Name(id=made)], value=computed) as line if (
                        made == given.id and self.bindings.count(made) == 1 and len(self.uses[made]) == 3
                    ):
                        lines, value = [line, *lines], computed
                source, kind = _cast(value)
                if source is None or read is None and not isinstance(source, ast.Name):
                    return None
                form = ast.unparse(dims), ast.unparse(layout)
                return _Tile(name, ast.unparse(source), kind, form, reads(source), branches, lines, read)
        return None

    def _read(self, name: str, block: Sequence[ast.stmt]) -> _Read | None:
        """How the one product of a block that takes a tile from shared memory reads it, which nothing else does."""
        if len(self.uses[name]) != 2:
            return None
        for statement in block:
            plain = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign)
            for call in nodes_in(statement) if plain else ():
                if not isinstance(call, ast.Call) or called(call) not in _OF_REGISTERS:
                    continue
                lhs, rhs = map(_uncast, call.args[:2])
                if _memory(lhs, read=True) == name and isinstance(lhs, ast.Call):
                    return _Read(statement, lhs, _source(lhs, name), "lhs")
                if _memory(rhs, read=True) == name and isinstance(rhs, ast.Call) and not isinstance(lhs, ast.Call):
                    return _Read(statement, rhs, _source(rhs, name), "rhs")
        return None

    def _is_operand(self, name: str) -> bool:
        """Whether shared memory of that name is read by products alone, as it lies."""
        calls = (each for each in nodes_in(self.function) if isinstance(each, ast.Call))
        operands = [_memory(each) for call in calls if called(call) == "warpgroup_mma" for each in call.args[:2]]
        return len(self.uses[name]) - 1 == operands.count(name)

    def _shared(self, first: _Tile, other: _Tile) -> Iterator[Edit]:
        """The edits by which products that read the other tile read the first."""
        start, end = self.places.lines(other.lines[0])[0], self.places.lines(other.lines[-1])[1]
        indent = self.places.line(other.lines[0].lineno)[: other.lines[0].col_offset].decode()
        said = f'{indent}gl.static_assert({first.name}.dtype == {other.kind}, "{_MESSAGE}")\n'
        yield Edit(start, end, said if first.changed else "")
        if first.reads_like(other) and first.read is not None and other.read is not None:
            if not first.registers:
                first.registers = claimed(f"{first.name.removesuffix('_smem')}_{first.read.side}", self.taken)
                yield from self._named(first.registers, first.read)
            yield Edit(*self.places.of(other.read.call), first.registers)
            return
        for use in self.uses[other.name]:
            if isinstance(use.ctx, ast.Load):
                yield Edit(*self.places.of(use), first.name)

    def _named(self, name: str, read: _Read) -> Iterator[Edit]:
        """The edits by which a tile that a product reads has a name in its registers."""
        start, end = self.places.of(read.call)
        line, _ = self.places.lines(read.product)
        indent = " " * read.product.col_offset
        yield Edit(line, line, f"{indent}{name} = {self.places.raw[start:end].decode()}\n")
        yield Edit(start, end, name)


def _memory(operand: ast.expr, *, read: bool = False) -> str:
    """The name of the memory that a product takes an operand from, as it lies or by a read; empty if otherwise."""
    if read:
        match operand:
            case ast.Call(func=ast.Attribute(value=memory, attr="load"), args=[_], keywords=[]):
                return _memory(memory)
        return ""
    match operand:
        case ast.Name(id=name) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="permute")):
            return name
    return ""


def _uncast(operand: ast.expr) -> ast.expr:
    """What a product casts as it takes it."""
    match operand:
        case ast.Call(func=ast.Attribute(value=ast.Call() as read, attr="to"), args=[_], keywords=[]):
            return read
    return operand


def _source(read: ast.Call, name: str) -> str:
    """The source of what reads a tile, without the tile's name."""
    return ast.unparse(read).removeprefix(name)


def _cast(value: ast.expr) -> tuple[ast.expr | None, str]:
    """The value that is cast, and the type that it is cast to, as source: empty where there is no cast.

    None for what more is done to than to turn it.
    """
    match value:
        case ast.Call(func=ast.Attribute(value=cast, attr="to"), args=[kind], keywords=[]) if _is_turned(cast):
            return cast, ast.unparse(kind)
    return (value, "") if _is_turned(value) else (None, "")


def _is_turned(value: ast.expr) -> bool:
    """Whether a value is one of a name, or that turned."""
    match value:
        case ast.Call(args=[inner, *order]) if called(value) in _TURNS:
            return _is_turned(inner) and not any(reads(each) for each in order)
    return isinstance(value, ast.Name)


def _forget(known: list[_Tile], changed: Names) -> None:
    """Forget the tiles whose elements a statement changes."""
    known[:] = [each for each in known if each.inputs.isdisjoint(changed)]
    for each in known:
        each.changed = each.changed or any(f"{name}." in each.kind for name in changed)
