"""Rule `hoist`: a value is converted before what is loaded beside it, and not while that waits in registers.

    residual = gl.load(residual_ptrs, mask=mask)                                              # before
    acc = gl.convert_layout(acc, residual_layout) + residual

    acc = gl.convert_layout(acc, residual_layout)                                             # after
    residual = gl.load(residual_ptrs, mask=mask)
    acc += residual

Triton's compiler puts a conversion right behind what is converted (RemoveLayoutConversions), and the assembler moves no
load over the barriers of one. With the load above, a linear layer with a residual took 89 registers for Triton's 78 on
sm100. Only a variable whose next value is made of both is converted early, as no other name is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.trees import blocks, nodes_in


def with_early_conversions(text: str, functions: Collection[str]) -> str:
    """The text with conversions of these functions above the loads of what is computed with."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    """The edits of a function, block by block."""
    yield from _block(places, function.body)
    for statement in inside(function.body):
        for block in blocks(statement):
            yield from _block(places, block)


def _block(places: Places, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """The edits that move the conversions of one block."""
    for index, statement in enumerate(block):
        if (found := _converted(statement)) is None:
            continue
        name, call = found
        load = None
        for other in reversed(block[:index]):
            if isinstance(other, ast.If | ast.For | ast.While) or name in reads(other) or writes(other) & reads(call):
                break
            load = other if loads(other) and writes(other) & reads(statement) else load
        if load is not None:
            yield _above(places, load, f"{name} = {ast.unparse(call)}")
            yield _use(places, statement, name, call)


def _converted(statement: ast.stmt) -> tuple[str, ast.Call] | None:
    """The variable that a statement gives a new value, made of its converted one alone, and the call; else None."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            calls = [node for node in nodes_in(statement) if _converts(node, name)]
            uses = [node for node in nodes_in(statement.value) if isinstance(node, ast.Name) and node.id == name]
            if len(calls) == len(uses) == 1 and statement.value is not calls[0]:
                (call,) = calls
                assert isinstance(call, ast.Call)
                return name, call
    return None


def _converts(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="gl"), attr="convert_layout"), args=[ast.Name(id=converted), _]
        ):
            return converted == name
    return False


def loads(statement: ast.stmt) -> bool:
    """Whether a statement loads from global memory."""
    calls = (node.func for node in nodes_in(statement) if isinstance(node, ast.Call))
    return any(isinstance(each, ast.Attribute) and ast.unparse(each) == "gl.load" for each in calls)


def _above(places: Places, statement: ast.stmt, said: str) -> Edit:
    """A statement above another one and its comments."""
    indent = places.line(statement.lineno)[: statement.col_offset].decode()
    start, _ = places.lines(statement, comments=True)
    return Edit(start, start, f"{indent}{said}\n")


def _use(places: Places, statement: ast.stmt, name: str, call: ast.Call) -> Edit:
    """What stands for the call: the variable, with `+=` for `x = x +` where that says it all."""
    start, end = places.of(call)
    match statement:
        case ast.Assign(value=ast.BinOp(left=left, right=right)) if left is call:
            first = places.starts[statement.lineno - 1] + statement.col_offset
            operator = places.raw[end : places.of(right)[0]].decode().strip()
            if places.raw[first:start].decode() == f"{name} = " and re.fullmatch(r"[+*-]", operator):
                return Edit(first, places.of(right)[0], f"{name} {operator}= ")
    return Edit(start, end, name)
