"""What integers in source come to where names are known, and how often loops over ranges of them turn."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}

_COMPARISONS: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def integer(node: ast.expr, known: Mapping[str, object]) -> int | None:
    """What an integer expression is, by the values of its names; None where it takes more than those to know."""
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            found = known.get(name)
            return found if isinstance(found, int) else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _computed(_OPERATORS[type(op)], integer(left, known), integer(right, known))
        case ast.Call(func=ast.Name(id="cdiv") | ast.Attribute(attr="cdiv"), args=[left, right], keywords=[]):
            return _computed(_quotient, integer(left, known), integer(right, known))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            holds = _holds(test, known)
            return None if holds is None else integer(body if holds else orelse, known)
    return None


def turns(bounds: Sequence[int | None]) -> int | None:
    """How often a loop over a range of these bounds turns; None where one is not known, or it steps by nothing."""
    found = [each for each in bounds if each is not None]
    return len(range(*found)) if found and len(found) == len(bounds) and found[2:] != [0] else None


def _quotient(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _computed(operation: Callable[[int, int], int | float], left: int | None, right: int | None) -> int | None:
    """What an operation makes of two integers; None where it has none of them, or makes no integer of them."""
    if left is None or right is None:
        return None
    try:
        made = operation(left, right)
    except (ArithmeticError, ValueError):
        return None
    return made if isinstance(made, int) else None


def _holds(test: ast.expr, known: Mapping[str, object]) -> bool | None:
    """Whether a condition on one name, or none, holds; None where it is another one, or the name is not known."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name) if name in known:
            return bool(known[name])
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=value)]):
            if name in known and type(op) in _COMPARISONS:
                return _COMPARISONS[type(op)](known[name], value)
    return None
