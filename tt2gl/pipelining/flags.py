"""Names under flags of the compilation: which of those that branches bind last from turn to turn of a loop.

for k in range(n):
    if GROUPED:                                    # each turn binds scales before it reads them; without groups
        scales = gl.load(scales_ptr + k)           # none does
    acc += x * scales
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from typing import TypeGuard

from tt2gl.pipelining.flow import NONE, Liveness, Names, writes
from tt2gl.pipelining.texts import negated
from tt2gl.trees import nodes_in

Settled = Callable[[ast.expr], bool]
"""Whether the compiler knows a test, and nothing changes it."""


def lasting_under_flags(loop: ast.For, names: Names, live_after: Names, is_settled: Settled) -> Names:
    """Of names that a loop binds, those whose values last under some flags from a turn to the next, or beyond it."""
    return frozenset(name for name in names if name in live_after or _lasts(loop, name, live_after, is_settled))


def _lasts(loop: ast.For, name: str, live_after: Names, is_settled: Settled) -> bool:
    for statement in loop.body:
        if name in writes(statement):
            if not _is_flagged(statement, is_settled):
                return True
            test = ast.unparse(statement.test)
            for block, holds in ((statement.body, True), (statement.orelse, False)):
                if name in NONE.union(*map(writes, block)):
                    body = _under(loop.body, test if holds else negated(test), is_settled)
                    if name in Liveness().before(body, live_after):
                        return True
    return False


def flags_over(loop: ast.For, name: str, is_settled: Settled) -> tuple[str, ...]:
    """The tests that all that a loop assigns to a name stands under, as source: without them it may be None."""
    found: list[tuple[str, ...]] = []

    def visit(statements: Sequence[ast.stmt], under: tuple[str, ...]) -> None:
        for each in statements:
            if _is_flagged(each, is_settled):
                test = ast.unparse(each.test)
                visit(each.body, (*under, test))
                visit(each.orelse, (*under, negated(test)))
            elif name in writes(each):
                found.append(under)

    visit(loop.body, ())
    return tuple(test for test in found[0] if all(test in others for others in found)) if found else ()


def _is_flagged(statement: ast.stmt, is_settled: Settled) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and is_settled(statement.test)


def _under(statements: Sequence[ast.stmt], holds: str, is_settled: Settled) -> list[ast.stmt]:
    """What statements are where a test holds."""
    made: list[ast.stmt] = []
    for each in statements:
        if _is_flagged(each, is_settled) and holds in (test := ast.unparse(each.test), negated(test)):
            made += _under(each.body if holds == test else each.orelse, holds, is_settled)
        else:
            made.append(each)
    return made


def bound_in_any_case(function: ast.FunctionDef, loop: ast.For) -> Names:
    """The names that have values before a loop, whatever flags say: not those that branches alone bind."""
    arguments = function.args
    found = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    block: Collection[ast.stmt] = function.body
    while block:
        inner: Collection[ast.stmt] = ()
        for each in block:
            if each is loop:
                return frozenset(found)
            if any(node is loop for node in nodes_in(each)):
                inner = [part for part in ast.iter_child_nodes(each) if isinstance(part, ast.stmt)]
                break
            if not isinstance(each, ast.If | ast.For | ast.While):
                found |= writes(each)
        block = inner
    return frozenset(found)
