"""Scalars that are made like another one: Gluon makes nothing like what has no layout.

best = tl.where(found, score // n, tl.zeros_like(score))
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from tt2gl.analysis.facts import FunctionFact, LaunchFacts, TensorFact
from tt2gl.analysis.statics import position_of
from tt2gl.trees import nodes_in

_LIKE = "zeros_like"


def scalar_likes(facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path) -> set[tuple[int, int]]:
    """Where in a file such calls start, by line and column: of scalars under every launch that reaches them."""
    own = str(path.absolute())
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    found: set[tuple[int, int]] = set()
    for node in nodes_in(trees[own]) if own in trees else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _LIKE:
            called = [each.expressions.get(position_of(node.func)) for each in reached]
            made = [fact for each in reached if (fact := each.expressions.get(position_of(node))) is not None]
            scalar = all(isinstance(fact, TensorFact) and not fact.shape for fact in made)
            if made and scalar and any(isinstance(each, FunctionFact) for each in called):
                found.add((node.lineno, node.col_offset))
    return found
