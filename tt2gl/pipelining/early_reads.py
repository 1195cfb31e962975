"""On AMD: a product's first operand is read from shared memory before its second one is put there.

    b_smem = gl.allocate_sharedread_from(b.dtype, [BLOCK_K, BLOCK_N], b_shared, b)              # before
    y = mfma(a_smem.load(lhs_layout), b_smem.load(rhs_layout), y)

    a_lhs = a_smem.load(lhs_layout)                                                           # after
    b_smem = gl.allocate_sharedread_from(b.dtype, [BLOCK_K, BLOCK_N], b_shared, b)
    y = mfma(a_lhs, b_smem.load(rhs_layout), y)

As Triton's kernels have it, whose operands come one after the other: the second may take the first one's place in
memory then. It is so already where the first has memory for this product alone; here it is in memory for another
product, too, which took it in another layout.

Not here: what is read again below, and so keeps its memory (inverses of triangles take 81 registers for 76 by it).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.pipelining.flow import NONE, inside, reads, writes
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import called, read_from
from tt2gl.trees import blocks, nodes_in

PRODUCTS = ("mfma", "wmma")
"""How the names of AMD's instructions for products begin."""


def with_early_reads(text: str, functions: Collection[str]) -> str:
    """The text with the first operands of these functions' products read before the second ones need memory."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    taken = names_of(nodes_in(function))
    filled = [name for each in inside(function.body) if (name := filled_by(each))]
    ends = {node.id: node.lineno for node in sorted(_names(function), key=lambda node: node.lineno)}
    filled += [name for node in nodes_in(function) if (name := _stored(node))]
    for block in (function.body, *(inner for each in inside(function.body) for inner in blocks(each))):
        for at, statement in enumerate(block):
            for product in nodes_in(statement) if isinstance(statement, ast.Assign | ast.AugAssign) else ():
                if isinstance(product, ast.Call) and called(product).startswith(PRODUCTS) and len(product.args) > 1:
                    last = ends.get(read_from(product.args[0]), 0) <= (statement.end_lineno or 0)
                    yield from _moved(places, block[:at], product, filled, taken) if last else ()


def _names(function: ast.FunctionDef) -> Iterator[ast.Name]:
    return (node for node in nodes_in(function) if isinstance(node, ast.Name))


def _moved(
    places: Places, above: Sequence[ast.stmt], product: ast.Call, filled: Sequence[str], taken: set[str]
) -> Iterator[Edit]:
    """The edits that have a product's first operand read above the line that puts its second one into memory."""
    first, second = map(read_from, product.args[:2])
    if filled.count(first) != 1 or filled.count(second) != 1 or first == second:
        return
    at = next((at for at, each in enumerate(above) if filled_by(each) == second), None)
    if (
        at is None
        or first not in map(filled_by, above[:at])
        or reads(product.args[0]) & NONE.union(*map(writes, above[at:]))
    ):
        return
    name = claimed(f"{first.removesuffix('_smem')}_lhs", taken)
    line, _ = places.lines(above[at])
    start, end = places.of(product.args[0])
    yield Edit(line, line, f"{' ' * above[at].col_offset}{name} = {places.raw[start:end].decode()}\n")
    yield Edit(start, end, name)


def filled_by(statement: ast.stmt) -> str:
    """The name of the memory that a statement makes for a value; empty for others."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[_, _, _, _]) as value):
            return name if called(value) == "allocate_shared_memory" else ""
    return ""


def _stored(node: ast.AST) -> str:
    """The name of the memory that a call stores something else to; empty for others."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="store")):
            return name
    return ""
