"""Loops of one turn: what loops within another are sure to run once, and hold loads that Triton copies ahead.

for k in range(0, n, BLOCK):
    for d in range(0, DIM, DIM):            # one turn: Triton has no loop here,
        x = tl.load(...)                    # and this one is copied ahead of the loop around
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tt2gl.analysis.facts import ConstFact, FunctionFacts, LaunchFacts
from tt2gl.analysis.statics import position_of
from tt2gl.integers import turns
from tt2gl.trees import nodes_in


def single_turns(facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path) -> set[tuple[int, int]]:
    """The places of those loops in a file, by line and column: their bounds are constants under every launch."""
    own = str(path.absolute())
    rings = {place[1:] for seen in facts for chain in seen.lowered.rings for place in chain if place[0] == own}
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    return {
        (loop.lineno, loop.col_offset)
        for loop in _inner_loops(trees[own] if own in trees else ast.Module([], []))
        if any((loop.lineno, loop.col_offset) < ring <= _end(loop) for ring in rings)
        and (known := [count for each in reached if (count := turns_in(loop, each)) is not None])
        and all(count == 1 for count in known)
    }


def _inner_loops(tree: ast.Module) -> Iterator[ast.For]:
    """The loops over a range that stand in another loop, do nothing once they have run, and have fixed bounds."""
    for function in nodes_in(tree):
        if isinstance(function, ast.FunctionDef):
            changed = changing(function)
            around = (each for each in nodes_in(function) if isinstance(each, ast.For | ast.While))
            parts = (one for each in around for part in each.body for one in nodes_in(part))
            inner = {id(one): one for one in parts if isinstance(one, ast.For)}
            for loop in inner.values():
                counted = isinstance(loop.iter, ast.Call) and counts(loop.iter) and isinstance(loop.target, ast.Name)
                if counted and not loop.orelse and changed.isdisjoint(_names(loop.iter)):
                    yield loop


def changing(function: ast.FunctionDef) -> set[str]:
    """The names of a function that are no constants of its compilation: an argument of 1 is one for that call alone."""
    parameters = {each.arg for each in nodes_in(function.args) if isinstance(each, ast.arg) and not _is_fixed(each)}
    annotated = (each for each in nodes_in(function) if isinstance(each, ast.AnnAssign))
    fixed = {name for each in annotated if _is_fixed(each) for name in _names(each.target)}
    stored = {each.id for each in nodes_in(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return parameters | (stored - fixed)


def _is_fixed(bound: ast.arg | ast.AnnAssign) -> bool:
    return bound.annotation is not None and ast.unparse(bound.annotation).endswith("constexpr")


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in nodes_in(node) if isinstance(each, ast.Name)}


def turns_in(loop: ast.For, function: FunctionFacts) -> int | None:
    """How often a loop runs in a function under one launch; 0 if that is not known, None if it is none of its."""
    assert isinstance(loop.iter, ast.Call)
    found = [function.expressions.get(position_of(each)) for each in loop.iter.args]
    if not any(found):
        return None
    values = [each.value if isinstance(each, ConstFact) else None for each in found]
    return turns([value if isinstance(value, int) else None for value in values]) or 0


def counts(call: ast.Call) -> bool:
    """Whether a loop counts through a range, of which nothing else is said."""
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    return name in ("range", "static_range") and not call.keywords


def _end(loop: ast.For) -> tuple[int, int]:
    return loop.end_lineno or loop.lineno, loop.end_col_offset or 0
