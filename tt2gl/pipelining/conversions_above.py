"""On AMD: what the statement of a product converts is converted before an operand is put into shared memory for it.

    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_K, BLOCK_N], h_shared, h)               # before
    v = gl.convert_layout(u, v_layout) - mfma(w, h_smem.load(rhs_layout), zeros)

    u_v = gl.convert_layout(u, v_layout)                                                      # after
    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_K, BLOCK_N], h_shared, h)
    v = u_v - mfma(w, h_smem.load(rhs_layout), zeros)

A conversion passes shared memory itself, which then needs room beside the operand's. Triton's stands where the value is
made, above. Not those of scales, which are small: block-scaled products on gfx1250 would wait 15 times a step for 12.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.pipelining.early_reads import PRODUCTS, filled_by
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import called
from tt2gl.trees import blocks, nodes_in

_SCALED = ("mfma_scaled", "wmma_scaled")
_SOMETIMES = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension)


def with_conversions_above(text: str, functions: Collection[str]) -> str:
    """The text with conversions of these functions' products above the memory of their operands."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    taken = names_of(nodes_in(function))
    for block in (function.body, *(inner for each in inside(function.body) for inner in blocks(each))):
        for at, statement in enumerate(block):
            if _multiplies(statement) and (first := _first_filled(block[:at], statement)) is not None:
                yield from _above(places, first, block[block.index(first) : at], statement, taken)


def _multiplies(statement: ast.stmt) -> bool:
    """Whether a statement is computed whole, of products and more."""
    nodes = list(nodes_in(statement)) if isinstance(statement, ast.Assign | ast.AugAssign) else []
    if any(isinstance(node, _SOMETIMES) for node in nodes):
        return False
    functions = [called(node) for node in nodes if isinstance(node, ast.Call)]
    return any(each.startswith(PRODUCTS) for each in functions) and not any(each in _SCALED for each in functions)


def _first_filled(above: Sequence[ast.stmt], statement: ast.stmt) -> ast.stmt | None:
    """The first of the lines right above a statement that put into memory what it reads; None without."""
    first = None
    for each in reversed(above):
        if filled_by(each) not in reads(statement):
            break
        first = each
    return first


def _above(
    places: Places, first: ast.stmt, between: Sequence[ast.stmt], statement: ast.stmt, taken: set[str]
) -> Iterator[Edit]:
    """The edits that have the variables which a statement converts converted above another one."""
    made = set[str]().union(*map(writes, between))
    known: dict[str, str] = {}
    for node in nodes_in(statement):
        match node:
            case ast.Call(args=[value, layout]) if called(node) == "convert_layout" and _is_cast(value):
                start, end = places.of(node)
                text = places.raw[start:end].decode()
                if reads(node) & made or "\n" in text:
                    continue
                if text not in known:
                    source = next(each.id for each in nodes_in(value) if isinstance(each, ast.Name))
                    into = layout.id.removesuffix("_layout") if isinstance(layout, ast.Name) else "converted"
                    known[text] = claimed(f"{source}_{into}", taken)
                    line, _ = places.lines(first, comments=True)
                    yield Edit(line, line, f"{' ' * first.col_offset}{known[text]} = {text}\n")
                yield Edit(start, end, known[text])


def _is_cast(value: ast.AST) -> bool:
    """Whether a value is a variable, as it is or cast."""
    match value:
        case ast.Call(func=ast.Attribute(value=cast, attr="to")):
            return _is_cast(cast)
    return isinstance(value, ast.Name)


__all__ = ["with_conversions_above"]
