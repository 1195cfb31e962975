"""Operands of operations whose groups of them may be empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tt2gl.ir.operations import Operation


def grouped(operation: Operation, operands: Sequence[Any]) -> list[list[Any]]:
    """The operands' values in the groups that `Operation.segments` has the operands in."""
    groups, start = [], 0
    for group in operation.segments():
        groups.append(list(operands[start : start + len(group)]))
        start += len(group)
    return groups


def only(group: Sequence[Any]) -> Any | None:
    """The one operand of an optional group, or None."""
    return group[0] if group else None
