"""Stores of a descriptor's tiles in a loop, which all go through one tile of shared memory that is made before it.

A store then waits for the one before it, and not for itself: what follows it need not wait until TMA has read its tile.
Triton's pipeliner has it so in every loop that counts. Where a loop stores through several descriptors, whose tiles
would lie side by side in memory, each store waits for itself; so where parts of a product get other layouts through
shared memory, which could not be the tile's, and where the loop loads what it stores.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from tt2gl.analysis.decisions import Decisions, Spot
from tt2gl.analysis.facts import Position
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.statics import position_of
from tt2gl.pipelining.flow import writes
from tt2gl.pipelining.static import called
from tt2gl.trees import nodes_in
from tt2gl.words import STORE_AGAIN

Place = tuple[FunctionKey, Position]


def mark_repeated(
    decisions: Sequence[Decisions],
    trees: Mapping[str, ast.Module],
    converted: Collection[tuple[str, int, int]] = (),
    rereading: Mapping[FunctionKey, Collection[tuple[int, int]]] | None = None,
) -> None:
    """Have stores in loops go through a tile that lasts, where the loop stores through one descriptor alone.

    `converted`: calls, by file, line and column, whose results get layouts that do not follow from their operands'.
    `rereading`: by function, where loops start that load what they store.
    """
    stores = {_place(spot) for made in decisions for spot, kind in made.tiles.items() if kind == "store"}
    found = set(_repeated(stores, trees, converted, rereading or {})) if stores else set()
    for made in decisions:
        made.tiles |= {spot: STORE_AGAIN for spot in made.tiles if _place(spot) in found}


def _place(spot: Spot) -> Place:
    return spot.site.function, spot.site.position


def _repeated(
    stores: set[Place],
    trees: Mapping[str, ast.Module],
    converted: Collection[tuple[str, int, int]],
    rereading: Mapping[FunctionKey, Collection[tuple[int, int]]],
) -> Iterator[Place]:
    """The stores that stand in a loop which stores through one name alone, and does not bind it."""
    for path, tree in trees.items():
        for function in (node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef)):
            by_loop: dict[ast.AST, list[ast.Call]] = {}
            every = list(_calls(function, None))
            crossing = {loop for loop, call in every if (path, *position_of(call)[:2]) in converted}
            for loop, call in every:
                if loop is not None and ((path, function.lineno), position_of(call)) in stores:
                    by_loop.setdefault(loop, []).append(call)
            for loop, calls in by_loop.items():
                through = {ast.unparse(_through(call)) for call in calls}
                if loop in crossing or not isinstance(loop, ast.For):
                    continue
                if (loop.lineno, loop.col_offset) in rereading.get((path, function.lineno), ()):
                    continue
                if len(through) == 1 and _is_kept(_through(calls[0]), loop):
                    yield from (((path, function.lineno), position_of(call)) for call in calls)


def _calls(node: ast.AST, loop: ast.AST | None) -> Iterator[tuple[ast.AST | None, ast.Call]]:
    """The calls in a node, each with the innermost loop around it that the compiler does not unroll."""
    if isinstance(node, ast.While) or isinstance(node, ast.For) and called(node.iter) != "static_range":
        loop = node
    if isinstance(node, ast.Call):
        yield loop, node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, loop)


def _through(call: ast.Call) -> ast.expr:
    """What a store goes through: a method's object, or what a function of Triton's is given first."""
    is_method = isinstance(call.func, ast.Attribute) and not call.func.attr.endswith("_tensor_descriptor")
    given = [*call.args, *(each.value for each in call.keywords)]
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else given[0]


def _is_kept(through: ast.expr, loop: ast.For) -> bool:
    return isinstance(through, ast.Name) and through.id not in writes(loop)
