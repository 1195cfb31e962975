"""Which compile-time parameters lead to a side of a branch: those of its condition, and of the branches around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

Flags = Mapping[str, object]


def ways(branches: Sequence[ast.If], constexprs: Flags) -> Iterator[Flags]:
    """For each side of the branches and of those within them, the parameters that lead there."""
    for node in branches:
        yield from _ways(node, constexprs, {})


def _ways(node: ast.If, constexprs: Flags, around: Flags) -> Iterator[Flags]:
    for side, truth in ((node.body, True), (node.orelse, False)):
        asked = _asked(node.test, truth, constexprs)
        if asked is None or any(around.get(name, value) != value for name, value in asked.items()):
            continue
        way = {**around, **asked}
        if side:
            yield way
        for inner in _branches(side):
            yield from _ways(inner, constexprs, way)


def _branches(body: Sequence[ast.stmt]) -> Iterator[ast.If]:
    """The outermost branches among statements, and in the loops there."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield statement
        elif isinstance(statement, ast.For | ast.While | ast.With):
            yield from _branches(statement.body)


def _asked(test: ast.expr, truth: bool, constexprs: Flags) -> Flags | None:
    """Values under which a condition is `truth`, as far as it is about flags; None where they contradict each other."""
    match test:
        case ast.Name(id=name) if isinstance(constexprs.get(name), bool):
            return {name: truth}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asked(operand, not truth, constexprs)
        case ast.BoolOp(op=op, values=values):
            return _together(values, truth, isinstance(op, ast.And), constexprs)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
            return _together([left, right], truth, isinstance(op, ast.BitAnd), constexprs)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value)]):
            return {name: value} if truth == isinstance(op, ast.Eq) and name in constexprs else {}
    return {}


def _together(tests: Sequence[ast.expr], truth: bool, conjunction: bool, constexprs: Flags) -> Flags | None:
    if truth != conjunction:  # one of them does
        return _asked(tests[0], truth, constexprs)
    asked: dict[str, object] = {}
    for test in tests:
        more = _asked(test, truth, constexprs)
        if more is None or any(asked.get(name, value) != value for name, value in more.items()):
            return None
        asked |= more
    return asked
