"""What masks and `tl.assume` state of index expressions."""

from __future__ import annotations

import ast

from tt2gl.analysis.facts import ConstFact
from tt2gl.analysis.intervals import ANY, Interval
from tt2gl.analysis.offset_ranges import Body, Reader, only_adds_dims, plain_text
from tt2gl.trees import nodes_in


def constraints_of(mask: ast.expr | None, body: Body) -> dict[str, Interval]:
    """What holds of expressions where a mask does, of names that have one definition."""
    found: dict[str, Interval] = {}

    def once(name: str) -> bool:
        return len(body.definitions.get(name, ())) + (name in body.arguments) == 1

    def visit(node: ast.expr) -> None:
        match node:
            case ast.BinOp(op=ast.BitAnd(), left=left, right=right):
                visit(left)
                visit(right)
            case ast.Subscript(value=inner) if only_adds_dims(node):
                visit(inner)
            case ast.Name(id=name) if once(name):
                match [each.statement for each in body.definitions.get(name, ())]:
                    case [ast.Assign(targets=[ast.Name()], value=value)]:
                        visit(value)
            case ast.Compare(left=left, ops=ops, comparators=right):
                sides = [left, *right]
                for place, op in enumerate(ops):
                    compared(sides[place], op, sides[place + 1])

    def compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> None:
        if not all(is_made_once(side) or is_constant(side) for side in (left, right)):
            return
        reader = Reader(body)
        low, high = reader.value(right), reader.value(left)
        match op:
            case ast.GtE() | ast.Gt():
                strict = isinstance(op, ast.Gt)
                note(left, Interval(low=low.low + strict))
                note(right, Interval(high=high.high - strict))
            case ast.Lt() | ast.LtE():
                strict = isinstance(op, ast.Lt)
                note(left, Interval(high=low.high - strict))
                note(right, Interval(low=high.low + strict))
            case ast.Eq():
                note(left, low)

    def is_made_once(side: ast.expr) -> bool:
        names = {part.id for part in nodes_in(side) if isinstance(part, ast.Name)}
        return all(once(name) for name in names if name in body.definitions)

    def is_constant(side: ast.expr) -> bool:
        said = body.said(side)
        return bool(said) and all(isinstance(fact, ConstFact) for fact in said)

    def note(node: ast.expr, interval: Interval) -> None:
        if is_made_once(node):
            key = plain_text(node)
            found[key] = found.get(key, ANY).within(interval)

    if mask is not None:
        visit(mask)
    return found


def assumed_ranges(body: Body) -> dict[str, Interval]:
    """The ranges of a kernel's parameters that its `tl.assume` states."""
    stated: dict[str, Interval] = {}
    # What is assumed in a branch need not hold outside of it.
    for node in (each.value for each in body.tree.body if isinstance(each, ast.Expr)):
        if isinstance(node, ast.Call) and node.args and body.callee(node.func) == "assume":
            for name, interval in constraints_of(node.args[0], body).items():
                if name in body.arguments and name not in body.definitions:
                    stated[name] = stated.get(name, ANY).within(interval)
    return stated


def assumable(start: Body) -> frozenset[tuple[str, str]]:
    """The parameters that launches say something of, of every kernel that reaches a function."""
    found: dict[int, Body] = {}
    stack = [start]
    while stack:
        body = stack.pop()
        if id(body) not in found:
            found[id(body)] = body
            stack.extend(caller for caller, _ in body.callers)
    return frozenset((body.kernel, name) for body in found.values() for name in body.assumed)
