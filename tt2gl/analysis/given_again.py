"""The arguments that a kernel's helpers want in several layouts, and their callers can make in each.

So with names that helpers compute of them, which come first: those of each layout want arguments in that.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tt2gl.analysis.decisions import Decisions
from tt2gl.analysis.facts import CallChain
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.terms import Term
from tt2gl.lowering.arguments_again import Again
from tt2gl.trees import functions_in, nodes_in

_Given = tuple[FunctionKey, str]
_Wants = dict[tuple[int, CallChain], set[Term]]


def given_again(
    made: Sequence[Decisions], trees: Mapping[str, ast.Module], names: Mapping[FunctionKey, str]
) -> set[Again]:
    """Those of the helpers of these `names`, under all launches."""
    asked = {(spot.site.function, each.reads[spot][0]) for each in made for spot in each.again}
    wanted: dict[_Given, dict[tuple[int, int], _Wants]] = {given: {} for given in asked}
    for launch, each in enumerate(made):
        for spot, (name, term) in each.reads.items():
            if (given := (spot.site.function, name)) in asked:
                wants = wanted[given].setdefault(spot.site.position[:2], {})
                wants.setdefault((launch, spot.site.context), set()).add(each.again.get(spot, term))
    found: set[Again] = set()
    computed: set[Again] = set()
    for (key, name), reads in wanted.items():
        functions = _functions(trees.get(key[0]), key[1])
        places = _reads(functions, name)
        if key in names and reads.keys() <= set(places):
            numbers = _numbered([reads.get(place, {}) for place in places])
            if any(numbers):
                is_parameter = any(name == arg.arg for each in functions for arg in _parameters(each))
                (found if is_parameter else computed).add(Again(names[key], name, numbers))
    waiting = {each.helper for each in computed}
    return computed | {each for each in found if each.helper not in waiting}


def _numbered(reads: Sequence[_Wants]) -> tuple[int, ...]:
    """The layouts of reads by numbers; one in a statement that is there in several layouts is as the first."""
    layouts: list[_Wants] = [{}]
    numbers = []
    for own in reads:
        alone = all(len(terms) == 1 for terms in own.values())
        number = next((i for i, other in enumerate(layouts) if _agree(own, other)), len(layouts)) if alone else 0
        if number == len(layouts):
            layouts.append({})
        layouts[number] |= own if alone else {}
        numbers.append(number)
    return tuple(numbers)


def _agree(one: _Wants, other: _Wants) -> bool:
    return all(other.get(context, terms) == terms for context, terms in one.items())


def _functions(tree: ast.Module | None, line: int) -> list[ast.FunctionDef]:
    """The function that stands at a line."""
    return [each for each in functions_in(tree) if each.lineno == line] if tree is not None else []


def _reads(functions: Sequence[ast.FunctionDef], name: str) -> list[tuple[int, int]]:
    """Where a name stands in a function, in the order of the text."""
    body = [node for each in functions for statement in each.body for node in nodes_in(statement)]
    return sorted((each.lineno, each.col_offset) for each in body if isinstance(each, ast.Name) and each.id == name)


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
