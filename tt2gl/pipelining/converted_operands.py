"""Rule `hoist` on NVIDIA: what multiply-adds read from shared memory is converted, for their result, before them.

    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)              # before
    h = gl.dot_fma(x_smem.load(lhs_layout), w_smem.load(rhs_layout), zeros)
    loss = gl.sum(h * gl.convert_layout(x, mma_layout), axis=1)

    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)              # after
    x_mma = gl.convert_layout(x, mma_layout)
    h = gl.dot_fma(x_smem.load(lhs_layout), w_smem.load(rhs_layout), zeros)
    loss = gl.sum(h * x_mma, axis=1)

Triton's compiler puts a conversion right behind what is converted (RemoveLayoutConversions). Its barriers behind the
product keep the assembler from sharing registers among thousands of multiply-adds: one of 32x64x64 spills 924 of them
on sm90 for none.

Not here: what is converted under a condition, or has another value by then.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.naming import Fresh, names_of
from tt2gl.trees import blocks, nodes_in


def with_converted_operands(text: str, functions: Collection[str]) -> str:
    """The text with operands of these functions' products converted before those."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    fresh = Fresh(names_of(nodes_in(function)))
    for block in (function.body, *(each for statement in inside(function.body) for each in blocks(statement))):
        for index, statement in enumerate(block):
            if (value := _filled(statement)) and (calls := _conversions(value, block[index:])):
                yield from _moved(places, statement, value, calls, fresh)


def _filled(statement: ast.stmt) -> str | None:
    """The variable that a statement puts into shared memory."""
    match statement:
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="gl"), attr="allocate_shared_memory"),
                args=[_, _, _, ast.Name(id=value)],
            ),
        ):
            return value
    return None


def _conversions(value: str, block: Sequence[ast.stmt]) -> list[ast.Call]:
    """The calls that convert a variable in the first statement that does, where one multiplies it by then."""
    fill, *following = block
    changed: set[str] = set()
    multiplied = False
    for statement in following:
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            return []
        nodes = nodes_in(statement)
        multiplied = multiplied or bool(writes(fill) & reads(statement)) and any(map(_multiplies, nodes))
        if found := [node for node in nodes if isinstance(node, ast.Call) and _converts(node, value)]:
            alike = len({ast.unparse(call) for call in found}) == 1 and not any(map(_chooses, nodes))
            return found if multiplied and alike and not changed & reads(found[0]) else []
        changed |= writes(statement)
    return []


def _converts(call: ast.Call, value: str) -> bool:
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="gl"), attr="convert_layout"), args=[ast.Name(id=name), ast.expr()]
        ):
            return name == value
    return False


def _multiplies(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="gl"), attr="dot_fma")):
            return True
    return False


def _chooses(node: ast.AST) -> bool:
    return isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda)


def _moved(places: Places, fill: ast.stmt, value: str, calls: Sequence[ast.Call], fresh: Fresh) -> Iterator[Edit]:
    """What converts a variable behind the statement that puts it into memory, and its name for the calls."""
    layout = calls[0].args[1]
    suffix = layout.id.removesuffix("_layout") if isinstance(layout, ast.Name) else "converted"
    name = fresh(f"{value}_{suffix}")
    indent = places.line(fill.lineno)[: fill.col_offset].decode()
    _, end = places.lines(fill)
    yield Edit(end, end, f"{indent}{name} = {ast.unparse(calls[0])}\n")
    for call in calls:
        yield Edit(*places.of(call), name)
