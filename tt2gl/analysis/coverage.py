"""What no launch reaches: branches that a kernel's compile-time flags leave out.

Facts come from launches, and a launch takes one side of each static branch. Flags are turned one at a time to reach
the other sides, then together where only several lead there; what stays out of reach is known here, so that it can be
converted by the same rules and reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tt2gl.analysis.branch_flags import ways
from tt2gl.analysis.facts import LaunchFacts, Position
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.operations import CREATE
from tt2gl.analysis.statics import position_of
from tt2gl.launches import Launch
from tt2gl.trees import functions_in, nodes_in

MOST_VARIANTS = 8
"""Launches with a flag turned, tried beyond those of a kernel: each costs a run of the frontend."""

MOST_WAYS = 4
"""Launches with several turned."""


def unreached(trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]) -> dict[FunctionKey, list[ast.If]]:
    """Static branches with a side that no launch took, by function."""
    found: dict[FunctionKey, list[ast.If]] = {}
    for key, function, seen in _functions(trees, facts):
        for node in nodes_in(function):
            if not isinstance(node, ast.If) or position_of(node.test) not in seen:
                continue
            if any(side and not _reached(side, seen) for side in (node.body, node.orelse)):
                found.setdefault(key, []).append(node)
    return found


def first_unreached(trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]) -> dict[FunctionKey, Position]:
    """Where the first code stands that no launch reaches, by function."""
    found: dict[FunctionKey, Position] = {}
    for key, function, seen in _functions(trees, facts):
        if key not in found:
            sides = [
                side
                for node in nodes_in(function)
                if isinstance(node, ast.If) and position_of(node.test) in seen
                for side in (node.body, node.orelse)
                if side and not _reached(side, seen)
            ]
            if sides:
                found[key] = min(position_of(side[0]) for side in sides)
    return found


def unreached_creations(
    trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]
) -> dict[FunctionKey, list[Position]]:
    """Calls that make tensors in code that no launch reaches, by function."""
    found: dict[FunctionKey, list[Position]] = {}
    for key, function, seen in _functions(trees, facts):
        for node in creations([function]):
            if position_of(node) not in seen:
                found.setdefault(key, []).append(position_of(node))
    return found


def creations(statements: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """Calls that make tensors of layouts that they have to be told."""
    for node in (inner for each in statements for inner in nodes_in(each)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in CREATE and not name.endswith("_like"):
                yield node


def _functions(
    trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]
) -> Iterator[tuple[FunctionKey, ast.FunctionDef, set[Position]]]:
    seen: dict[FunctionKey, set[Position]] = {}
    for launch in facts:
        for function in launch.functions.values():
            seen.setdefault((function.path, function.line), set()).update(function.expressions)
    for path, tree in trees.items():
        for node in functions_in(tree):
            if (path, node.lineno) in seen:
                yield (path, node.lineno), node, seen[path, node.lineno]


def _reached(side: Sequence[ast.stmt], seen: set[Position]) -> bool:
    expressions = [node for part in side for node in nodes_in(part) if isinstance(node, ast.expr)]
    return not expressions or any(position_of(node) in seen for node in expressions)


def variants(
    launches: Sequence[Launch],
    branches: Mapping[FunctionKey, Sequence[ast.If]],
    trees: Mapping[str, ast.Module] = MappingProxyType({}),
) -> list[Launch]:
    """The first launch with one of the flags turned that the branches' conditions compare, then with several.

    Several are what leads to a side of a branch in a branch, or of one that asks for more than one flag.
    """
    first = launches[0]
    constants = {name: value for tree in trees.values() for name, value in _constants(tree)}
    nodes = [inner for each in branches.values() for node in each for inner in nodes_in(node)]
    tests = [node.test for node in nodes if isinstance(node, ast.If)]
    values = [pair for test in tests for pair in _turned(test, first, constants)]
    numbers: dict[str, int] = {}
    for name, value in values:
        if isinstance(value, int) and not isinstance(value, bool):
            numbers[name] = max(value, numbers.get(name, value))
    # The last `else`, which no comparison names, takes a value that none of them has.
    values.extend((name, most + 1) for name, most in numbers.items())
    made: list[Launch] = []
    for name, value in values:
        if name not in first.constexprs or type(first.constexprs[name]) is type(value):
            launch = replace(first, constexprs={**first.constexprs, name: value}, args=None, turned=True)
            if launch not in made:
                made.append(launch)
    together: list[Launch] = []
    for way in ways([node for each in branches.values() for node in each], first.constexprs):
        turned = {name: value for name, value in way.items() if first.constexprs[name] != value}
        if len(turned) > 1 and all(type(first.constexprs[name]) is type(value) for name, value in turned.items()):
            launch = replace(first, constexprs={**first.constexprs, **turned}, args=None, turned=True)
            if launch not in together:
                together.append(launch)
    return made[:MOST_VARIANTS] + together[:MOST_WAYS]


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    """Module constants of a slice, `tl.constexpr(...)` or plain."""
    for node in nodes_in(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else node.value
            try:
                yield node.targets[0].id, ast.literal_eval(value)
            except ValueError:
                continue


def _turned(test: ast.expr, launch: Launch, constants: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Other values for the compile-time parameters of a condition."""
    for node in nodes_in(test):
        if isinstance(node, ast.Name) and isinstance(launch.constexprs.get(node.id), bool):
            yield node.id, not launch.constexprs[node.id]
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and len(node.comparators) == 1:
            other = node.comparators[0]
            if isinstance(other, ast.Constant) and other.value is not None:
                yield node.left.id, other.value
            elif isinstance(other, ast.Name) and other.id in constants:
                yield node.left.id, constants[other.id]
