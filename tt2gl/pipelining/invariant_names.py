"""Rule `hoist` on AMD: rows of indices that a loop names, and makes alike on every turn, are named before it.

    for i in range(turns):                                                                    # before
        offs_k = i_k * BLOCK_K + k_range.to(gl.int64)
        gl.store(h_ptr + i * K + offs_k[:, None] * V + offs_v[None, :], h, mask=(offs_k[:, None] < K) & inside)

    offs_k = i_k * BLOCK_K + k_range.to(gl.int64)                                             # after
    for i in range(turns):
        gl.store(h_ptr + i * K + offs_k[:, None] * V + offs_v[None, :], h, mask=(offs_k[:, None] < K) & inside)

Block pointers that a loop makes give it such lines. Triton's LICM pass moves them, and what is made of them alike,
which `invariants` does then: it knows no name of the loop's for such. LLVM moves both as well, but masks too late: a
state of chunks takes 96 registers for 134 with the mask of its store made before the loop (gfx950), as Triton's kernel
does, and two more waves run at once.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Sequence

from tt2gl.edits import Edit, Places
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import Liveness, inside, writes
from tt2gl.pipelining.invariant_tiles import Loop, loop_by_loop
from tt2gl.pipelining.static import called, is_unrolled
from tt2gl.trees import nodes_in

_COMPUTES = {"to", "cast", "arange", "SliceLayout"}
"""What is called where indices are made."""


def without_invariant_names(text: str, functions: Collection[str]) -> str:
    """The text with the rows of indices that loops of these functions make alike before them."""
    return loop_by_loop(text, functions, _edits)


def _edits(function: ast.FunctionDef, effects: Effects, places: Places) -> list[Edit]:
    """The edits of the first loop of a function that makes such rows, from the inside out."""
    live = Liveness()
    live.before(function.body, frozenset())
    loops = [each for each in inside(function.body) if isinstance(each, ast.For | ast.While)]
    for loop in reversed(loops):
        question = Loop(function, loop, None, effects, live.after[loop])
        if is_unrolled(loop) or not (moved := _moved(question)):
            continue
        indent = places.line(loop.lineno)[: loop.col_offset].decode()
        said = "".join(textwrap.indent(question.said(each, places), indent) for each in moved)
        start, _ = places.lines(loop, comments=True)
        return [Edit(start, start, said), *(Edit(*question.lines(each, places), "") for each in moved)]
    return []


def _moved(loop: Loop) -> Sequence[ast.stmt]:
    """The statements of a loop's body that name such rows, and what those are made of there; never all of it."""
    needed = {part for each in loop.loop.body if _is_row(each, loop) for part in loop.needed(each) or ()}
    alone = all(_computes(each) and loop.bindings.count(name) == 1 for each in needed for name in writes(each))
    return [each for each in loop.loop.body if each in needed] if alone and len(needed) < len(loop.loop.body) else []


def _is_row(statement: ast.stmt, loop: Loop) -> bool:
    """Whether a statement names what the loop reads along a dimension of tiles."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return _computes(statement) and any(_is_expanded(node, name) for node in nodes_in(loop.loop))
    return False


def _computes(statement: ast.stmt) -> bool:
    """Whether a statement only makes indices."""
    calls = (node for node in nodes_in(statement) if isinstance(node, ast.Call))
    return isinstance(statement, ast.Assign) and all(called(each) in _COMPUTES for each in calls)


def _is_expanded(node: ast.AST, name: str) -> bool:
    """Whether a node gives the tensor of a name another dimension."""
    match node:
        case ast.Subscript(value=ast.Name(id=read), slice=ast.Tuple(elts=places)):
            return read == name and any(isinstance(each, ast.Constant) and each.value is None for each in places)
    return False
