"""How deep loops are pipelined: a launch's `num_stages`, or what part of it Triton gives tiles, or what has room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

STAGES = "NUM_STAGES"
"""The parameter of a pipelined kernel that Triton's launch option `num_stages` becomes."""


@dataclass(frozen=True)
class Declaration:
    """A layout, or a count of stages, named at the top of a kernel; `comment` says what it serves."""

    name: str
    source: str
    comment: str


@dataclass(frozen=True)
class Schedule:
    """How many stages tiles have of `num_stages`: `source` with a place for that, a comment, and the count itself."""

    source: str
    comment: str
    of: Callable[[int], int]


CHAINED = Schedule(
    "2 if {0} == 4 else {0}",
    "of four stages, two products in a row split two",
    lambda asked: 2 if asked == 4 else asked,
)
"""Triton splits the iterations of two products in a row so on AMD."""

LOOKED_UP = Schedule(
    "({0} + 1) // 2 if {0} > 2 else 2",
    "what says where tiles are takes the others",
    lambda asked: max((asked + 1) // 2, 2),
)
"""Triton shares the stages between tiles and what a loop loads to know where these are."""


@dataclass(frozen=True)
class Fewer:
    """`name` stands for at most `most` stages, as more would not fit the shared memory.

    With a `parameter` (a constexpr) that is so where it is `least` or more.
    """

    name: str
    most: int
    parameter: str = ""
    least: int = 0

    def holds(self, constexprs: Mapping[str, object]) -> bool:
        """Whether it is so for these values of the constexprs."""
        value = constexprs.get(self.parameter)
        return not self.parameter or isinstance(value, int) and value >= self.least


@dataclass(frozen=True)
class Stages:
    """How deep a function's loops are pipelined: `source` is a parameter, its own or the author's, or a number.

    `parameter`: a parameter of that name is added, with `default`. `asked`: launches differ, so that it is taken from
    each launch's own `num_stages`. `further`: how many more the loops have than that says. `schedule`: what part of
    it they have, under the name `named`. `fewer`: the loops have not that many, but fewer under some launches.
    """

    source: str
    parameter: bool = False
    default: int | None = None
    asked: bool = False
    fewer: Fewer | None = None
    further: int = 0
    schedule: Schedule | None = None
    named: str = ""

    @property
    def used(self) -> str:
        """What the function's own loops, and those of its helpers, are pipelined by."""
        return self.fewer.name if self.fewer is not None else self.whole

    @property
    def whole(self) -> str:
        """How many they are where all have room."""
        if self.schedule is not None:
            return self.named
        return f"{self.source} {'+' if self.further > 0 else '-'} {abs(self.further)}" if self.further else self.source

    def told(self, number: int) -> int:
        """How many the loops have, where all have room, of the number that `source` has."""
        return number + self.further if self.schedule is None else self.schedule.of(number)

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """What says how many that is, where it is not said by the parameter."""
        made: tuple[Declaration, ...] = ()
        if self.schedule is not None:
            made = (Declaration(self.named, self.schedule.source.format(self.source), self.schedule.comment),)
        if self.fewer is None:
            return made
        conditions = [] if self.source.isdigit() else [f"{self.whole} > {self.fewer.most}"]
        if self.fewer.parameter:
            conditions.append(f"{self.fewer.parameter} >= {self.fewer.least}")
        less = f"{self.fewer.most} if {' and '.join(conditions)} else {self.whole}" if conditions else ""
        return (*made, Declaration(self.fewer.name, less or str(self.fewer.most), "no more fit the shared memory"))
