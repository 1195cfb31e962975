"""What no launch reaches: branches that a kernel's compile-time flags leave out.

Facts come from launches, and a launch takes one side of each static branch. Flags are turned one at a time to reach
the other sides; what stays out of reach is known here, so that it can be converted by the same rules and reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tt2gl.analysis.facts import LaunchFacts, Position
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.operations import CREATE
from tt2gl.analysis.statics import position_of
from tt2gl.launches import Launch

MOST_VARIANTS = 8
"""Launches tried beyond the given ones, a kernel: each costs a run of the frontend."""


def unreached(trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]) -> dict[FunctionKey, list[ast.If]]:
    """Static branches with a side that no launch took, by function."""
    found: dict[FunctionKey, list[ast.If]] = {}
    for key, function, seen in _functions(trees, facts):
        for node in ast.walk(function):
            if not isinstance(node, ast.If) or position_of(node.test) not in seen:
                continue
            if any(side and not _reached(side, seen) for side in (node.body, node.orelse)):
                found.setdefault(key, []).append(node)
    return found


def unreached_creations(
    trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]
) -> dict[FunctionKey, list[Position]]:
    """Calls that make tensors in code that no launch reaches, by function."""
    found: dict[FunctionKey, list[Position]] = {}
    for key, function, seen in _functions(trees, facts):
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            makes = node.func.attr in CREATE and not node.func.attr.endswith("_like")
            if makes and position_of(node) not in seen:
                found.setdefault(key, []).append(position_of(node))
    return found


def _functions(
    trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]
) -> Iterator[tuple[FunctionKey, ast.FunctionDef, set[Position]]]:
    seen: dict[FunctionKey, set[Position]] = {}
    for launch in facts:
        for function in launch.functions.values():
            seen.setdefault((function.path, function.line), set()).update(function.expressions)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (path, node.lineno) in seen:
                yield (path, node.lineno), node, seen[path, node.lineno]


def _reached(side: Sequence[ast.stmt], seen: set[Position]) -> bool:
    expressions = [node for part in side for node in ast.walk(part) if isinstance(node, ast.expr)]
    return not expressions or any(position_of(node) in seen for node in expressions)


def variants(launches: Sequence[Launch], branches: Mapping[FunctionKey, Sequence[ast.If]]) -> list[Launch]:
    """The first launch with one flag turned at a time, for flags that the branches' conditions compare."""
    first = launches[0]
    made: list[Launch] = []
    for nodes in branches.values():
        for node in nodes:
            for name, value in _turned(node.test, first):
                if name not in first.constexprs or isinstance(first.constexprs[name], type(value)):
                    turned = replace(first, constexprs={**first.constexprs, name: value}, args=None)
                    if turned not in made:
                        made.append(turned)
    return made[:MOST_VARIANTS]


def _turned(test: ast.expr, launch: Launch) -> Iterator[tuple[str, object]]:
    """Other values for the compile-time parameters of a condition."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and isinstance(launch.constexprs.get(node.id), bool):
            yield node.id, not launch.constexprs[node.id]
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and len(node.comparators) == 1:
            other = node.comparators[0]
            if isinstance(other, ast.Constant) and isinstance(node.left, ast.Name) and other.value is not None:
                yield node.left.id, other.value
