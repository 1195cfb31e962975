"""Loops that the compiler writes out (`static_range`): what their copies do differently, though they are one text.

for i in tl.static_range(4):
    if i == 0:
        total = x
    else:
        total += x
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tt2gl.analysis.facts import FunctionFact, TensorFact
from tt2gl.analysis.frames import Frame, Value
from tt2gl.analysis.graph import Node
from tt2gl.analysis.statics import position_of
from tt2gl.trees import nodes_in


def is_unrolled(node: ast.For | ast.While, frame: Frame) -> bool:
    """Whether a loop is `static_range`: no loop to the compiler."""
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
        return False
    called = frame.facts.expressions.get(position_of(node.iter.func))
    return isinstance(called, FunctionFact) and called.name.endswith("static_range")


def is_entered(node: ast.For, frame: Frame) -> bool:
    """Whether the frontend saw the body of a loop: one that is written out no time is no code, nor binds any name."""
    parts = (part for statement in node.body for part in nodes_in(statement) if isinstance(part, ast.expr))
    return any(position_of(part) in frame.facts.expressions for part in parts)


def becomes_tensor(name: str, node: ast.stmt, frame: Frame) -> bool:
    """Whether an unrolled loop turns a scalar into a tensor, so that its reads see one."""
    for part in nodes_in(node):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            fact = frame.facts.expressions.get(position_of(part))
            if isinstance(fact, TensorFact) and fact.shape:
                return True
    return False


def in_turn(index: ast.expr, values: Sequence[Value], frame: Frame) -> bool:
    """Whether an index is another one in each copy of an unrolled loop, into tensors all of as many dimensions."""
    counts = any(isinstance(part, ast.Name) and part.id in frame.turns for part in nodes_in(index))
    return counts and len({len(value.shape) for value in values if isinstance(value, Node)}) == 1


def counted_by(node: ast.For | ast.While, frame: Frame) -> frozenset[str]:
    """What the unrolled loops around a loop's body count by, with that one."""
    match node:
        case ast.For(target=ast.Name(id=name)) if is_unrolled(node, frame):
            return frame.turns | {name}
    return frame.turns


def first_answer(test: ast.expr, frame: Frame) -> bool | None:
    """What the first copy of an unrolled loop says to a test, where others say the opposite; None where all agree."""
    return frame.facts.turned.get(position_of(test))
