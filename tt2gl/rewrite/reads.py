"""Rule `reads`: of a product's operands, one that is turned on its way to registers is read before the other.

Triton reads a tile where it is first used, and a transposition counts as a use: it stands right below its tile's
reading, and the product's other operand is read below both. ptxas keeps that order, and what it has read by then. So
two tiles of 128x64 take 122 registers a thread for 162 on sm120.

    a = a_ring(a_desc, [offs_m, offs_k]).load(lhs_layout)                       # before
    b = b_ring(b_desc, [offs_n, offs_k])
    acc = mma_v2(a, b.permute((1, 0)).load(rhs_layout), acc)

    a = a_ring(a_desc, [offs_m, offs_k])                                        # after
    b = b_ring(b_desc, [offs_n, offs_k])
    b_rhs = b.permute((1, 0)).load(rhs_layout)
    acc = mma_v2(a.load(lhs_layout), b_rhs, acc)
"""

from __future__ import annotations

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import is_product, ring_read, with_replaced
from tt2gl.rewrite.build import unused
from tt2gl.rewrite.dots import names_in
from tt2gl.visitors import Editor

SIDES = ("lhs", "rhs")
"""What an operand of a product is called after."""


def turned_first(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products by `mma_v2` read what is turned first."""
    products = [node for node in walk(function) if isinstance(node, cst.Call) and is_product(node)]
    if not any(_turned(node.args[place].value) for node in products for place in (0, 1)):
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
        """The statement of a product, where one operand is turned and the other only its: both read for it."""
        products = [node for node in walk(line) if isinstance(node, cst.Call) and is_product(node)]
        if len(products) != 1:
            return line
        product = products[0]
        turned = [place for place in (0, 1) if _turned(product.args[place].value)]
        if len(turned) != 1:
            return line
        first = product.args[turned[0]].value
        other = product.args[1 - turned[0]].value
        if not isinstance(other, cst.Name) or self.mentioned.count(other.value) != 2:
            return line
        reads = {at: read for at, each in enumerate(above) if (read := ring_read(each)) and read.name == other.value}
        if not reads:
            return line
        at, read = reads.popitem()
        name = self.unused(f"{names_in(first)[0]}_{SIDES[turned[0]]}")
        loaded = read.reading.with_changes(func=cst.Attribute(other, cst.Name("load")))
        changed = with_replaced(line, {other: loaded, first: cst.Name(name)})
        in_memory = above[at].deep_replace(read.reading, read.tile)
        assert isinstance(in_memory, cst.SimpleStatementLine)
        above[at] = in_memory
        above.append(
            cst.SimpleStatementLine(
                [cst.Assign([cst.AssignTarget(cst.Name(name))], first)], leading_lines=changed.leading_lines
            )
        )
        return changed.with_changes(leading_lines=[])


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
