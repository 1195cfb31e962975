"""What goes with tiles that leave loops of AMD: the registers of products, and the last iterations' own copy of them.

for k in range(drain):                                      q = buffer_load(q_ptr, offs, mask=(some turn) & inside)
    acc = mfma(q_smem.load(q_layout), k_buf.., acc)         q_smem = gl.allocate_shared_memory(..., q)
q = buffer_load(q_ptr, offs, mask=(drain < n) & inside)     q_smem_lhs = q_smem.load(q_layout)
q_smem = gl.allocate_shared_memory(..., q)                  for k in range(drain):
for k in range(drain, n):                                       acc = mfma(q_smem_lhs, k_buf.., acc)
    acc = mfma(q_smem.load(q_layout), k_buf.., acc)         for k in range(drain, n):
                                                                acc = mfma(q_smem_lhs, k_buf.., acc)

Triton moves conversions to products' operands before loops on AMD (its pass HoistLayoutConversions), and knows one loop
when it does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.names import claimed
from tt2gl.pipelining.flow import NONE, Names, reads, writes
from tt2gl.pipelining.static import called, read_from
from tt2gl.trees import nodes_in

_PRODUCTS = ("mfma", "wmma")
_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


@dataclass(frozen=True)
class Read:
    """What products read of a tile into registers alike: the name of that, its source, and where a loop has it."""

    name: str
    source: str
    calls: tuple[ast.Call, ...] = ()


def reads_of(
    tiles: Names, loop: ast.For | ast.While, changed: Names, known: Sequence[Read], taken: set[str]
) -> list[Read]:
    """The reads of these tiles by products of a loop, in layouts that it does not change; `known`: those of another."""
    names = {each.source: each.name for each in known}
    found: dict[str, list[ast.Call]] = {}
    for call, side in _operands(loop):
        source = ast.unparse(call)
        if read_from(call) in tiles and not reads(call.args[0]) & changed:
            found.setdefault(source, []).append(call)
            if source not in names:
                names[source] = claimed(f"{read_from(call)}_{side}", taken)
    return [Read(names[source], source, tuple(calls)) for source, calls in found.items()]


def _operands(loop: ast.For | ast.While) -> Iterator[tuple[ast.Call, str]]:
    """What AMD's products of a loop's own statements read where they take it, and on which side."""
    for statement in loop.body:
        for product in nodes_in(statement) if isinstance(statement, _ASSIGNMENTS) else ():
            if isinstance(product, ast.Call) and called(product) in _PRODUCTS:
                for operand, side in zip(product.args[:2], ("lhs", "rhs"), strict=False):
                    if read_from(operand):
                        assert isinstance(operand, ast.Call)
                        yield operand, side


@dataclass(frozen=True)
class Again:
    """What stands behind a loop as it does before it, for a loop that does the same: its statements, and reads."""

    lines: list[ast.stmt]
    reads: list[Read]
    turns: str


def again(
    function: ast.FunctionDef,
    loop: ast.For | ast.While,
    moved: Sequence[ast.stmt],
    turns: Callable[[ast.For | ast.While], str | None],
    said: Callable[[ast.stmt, str], str],
) -> Again | None:
    """What moves before a loop, where it stands behind it in the same words, before another loop.

    `turns`: whether a loop has any, as source; `said`: a statement as it is before a loop that has such turns.
    """
    behind = _behind(function, loop)
    other = next((each for each in behind if isinstance(each, ast.For | ast.While)), None)
    has_turns = turns(other) if other is not None else None
    bound = [name for each in moved for name in writes(each)]
    inside = [name for each in nodes_in(loop) if isinstance(each, ast.Name | ast.stmt) for name in _stored(each)]
    if has_turns is None or any(inside.count(name) > 1 for name in bound):
        return None
    lines = behind[: len(moved)]
    words = [ast.unparse(ast.parse(said(each, has_turns))) for each in moved]
    if [ast.unparse(each) for each in lines] != words:
        return None
    found: list[Read] = []
    for each in behind[len(moved) :]:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if read_from(value) in bound:
                found.append(Read(name, ast.unparse(value)))
                lines.append(each)
            case _:
                break
    return Again(lines, found, has_turns)


def _stored(node: ast.AST) -> Names:
    return frozenset({node.id}) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else NONE


def _behind(function: ast.FunctionDef, loop: ast.stmt) -> list[ast.stmt]:
    """The statements behind one in its block."""
    for node in nodes_in(function):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list) and loop in block:
                return block[block.index(loop) + 1 :]
    return []
