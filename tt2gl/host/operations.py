"""Python's own operations on plain data, with bounds.

Sizes are bounded because the code is anybody's: `"a" * 10**10` must not fill the memory of the one who reads it.
"""

from __future__ import annotations

import ast
import operator
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from tt2gl.host import facts
from tt2gl.host.values import Cause, HostRaise, Undecided

SIZE = 100_000
"""The most items of a value."""

BITS = 4096
"""The most bits of an integer."""


def unknown(text: str) -> Undecided:
    """Undecided, without a place: whoever evaluates adds it."""
    return Undecided(Cause("", 0, 0, text))


def guarded(action: Callable[[], Any], what: str) -> Any:
    """Run one operation of Python's on plain data; its exceptions are the host's."""
    try:
        return action()
    except (HostRaise, Undecided):
        raise
    except RecursionError:
        raise unknown(f"{what} is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - whatever Python raises on the data is what the host code raises
        raise HostRaise(type(error).__name__, str(error)) from None


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_SIZED = (str, bytes, list, tuple, dict, set, frozenset)


def check_size(fits: bool) -> None:
    """Raise Undecided unless a result fits the bounds."""
    if not fits:
        raise unknown("the result is too large to be worked out")


def binary(op: type[ast.operator], left: Any, right: Any) -> Any:
    """`left op right` on plain data."""
    if op is ast.Mult:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, _SIZED) and isinstance(other, int):
                check_size(len(one) * other <= SIZE)
    if isinstance(left, int) and isinstance(right, int):
        if op is ast.Mult:
            check_size(left.bit_length() + right.bit_length() <= BITS)
        elif op is ast.Pow:
            check_size(left.bit_length() * abs(right) <= BITS)
        elif op is ast.LShift:
            check_size(left.bit_length() + right <= BITS)
    if op is ast.Add and isinstance(left, _SIZED) and isinstance(right, _SIZED):
        check_size(len(left) + len(right) <= SIZE)
    if op is ast.Mod and isinstance(left, str):
        check_size(re.search(r"\d{5}|\*", left) is None)
    function = _BINARY.get(op)
    if function is None:
        raise unknown("an operator cannot be read")
    return guarded(lambda: function(left, right), "the operation")


def compare(op: type[ast.cmpop], left: Any, right: Any) -> Any:
    """An ordering of plain data; a version compares with its text too."""
    if isinstance(left, facts.Version) and isinstance(right, str):
        right = guarded(lambda: facts.Version(right), "the version")
    elif isinstance(right, facts.Version) and isinstance(left, str):
        left = guarded(lambda: facts.Version(left), "the version")
    return guarded(lambda: _COMPARE[op](left, right), "the comparison")


def formatted(value: Any, specification: str) -> str:
    """`format(value, specification)`."""
    check_size(re.search(r"\d{5}", specification) is None)
    return str(guarded(lambda: format(value, specification), "the text"))


def modest(template: str) -> bool:
    """Whether the fields of a format string ask for no width beyond four digits."""
    fields = guarded(lambda: list(string.Formatter().parse(template)), "the text")
    return all(re.search(r"\d{5}|\{", specification or "") is None for _, _, specification, _ in fields)


def listed(value: Any) -> list[Any]:
    """The items of plain data."""
    if hasattr(value, "__len__"):
        check_size(len(value) <= SIZE)
    return list(guarded(lambda: list(value), "the items"))
