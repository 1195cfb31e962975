"""One text for all launches: the first way of writing a layout that gives every launch the layout it has in Triton.

Each launch's true layout is read off Triton's passes. A kernel has one text for all of them, so a candidate is a text
with what it gives under each launch; where none is right everywhere, a literal or the best of them is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Layout(Protocol):
    """A layout as a value that can be written as Gluon."""

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        ...


L = TypeVar("L", bound=Layout)


@dataclass(frozen=True)
class Tile:
    """The extents of a tile, as source and under each launch."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def source(self) -> str:
        """The extents as a list."""
        return bracketed(self.names)


@dataclass(frozen=True)
class Width:
    """A way to say how many bits an element has: a number or an expression, and its value under each launch."""

    source: str
    values: tuple[int, ...]

    def under(self, number: int) -> str:
        """`number` divided by the width, as source."""
        return str(number // int(self.source)) if self.source.isdigit() else f"{number} // {self.source}"


@dataclass(frozen=True)
class Candidate(Generic[L]):
    """A way to write a layout: the text, what it gives under a launch (by its index), and the helpers it calls."""

    source: str
    value: Callable[[int], L | None]
    helpers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Written:
    """A layout as source, the helpers that have to stand in the file, and whether it is right under every launch."""

    source: str
    helpers: tuple[str, ...]
    exact: bool


def bracketed(items: Sequence[object]) -> str:
    """A list as source."""
    return f"[{', '.join(map(str, items))}]"


def numbers(values: Sequence[int]) -> tuple[Width, ...]:
    """Ways to write a number that is the same under each launch, the most frequent first."""
    found = sorted(dict.fromkeys(values), key=lambda value: -values.count(value))
    return tuple(Width(str(value), (value,) * len(values)) for value in found)


def telling_apart(widths: Iterable[Width]) -> list[Width]:
    """The widths but those that are another's of before under every launch, which no candidate needs."""
    first: dict[tuple[int, ...], Width] = {}
    for width in widths:
        first.setdefault(width.values, width)
    return list(first.values())


def written(values: Sequence[L], candidates: Sequence[Candidate[L]]) -> Written:
    """The first candidate that gives `values`, one a launch; else a literal where they agree; else the best one."""
    best, most = None, 0
    for candidate in candidates:
        right = sum(candidate.value(index) == value for index, value in enumerate(values))
        if right == len(values):
            return Written(candidate.source, candidate.helpers, True)
        if right > most:
            best, most = candidate, right
    common = max(values, key=values.count)
    if best is None or values.count(common) > most:
        return Written(common.source(), (), values.count(common) == len(values))
    return Written(best.source, best.helpers, False)
