"""Intervals of integers, and what Python's operators make of them."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

Number = int | float
"""An end of an interval: an integer, or an infinity."""


@dataclass(frozen=True)
class Interval:
    """The integers from `low` to `high`."""

    low: Number = -math.inf
    high: Number = math.inf

    @property
    def empty(self) -> bool:
        """Whether it has nothing: what is not reached, or not yet."""
        return self.low > self.high

    def union(self, other: Interval) -> Interval:
        """The smallest interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Interval) -> Interval:
        """What both have; this one where they share nothing, which is then never reached."""
        made = Interval(max(self.low, other.low), min(self.high, other.high))
        return made if made.low <= made.high else self

    def plus(self, other: Interval) -> Interval:
        """The interval of sums."""
        if self.empty or other.empty:
            return NOTHING
        return Interval(self.low + other.low, self.high + other.high)

    def negated(self) -> Interval:
        """The interval of opposites."""
        return Interval(-self.high, -self.low)

    def times(self, other: Interval) -> Interval:
        """The interval of products; zero times infinity is zero."""
        if self.empty or other.empty:
            return NOTHING
        ends = [0 if 0 in (a, b) else a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))


ANY, NOTHING = Interval(), Interval(math.inf, -math.inf)
COUNT = Interval(0, 2**31 - 1)
"""What a program id can be, and a parameter of 32 bits that is not negative."""

TYPES = {
    **{f"int{bits}": Interval(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": Interval(0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "int1": Interval(0, 1),
}


def union_of(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval around several."""
    made = intervals[0] if intervals else ANY
    for other in intervals[1:]:
        made = made.union(other)
    return made


def combined(op: ast.operator, left: Interval, right: Interval) -> Interval:
    """What an operator of Python gives for two intervals of integers."""
    if left.empty or right.empty:
        return NOTHING
    match op:
        case ast.Add():
            return left.plus(right)
        case ast.Sub():
            return left.plus(right.negated())
        case ast.Mult():
            return left.times(right)
        # Nothing is divided by zero.
        case ast.FloorDiv() if left.low >= 0 and right.low >= 0:
            low = 0 if math.isinf(right.high) else left.low // max(right.high, 1)
            return Interval(low, left.high if math.isinf(left.high) else left.high // max(right.low, 1))
        # What is left has the sign of what is divided, as on the GPU; constants are worked out, not asked for here.
        case ast.Mod() if left.low >= 0:
            return Interval(0, min(left.high, max(abs(right.low), abs(right.high), 1) - 1))
        case ast.BitAnd() if left.low >= 0 or right.low >= 0:
            return Interval(0, min(each.high for each in (left, right) if each.low >= 0))
        case ast.BitOr() | ast.BitXor() if left.low >= 0 and right.low >= 0:
            top = max(left.high, right.high)
            return Interval(0, top if math.isinf(top) else 2 ** int(top).bit_length() - 1)
        case ast.LShift() if left.low >= 0 and 0 <= right.low <= right.high < 64:
            return left.times(Interval(2 ** int(right.low), 2 ** int(right.high)))
        case ast.RShift() if left.low >= 0 and right.low >= 0:
            return Interval(0, left.high)
    return ANY
