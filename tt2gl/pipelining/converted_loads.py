"""Rule `hoist`: what a loop loads is converted as it comes on NVIDIA, and not while tiles wait beside it.

    scales = gl.load(scale_ptrs, mask=mask)                                                   # before
    q = q_buf.index(slot).load(q_layout)
    b = q * gl.convert_layout(scales, gl.SliceLayout(0, q_layout))[None, :]
    acc = mma_v2(a, gl.convert_layout(b, rhs_layout), acc)

    scales = gl.convert_layout(gl.load(scale_ptrs, mask=mask), gl.SliceLayout(0, q_layout))   # after
    q = q_buf.index(slot).load(q_layout)
    b = q * scales[None, :]
    acc = mma_v2(a, gl.convert_layout(b, rhs_layout), acc)

So does Triton's compiler with what becomes an operand of `mma_v2`; the assembler moves no read of a slot over the
barriers of a conversion. A product of 64x128x32 with packed weights takes 168 registers so for 197 on sm80 (Triton's
kernel 168). What becomes the layout of a product, and what `wgmma` and `tcgen05_mma` take, Triton converts where it is
read (148 registers for Triton's 128 otherwise, in the same product by `wgmma`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.early_conversions import loads
from tt2gl.pipelining.flow import inside, writes
from tt2gl.trees import blocks, nodes_in

_INSTRUCTIONS = {"mma_v2", "mma_v2_scaled", "warpgroup_mma", "tcgen05_mma", "tcgen05_mma_scaled"}


def with_converted_loads(text: str, functions: Collection[str]) -> str:
    """The text with what loops of these functions load converted as it comes."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    layouts = {
        statement.target.id: ast.unparse(statement.value)
        for statement in function.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value
    }
    for loop in inside(function.body):
        if isinstance(loop, ast.For | ast.While) and products(loop) == {"mma_v2"}:
            for block in blocks(loop):
                yield from _block(places, block, function, layouts)


def _block(
    places: Places, block: Sequence[ast.stmt], function: ast.FunctionDef, layouts: Mapping[str, str]
) -> Iterator[Edit]:
    """The edits that convert loads of a loop's own block."""
    for index, statement in enumerate(block):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as load) if loads(statement):
                pass
            case _:
                continue
        mentions = [node for node in nodes_in(function) if isinstance(node, ast.Name) and node.id == name]
        below = block[index + 1 :]
        calls = [(place, call) for place, each in enumerate(below) for call in _conversions(each, name)]
        said = {ast.unparse(call.args[1]) for _, call in calls}
        if len(said) != 1 or len(mentions) != 1 + len(calls) or ast.unparse(load.func) != "gl.load":
            continue
        (layout,) = said
        between = below[: calls[0][0]]
        bound = {written for each in (statement, *between) for written in writes(each)}
        if (
            bound & set(re.findall(r"\w+", layout))
            or not _is_coalesced(layout, layouts)
            or not any(map(is_read, between))
        ):
            continue
        start, end = places.of(load)
        yield Edit(start, start, "gl.convert_layout(")
        yield Edit(end, end, f", {layout})")
        for _, call in calls:
            yield Edit(*places.of(call), name)


def products(loop: ast.stmt) -> set[str]:
    """The instructions that a loop multiplies by."""
    called = {node.func.id for node in nodes_in(loop) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return called & _INSTRUCTIONS


def _conversions(statement: ast.stmt, name: str) -> Iterator[ast.Call]:
    """The conversions of a variable in a statement that is not made of others."""
    for node in nodes_in(statement) if not list(blocks(statement)) else ():
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="gl"), attr="convert_layout"), args=[ast.Name(id=read), _]
            ) if read == name:
                yield node


def _is_coalesced(layout: str, layouts: Mapping[str, str]) -> bool:
    """Whether all layouts that one is made of are those of accesses."""
    made_of = [layouts[word] for word in re.findall(r"\w+", layout) if word in layouts]
    return bool(made_of) and all(source.startswith("coalesced(") for source in made_of)


def is_read(statement: ast.stmt) -> bool:
    """Whether a statement reads a tile of shared memory, or loads one."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"
        for node in nodes_in(statement)
    )
