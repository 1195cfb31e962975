"""The functions of converted kernels as `offset_ranges` reads them: trees, facts of all launches, calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.analysis.facts import FunctionFacts, LaunchFacts
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.intervals import Interval
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.separate_names import tell_apart
from tt2gl.analysis.separate_numbers import tell_numbers_apart
from tt2gl.analysis.stated_ranges import assumed_ranges
from tt2gl.analysis.statics import position_of
from tt2gl.launches import Launch
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class Reached:
    """A kernel: its name, its slice's trees by file, its launches, and what was said under those and their likes.

    `guarded`: integers that launches do not say are checked not to be negative.
    """

    name: str
    trees: Mapping[str, ast.Module]
    launches: Sequence[Launch]
    seen: Sequence[LaunchFacts]
    guarded: bool = False


def bodies_of(kernels: Sequence[Reached]) -> dict[FunctionKey, Body]:
    """Every function that the kernels reach, by file and line."""
    made: dict[FunctionKey, Body] = {}
    for kernel in kernels:
        for facts in kernel.seen:
            for name, said in facts.functions.items():
                key = (said.path, said.line)
                if key not in made and (tree := _definition(kernel.trees, key)) is not None:
                    made[key] = Body(tree, [], kernel.name, is_kernel=name == facts.entry)
                if key in made:
                    made[key].facts.append(said)
    for body in made.values():
        tell_apart(body)
        tell_numbers_apart(body)
    for kernel in kernels:
        for facts in kernel.seen:
            _link(made, facts)
        for facts in kernel.seen[:1]:
            entry = facts.functions[facts.entry]
            key = (entry.path, entry.line)
            if key in made:
                made[key].assumed.update(_not_negative(kernel.launches, kernel.guarded))
                made[key].parameters.update(assumed_ranges(made[key]))
                # An address counts from where its tensor begins.
                made[key].parameters.update(_starts(kernel.launches))
    return made


def callers_first(bodies: Sequence[Body]) -> list[Body]:
    """Functions in an order in which each comes after those that call it."""
    ordered: dict[int, Body] = {}

    def visit(body: Body) -> None:
        if id(body) not in ordered:
            for caller, _ in body.callers:
                visit(caller)
            ordered[id(body)] = body

    for body in bodies:
        visit(body)
    own = set(map(id, bodies))
    return [body for body in ordered.values() if id(body) in own]


def _definition(trees: Mapping[str, ast.Module], key: FunctionKey) -> ast.FunctionDef | None:
    found = nodes_in(trees[key[0]]) if key[0] in trees else ()
    return next((node for node in found if isinstance(node, ast.FunctionDef) and node.lineno == key[1]), None)


def _link(made: Mapping[FunctionKey, Body], facts: LaunchFacts) -> None:
    """Note the calls between functions under one launch."""
    for said in facts.functions.values():
        caller = made.get((said.path, said.line))
        if caller is None:
            continue
        for call, callee in _calls(caller, said, facts):
            body = made.get((callee.path, callee.line))
            if body is not None:
                caller.callees.setdefault(position_of(call), []).append(body)
                if not any(known is call for _, known in body.callers):
                    body.callers.append((caller, call))


def _calls(caller: Body, said: FunctionFacts, facts: LaunchFacts) -> Iterator[tuple[ast.Call, FunctionFacts]]:
    for node in nodes_in(caller.tree):
        if isinstance(node, ast.Call) and (name := said.callees.get(position_of(node))) in facts.functions:
            yield node, facts.functions[name]


def _starts(launches: Sequence[Launch]) -> dict[str, Interval]:
    kinds = [item for launch in launches for item in launch.signature.items()]
    return {name: Interval(0, 0) for name, kind in kinds if kind.startswith("*")}


def _not_negative(launches: Sequence[Launch], guarded: bool) -> dict[str, Interval]:
    """The integers among a kernel's parameters that no launch gives a negative value."""
    values = [{**launch.constexprs, **(launch.args or {})} for launch in launches]

    def holds(name: str, kind: str) -> bool:
        given = [each.get(name) for each in values]
        unknown = guarded and kind in ("i32", "i64")
        return all(value >= 0 if isinstance(value, int) else value is None and unknown for value in given)

    return {name: Interval(low=0) for name, kind in launches[0].signature.items() if holds(name, kind)}
