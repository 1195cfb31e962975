"""Quotients of constants that Triton (3.6) has as scalars: what loops count to, and the compiler knows all the same.

    for k in range(tl.cdiv(K, BLOCK)):          # `tl.cdiv` is a jit function, whose results are no constants

Triton's passes fold them, and have no loop of one turn, say. Newer ones make constants of constants.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tt2gl.analysis.facts import ConstFact, FunctionFact, FunctionFacts, LaunchFacts, TensorFact
from tt2gl.analysis.single_turns import changing, counts
from tt2gl.analysis.statics import position_of
from tt2gl.trees import nodes_in

_OPERANDS = 2


def constant_quotients(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path
) -> set[tuple[int, int]]:
    """The places of such calls in a file, by line and column, which are constants under every launch."""
    own = str(path.absolute())
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    found: set[tuple[int, int]] = set()
    for call in _bounds(trees[own] if own in trees else ast.Module([], [])):
        known = [each for each in reached if each.expressions.get(position_of(call)) is not None]
        if known and all(_is_constant(call, each) for each in known):
            found.add((call.lineno, call.col_offset))
    return found


def _bounds(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls of two fixed values that loops over ranges count to."""
    for function in (each for each in nodes_in(tree) if isinstance(each, ast.FunctionDef)):
        unknown = changing(function)
        for loop in (each for each in nodes_in(function) if isinstance(each, ast.For)):
            for bound in loop.iter.args if isinstance(loop.iter, ast.Call) and counts(loop.iter) else ():
                if not isinstance(bound, ast.Call) or len(bound.args) != _OPERANDS or bound.keywords:
                    continue
                names = (one.id for each in bound.args for one in nodes_in(each) if isinstance(one, ast.Name))
                if unknown.isdisjoint(names):
                    yield bound


def _is_constant(call: ast.Call, function: FunctionFacts) -> bool:
    """Whether a call divides one integer by another, rounding up, which the frontend knows, and not the result."""
    callee, made = (function.expressions.get(position_of(each)) for each in (call.func, call))
    given = [function.expressions.get(position_of(each)) for each in call.args]
    numbers = [each.value for each in given if isinstance(each, ConstFact) and type(each.value) is int]
    divides = isinstance(callee, FunctionFact) and callee.path is None and callee.name.endswith(".cdiv")
    return divides and isinstance(made, TensorFact) and len(numbers) == _OPERANDS and min(numbers) > 0
