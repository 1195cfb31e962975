"""Rule `hoist`: what a loop loads and turns for `mma_v2` is converted as it comes, before what is loaded beside it.

    k = gl.load(k_ptrs, mask=mask)                                                            # before
    r = gl.load(r_ptrs, mask=mask)
    s = mma_v2(q_smem.load(lhs_layout), gl.convert_layout(tl.trans(k), rhs_layout), zeros)

    k = gl.load(k_ptrs, mask=mask)                                                            # after
    k_rhs = gl.convert_layout(tl.trans(k), rhs_layout)
    r = gl.load(r_ptrs, mask=mask)
    s = mma_v2(q_smem.load(lhs_layout), k_rhs, zeros)

Triton's compiler puts the conversion of an operand next to its load (`hoistConvertDotOperand` of
RemoveLayoutConversions), and the assembler moves no load or read of shared memory over the barriers of one. The
gradients of a latent attention spill 8 registers a thread so for 80 on sm90, where Triton's kernel spills 2.

Not here: operands that are not turned are read from shared memory, and what goes through a ring is read from its slots.
Nor where a product stands between, across which the operand would stay in registers: the keys' and values' gradients of
attention spilled 90 a thread so for 28 on sm120, where Triton's kernel spills 48.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.converted_loads import is_read, products
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.naming import Fresh, names_of
from tt2gl.trees import blocks, nodes_in


def with_turned_loads(text: str, functions: Collection[str]) -> str:
    """The text with what loops of these functions load and turn for products converted as it comes."""
    return in_functions(text, functions, lambda places, function: _Function(places, function).edits())


@dataclass(frozen=True)
class _Conversion:
    """A conversion of what is turned: in which statement of its block, and for which side of a product."""

    place: int
    call: ast.Call
    side: str


class _Function:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        self.fresh = Fresh(names_of(nodes_in(function)))
        self.sides = _sides(function)

    def edits(self) -> Iterator[Edit]:
        """The edits of the function: of the own block of each loop, and of those of its branches."""
        for loop in inside(self.function.body):
            if isinstance(loop, ast.For | ast.While) and products(loop) == {"mma_v2"}:
                for block in blocks(loop):
                    yield from self._block(block)

    def _block(self, block: Sequence[ast.stmt]) -> Iterator[Edit]:
        """The edits that convert what a block of a loop loads and turns."""
        for index, statement in enumerate(block):
            if (name := _loaded(statement)) is None:
                continue
            for calls in self._conversions(block, index, name).values():
                last = _stored(block, index, name)
                between = block[last + 1 : calls[0].place]
                bound = {written for each in block[index : calls[-1].place] for written in writes(each)} - {name}
                early = any(map(is_read, between)) and not any(map(products, between))
                if early and not bound & reads(calls[0].call):
                    yield from self._moved(block, last, name, calls)

    def _conversions(self, block: Sequence[ast.stmt], index: int, name: str) -> Mapping[str, list[_Conversion]]:
        """The conversions of what a statement loads, turned for products, by what they say, until it is changed."""
        found: dict[str, list[_Conversion]] = defaultdict(list)
        for place, below in enumerate(block[index + 1 :], index + 1):
            for node in nodes_in(below) if not list(blocks(below)) else ():
                if isinstance(node, ast.Call) and _converts(node, name):
                    said = ast.unparse(node)
                    side = self.sides.get(_whole(below, node) or said)
                    if side is not None:
                        found[said].append(_Conversion(place, node, side))
            if name in writes(below):
                break
        return found

    def _moved(self, block: Sequence[ast.stmt], last: int, name: str, calls: Sequence[_Conversion]) -> Iterator[Edit]:
        """The edits that convert below a statement, under a name, and read that."""
        named = next((each for each in calls if _name_of(block, each)), None)
        read = _name_of(block, named) if named is not None else self.fresh(f"{name}_{calls[0].side}")
        indent = self.places.line(block[last].lineno)[: block[last].col_offset].decode()
        start, end = self.places.of(calls[0].call)
        _, below = self.places.lines(block[last])
        yield Edit(below, below, f"{indent}{read} = {self.places.raw[start:end].decode()}\n")
        for each in calls:
            where = self.places.lines(block[each.place]) if each is named else self.places.of(each.call)
            yield Edit(*where, "" if each is named else read)


def _whole(statement: ast.stmt, call: ast.Call) -> str:
    """The variable that a statement gives a call's value as it is; empty where there is none."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            return name
    return ""


def _name_of(block: Sequence[ast.stmt], conversion: _Conversion) -> str:
    """The variable that a conversion alone gives its value to, on lines of its own; empty where there is none."""
    statement = block[conversion.place]
    name = _whole(statement, conversion.call)
    for each in block:
        on_its_lines = each.lineno == statement.end_lineno or each.end_lineno == statement.lineno
        if each is not statement and (on_its_lines or name in writes(each)):
            return ""
    return name


def _sides(function: ast.FunctionDef) -> Mapping[str, str]:
    """The operands of a function's products by `mma_v2`, as source, and which of the two each is."""
    found: dict[str, str] = {}
    for node in nodes_in(function):
        match node:
            case ast.Call(func=ast.Name(id="mma_v2"), args=[lhs, rhs, *_]):
                found |= {ast.unparse(lhs): "lhs", ast.unparse(rhs): "rhs"}
    return found


def _loaded(statement: ast.stmt) -> str | None:
    """The variable that a statement gives what it loads, as it comes."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
            return name if ast.unparse(function) == "gl.load" else None
    return None


def _stored(block: Sequence[ast.stmt], index: int, name: str) -> int:
    """The last of the statements below a load that do nothing but put what it loads into shared memory."""
    for place in range(index + 1, len(block)):
        match block[place]:
            case ast.Assign(
                value=ast.Call(func=ast.Attribute(attr="allocate_shared_memory"), args=[*_, ast.Name(id=put)])
            ):
                if put == name:
                    continue
        return place - 1
    return index


def _converts(call: ast.Call, name: str) -> bool:
    """Whether a call converts a variable turned."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="gl"), attr="convert_layout"), args=[turned, _]):
            return _is_turned(turned, name)
    return False


def _is_turned(value: ast.expr, name: str) -> bool:
    match value:
        case ast.Attribute(value=ast.Name(id=read), attr="T"):
            return read == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tl" | "gl"), attr="trans" | "permute"), args=[read, *_]):
            return isinstance(read, ast.Name) and read.id == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr="trans" | "permute")):
            return read == name
    return False
