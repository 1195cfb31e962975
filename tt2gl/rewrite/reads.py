"""Rule `reads`: a product's operand is read below what is done for the other: a conversion, or a turned tile's reading.

A conversion takes its operand through shared memory. There are fewer barriers between the two ways where both are
written before either is read, and an operand that is read before waits in registers: of a product of `x_smem.load(...)`
and `gl.convert_layout(w.T, ...)`, that gets a line and a name of its own, `w_rhs`. Two tiles of 64x32 take 168
registers a thread for 189 on sm80.

Triton reads a tile that TMA copies where it is first used, and a transposition counts as a use: it stands right below
its tile's reading, and the product's other operand is read below both. ptxas keeps that order, and what it has read by
then. So two tiles of 128x64 take 122 registers a thread for 162 on sm120. Others are read in the order of their loads,
but the second operand never before the first.

    a = a_ring(a_desc, [offs_m, offs_k]).load(lhs_layout)                       # before
    b = b_ring(b_desc, [offs_n, offs_k])
    acc = mma_v2(a, b.permute((1, 0)).load(rhs_layout), acc)

    a = a_ring(a_desc, [offs_m, offs_k])                                        # after
    b = b_ring(b_desc, [offs_n, offs_k])
    b_rhs = b.permute((1, 0)).load(rhs_layout)
    acc = mma_v2(a.load(lhs_layout), b_rhs, acc)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import libcst as cst

from tt2gl.names import unused
from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import RingRead, is_product, ring_read, with_replaced
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import names_in
from tt2gl.visitors import Editor

SIDES = ("lhs", "rhs")
"""What an operand of a product is called after."""


def turned_first(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products by `mma_v2` read what is turned first, and below what is converted."""
    products = [node for node in walk(function) if isinstance(node, cst.Call) and is_product(node)]
    if not products:
        return function
    made = function.visit(_TurnedFirst(names_in(function)))
    assert isinstance(made, cst.FunctionDef)
    return made


class Blocks(Editor):
    """Reads the operands of each block's products; `mentioned`: every mention of a name in the function."""

    def __init__(self, mentioned: list[str]) -> None:
        super().__init__()
        self.mentioned = mentioned

    def unused(self, name: str) -> str:
        """The name, numbered where the function mentions it."""
        chosen = unused(name, self.mentioned)
        self.mentioned.append(chosen)
        return chosen


class _TurnedFirst(Blocks):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        made: list[cst.BaseStatement] = []
        for line in updated_node.body:
            made.append(self._with_reads(line, made) if isinstance(line, cst.SimpleStatementLine) else line)
        return updated_node.with_changes(body=made)

    def _with_reads(self, line: cst.SimpleStatementLine, above: list[cst.BaseStatement]) -> cst.SimpleStatementLine:
        """The statement of a product that reads what it is to read, below what stands above it."""
        products = [node for node in walk(line) if isinstance(node, cst.Call) and is_product(node)]
        if len(products) != 1:
            return line
        product = products[0]
        if _waits(product):
            return self._with_first(line, product, 1, above)
        first, second = (each.value for each in product.args[:2])
        turned = [place for place, each in enumerate((first, second)) if _turned(each)]
        if len(turned) == 1:
            other = (second, first)[turned[0]]
            loaded = self._in_memory(other, above, lambda read: _is_tile(read.tile))
            return self._with_first(line, product, turned[0], above, {other: loaded}) if loaded is not None else line
        own = [at for at, each in enumerate(above) if (read := ring_read(each)) and names_in(first) == [read.name]]
        if not own and not _is_memory_read(first):
            return line
        earlier = above[: own[-1]] if own else above
        loaded = self._in_memory(second, above, lambda read: any(ring_read(each) == read for each in earlier))
        return with_replaced(line, {second: loaded}) if loaded is not None else line

    def _in_memory(
        self, operand: cst.BaseExpression, above: list[cst.BaseStatement], asked: Callable[[RingRead], bool]
    ) -> cst.Call | None:
        """An operand as it is read from its ring, if it is only the product's: the statement above leaves it there."""
        if not isinstance(operand, cst.Name) or self.mentioned.count(operand.value) != 2:
            return None
        reads = {at: read for at, each in enumerate(above) if (read := ring_read(each)) and read.name == operand.value}
        if not reads:
            return None
        at, read = reads.popitem()
        if not asked(read):
            return None
        in_memory = above[at].deep_replace(read.reading, read.tile)
        assert isinstance(in_memory, cst.SimpleStatementLine)
        above[at] = in_memory
        return read.reading.with_changes(func=cst.Attribute(operand, cst.Name("load")))

    def _with_first(
        self,
        line: cst.SimpleStatementLine,
        product: cst.Call,
        place: int,
        above: list[cst.BaseStatement],
        replaced: Mapping[cst.CSTNode, cst.BaseExpression] = MappingProxyType({}),
    ) -> cst.SimpleStatementLine:
        """The statement of a product one of whose operands gets a line and a name of its own, above it."""
        first = product.args[place].value
        variable = next(name for name in names_in(first) if name.removeprefix(MARK) not in ("gl", "tl"))
        name = self.unused(f"{variable}_{SIDES[place]}")
        changed = with_replaced(line, {**replaced, first: cst.Name(name)})
        assigned = cst.Assign([cst.AssignTarget(cst.Name(name))], first)
        above.append(cst.SimpleStatementLine([assigned], leading_lines=changed.leading_lines))
        return changed.with_changes(leading_lines=[])


def _waits(product: cst.Call) -> bool:
    """Whether a product reads its first operand from the memory of a value, and converts the second after that."""
    match product.args[1].value:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=module), attr=cst.Name(value="convert_layout"))):
            return module.removeprefix(MARK) == "gl" and _is_memory_read(product.args[0].value)
    return False


def _is_memory_read(operand: cst.BaseExpression) -> bool:
    """Whether an operand is what is read of a value's own memory."""
    match operand:
        case cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value="load"))):
            return True
    return False


def _is_tile(marker: cst.Call) -> bool:
    """Whether a ring's tile is copied through a descriptor: its offsets are a list."""
    return len(marker.args) > 1 and isinstance(marker.args[1].value, cst.List)


def _turned(operand: cst.BaseExpression) -> bool:
    """Whether an operand is a tile's transposition, read from its memory."""
    match operand:
        case cst.Call(
            func=cst.Attribute(
                value=cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value="permute"))),
                attr=cst.Name(value="load"),
            )
        ):
            return True
    return False
