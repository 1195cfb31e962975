"""Asynchronous work: begun by one operation, over when something waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tt2gl.ir.operations import Operation
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.values import Array

# Asynchronous work lands as late as it may, or as early.
Schedule = Literal["late", "early"]

Effect = Callable[[], None]


@dataclass(eq=False)
class Work:
    """A piece of asynchronous work.

    `clock` is what its end brings to whoever waits for it: what its issuer knew, and its own epoch. `effect` does it;
    None once it has landed. It lands after the works `before` it.
    """

    operation: Operation
    lane: int
    epoch: int
    clock: Clock
    effect: Effect | None
    before: tuple[Work, ...] = ()
    joined: bool = False

    def land(self) -> None:
        """Let it happen, unless it has."""
        for work in self.before:
            work.land()
        self.before = ()
        effect, self.effect = self.effect, None
        if effect is not None:
            effect()


@dataclass(eq=False)
class Groups:
    """Asynchronous work of one kind of one partition, waited for by number of groups: cp.async, TMA stores, wgmma."""

    lane: int
    epoch: int = 1
    open: list[Work] = field(default_factory=list)
    closed: list[list[Work]] = field(default_factory=list)

    def commit(self) -> None:
        """Close the open group, be it empty."""
        self.closed.append(self.open)
        self.open = []
        self.epoch += 1

    def finished(self, pending: int) -> list[Work]:
        """The works that are over when `pending` groups at most are not; they are no longer here."""
        count = max(0, len(self.closed) - pending)
        done, self.closed = self.closed[:count], self.closed[count:]
        return [work for group in done for work in group]

    def so_far(self) -> tuple[Work, ...]:
        """Works whose ends are the ends of all until now; who learns of them learns nothing of what is begun later."""
        works = self.works
        self.epoch += 1
        # They come from one issuer, so the last one's clock has all that the others' have.
        return (*(work for work in works[:-1] if work.effect is not None), *works[-1:])

    @property
    def works(self) -> list[Work]:
        """All that are not known to be over, oldest first."""
        return [work for group in (*self.closed, self.open) for work in group]


class Pending:
    """The result of work that has not been waited for: a value that may be handed on, and not be computed with."""

    work: Work | None = None
    value: Array | None = None

    @property
    def joined(self) -> bool:
        """Whether its work was waited for."""
        return self.work is not None and self.work.joined

    def get(self) -> Array:
        """The value, after letting the work land."""
        if self.work is not None:
            self.work.land()
        assert self.value is not None
        return self.value
