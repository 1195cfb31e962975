"""The arguments that a kernel's helpers want in several layouts, and their callers can make in each.

So with names that helpers compute of them, which come first: those of each layout want arguments in that. A statement
that is to stand in several layouts is such a name's, too, however often what it is made of is read there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from tt2gl.analysis.decisions import Decisions
from tt2gl.analysis.facts import CallChain
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.terms import Term
from tt2gl.lowering.arguments_again import Again
from tt2gl.trees import functions_in, nodes_in

_Wants = dict[tuple[int, CallChain], set[Term]]
_Place = tuple[int, int]


def given_again(
    made: Sequence[Decisions], trees: Mapping[str, ast.Module], names: Mapping[FunctionKey, str]
) -> set[Again]:
    """Those of the helpers of these `names`, under all launches."""
    asked = {(spot.site.function, each.reads[spot][0]) for each in made for spot in each.again}
    found: set[Again] = set()
    computed: set[Again] = set()
    for key, name in asked:
        functions = _functions(trees.get(key[0]), key[1])
        again = _again(made, functions, key, name, names.get(key, ""))
        if again is not None:
            is_parameter = any(again.parameter == arg.arg for each in functions for arg in _parameters(each))
            (found if is_parameter else computed).add(again)
    waiting = {each.helper for each in computed}
    return computed | {each for each in found if each.helper not in waiting}


def _again(
    made: Sequence[Decisions],
    functions: Sequence[ast.FunctionDef],
    key: FunctionKey,
    name: str,
    helper: str,
    seen: frozenset[str] = frozenset(),
) -> Again | None:
    """A name of a helper by its layouts; first one that is computed of it, in several, if there is any."""
    wanted, places = _wanted(made, key, name), _reads(functions, name)
    reads = [wanted.get(place, {}) for place in places]
    if not helper or name in seen or not wanted.keys() <= set(places):
        return None
    several = {place for place, own in zip(places, reads, strict=True) if not _is_alone(own)}
    for target in _made_of(functions, several):
        if (again := _again(made, functions, key, target, helper, seen | {name})) is not None:
            return again
    numbers = _numbered(reads)
    return Again(helper, name, numbers) if any(numbers) else None


def _wanted(made: Sequence[Decisions], key: FunctionKey, name: str) -> dict[_Place, _Wants]:
    """The layouts that the reads of a helper's name want, under all launches."""
    wanted: dict[_Place, _Wants] = {}
    for launch, each in enumerate(made):
        for spot, (read, term) in each.reads.items():
            if (spot.site.function, read) == (key, name):
                wants = wanted.setdefault(spot.site.position[:2], {})
                wants.setdefault((launch, spot.site.context), set()).add(each.again.get(spot, term))
    return wanted


def _made_of(functions: Sequence[ast.FunctionDef], places: set[_Place]) -> Iterator[str]:
    """The names of statements that read something at these places."""
    for node in (node for each in functions for node in nodes_in(each)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if any(
                    (each.lineno, each.col_offset) in places for each in nodes_in(value) if isinstance(each, ast.Name)
                ):
                    yield name


def _is_alone(own: _Wants) -> bool:
    return all(len(terms) == 1 for terms in own.values())


def _numbered(reads: Sequence[_Wants]) -> tuple[int, ...]:
    """The layouts of reads by numbers; one in a statement that is there in several layouts is as the first."""
    layouts: list[_Wants] = [{}]
    numbers = []
    for own in reads:
        alone = _is_alone(own)
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


def _reads(functions: Sequence[ast.FunctionDef], name: str) -> list[_Place]:
    """Where a name stands in a function, in the order of the text."""
    body = [node for each in functions for statement in each.body for node in nodes_in(statement)]
    return sorted((each.lineno, each.col_offset) for each in body if isinstance(each, ast.Name) and each.id == name)


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
