"""Products that are cast to the type that they have before they are added to something: Triton sees the sum alone.

acc += tl.dot(p, v).to(tl.float32)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tt2gl.analysis.facts import FunctionFact, FunctionFacts, LaunchFacts, TensorFact
from tt2gl.analysis.statics import position_of
from tt2gl.trees import nodes_in

_DOT = "triton.language.core.dot"


def cast_products(facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path) -> set[tuple[int, int]]:
    """Where in a file such products start, by line and column: their casts change nothing under every launch."""
    own = str(path.absolute())
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    return {
        (cast.lineno, cast.col_offset)
        for cast, product in _casts(trees[own] if own in trees else ast.Module([], []))
        if (known := [idle for each in reached if (idle := _is_idle(cast, product, each)) is not None]) and all(known)
    }


def _casts(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """The casts of calls that stand in a sum, to a type that is written there, with these calls."""
    for node in nodes_in(tree):
        match node:
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                sides = [left, right]
            case ast.AugAssign(op=ast.Add(), value=value):
                sides = [value]
            case _:
                continue
        for side in sides:
            match side:
                case ast.Call(
                    func=ast.Attribute(value=ast.Call() as product, attr="to"),
                    args=[ast.Attribute(value=ast.Name())],
                    keywords=[],
                ):
                    yield side, product


def _is_idle(cast: ast.Call, product: ast.Call, function: FunctionFacts) -> bool | None:
    """Whether a cast is of a product, and to its type, in a function under one launch; None where it is not reached."""
    called = function.expressions.get(position_of(product.func))
    before, after = (function.expressions.get(position_of(each)) for each in (product, cast))
    if called is None and before is None:
        return None
    of_product = isinstance(called, FunctionFact) and called.name == _DOT
    return of_product and isinstance(before, TensorFact) and before == after
