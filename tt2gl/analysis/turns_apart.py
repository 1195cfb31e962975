"""Loops that the compiler writes out, whose turns compute with tensors of other shapes: each wants its layouts.

for s in tl.static_range(LOG):
    pairs = tl.reshape(x, (ROWS, D // (2 << s), 2, 1 << s))

They may do so in a helper that is given the number.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from tt2gl.analysis.facts import ConstFact, Fact, FunctionFacts, LaunchFacts, Position, are_unlike_blocks
from tt2gl.plan import TurnsApart
from tt2gl.trees import nodes_in

_MOST = 64


def turns_apart(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path, torn: Collection[str] = ()
) -> set[TurnsApart]:
    """Those loops of a file, with what they count; not those around one that counts the same in each of their turns.

    Of those whose turns have other shapes in a helper alone, those that call one of these.
    """
    own = str(path.absolute())
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    places = {place for each in reached for place in each.reshaped}
    places |= {place for seen in facts for place, helper in _reshaping_calls(seen, own) if helper.name in torn}
    if not places:
        return set()
    found = set[TurnsApart]()
    for loop in _loops(trees[own]):
        if any(_holds(loop, place) for place in places) and (counted := _counted(loop, reached)) is not None:
            found.add(counted)
    return found


def reshaping_helpers(facts: Collection[LaunchFacts], path: Path) -> set[str]:
    """The helpers of a file that compute with tensors of other shapes in each turn: no one text has all layouts."""
    own = str(path.absolute())
    called = (helper for seen in facts for _, helper in _reshaping_calls(seen, own))
    return {helper.name for helper in called if helper.path == own}


def _reshaping_calls(facts: LaunchFacts, path: str) -> Iterator[tuple[Position, FunctionFacts]]:
    """The calls in a file whose copies call a helper that computes with tensors of other shapes in each."""
    for function in facts.functions.values():
        if function.path == path:
            for place, names in function.called.items():
                called = [facts.functions[each] for each in names if each in facts.functions]
                if _are_unlike(called):
                    yield place, called[0]


def _are_unlike(functions: Sequence[FunctionFacts]) -> bool:
    """Whether a helper that is compiled several times has tensors of other shapes, wherever more than one reaches."""
    first = functions[0] if functions else None
    if first is None or any((each.path, each.line) != (first.path, first.line) for each in functions):
        return False
    seen: dict[Position, Fact] = {}
    facts = (each for function in functions for each in function.expressions.items())
    return any(are_unlike_blocks(seen.setdefault(place, fact), fact) for place, fact in facts)


def _loops(tree: ast.Module) -> Iterator[ast.For]:
    for loop in nodes_in(tree):
        if isinstance(loop, ast.For) and _is_written_out(loop):
            inner = [each for part in loop.body for each in nodes_in(part)]
            within = [each for each in inner if isinstance(each, ast.For) and _is_written_out(each)]
            if all(_names(each.iter) & _names(loop.target) for each in within):
                yield loop


def _is_written_out(loop: ast.For) -> bool:
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else loop.iter
    name = getattr(called, "attr", None) or getattr(called, "id", None)
    return name == "static_range" and isinstance(loop.target, ast.Name) and not loop.orelse


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in nodes_in(node) if isinstance(each, ast.Name)}


def _holds(loop: ast.For, place: Position) -> bool:
    start, end = (loop.body[0].lineno, loop.body[0].col_offset), (loop.end_lineno or 0, loop.end_col_offset or 0)
    return start <= place[:2] <= end


def _counted(loop: ast.For, reached: Collection[FunctionFacts]) -> TurnsApart | None:
    """What a loop counts under all launches, if one list of numbers is that, or begins with it."""
    assert isinstance(loop.iter, ast.Call)
    ranges = list[range]()
    for function in reached:
        facts = [function.expressions.get(_place(each)) for each in loop.iter.args]
        bounds = [each.value for each in facts if isinstance(each, ConstFact) and isinstance(each.value, int)]
        if any(facts) and len(bounds) == len(facts) and not loop.iter.keywords:
            ranges.append(range(*bounds))
        elif any(facts):
            return None
    longest = max(ranges, key=len, default=range(0))
    if not 0 < len(longest) <= _MOST or any(each != longest[: len(each)] for each in ranges):
        return None
    return TurnsApart((loop.lineno, loop.col_offset), tuple(longest), min(map(len, ranges)))


def _place(node: ast.expr) -> Position:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0
