"""The partitions of a program that run side by side, as coroutines: who runs when."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet

from tt2gl.ir.operations import Operation
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.works import Groups

if TYPE_CHECKING:
    from tt2gl.simulate.interpreter import Run


@dataclass(eq=False)
class Agent:
    """A partition: its lane, what it knows, and the asynchronous work that it began."""

    name: str
    lane: int
    warps: int
    clock: Clock
    groups: dict[str, Groups] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """Where it is on its lane."""
        return self.clock.seen[self.lane]

    def release(self) -> Clock:
        """What it knows, to be handed to others; what it does from here on they do not know."""
        known = self.clock.copy()
        self.clock.seen[self.lane] += 1
        return known


@dataclass(eq=False)
class Wait:
    """A partition's wait at `operation` for something of a name, until it is `ready`."""

    operation: Operation
    name: str
    ready: Callable[[], bool]


class Partitions:
    """Runs partitions in turns until all have ended.

    In the late schedule each runs until it must wait, the first one first; in the early one the last one goes first and
    they take turns at every synchronisation.
    """

    def __init__(self, run: Run, agents: Sequence[Agent], bodies: Sequence[Callable[[], None]], early: bool) -> None:
        self._run = run
        self._engine = run.engine
        self._early = early
        self._agents = list(agents)
        self._waits: dict[greenlet, Wait | None] = {}
        self._states: dict[greenlet, tuple[Any, ...]] = {}
        self._hub = getcurrent()
        for agent, body in zip(agents, bodies, strict=True):
            coroutine = greenlet(body, self._hub)
            # numpy keeps the handling of floating-point errors in a context variable.
            coroutine.gr_context = contextvars.copy_context()
            self._waits[coroutine] = None
            self._states[coroutine] = (agent, run.frame, run.programs, run.in_step)

    def run(self) -> list[Wait]:
        """Run them; the waits that never end, one for each partition that did not end."""
        state = self._state()
        order = list(self._waits)
        if self._early:
            order.reverse()
        try:
            while self._waits:
                ran = [coroutine for coroutine in order if coroutine in self._waits and self._turn(coroutine)]
                if not ran:
                    return [wait for wait in self._waits.values() if wait is not None]
            return []
        finally:
            for coroutine in self._waits:
                if not coroutine.dead and coroutine:
                    self._restore(self._states[coroutine])
                    coroutine.throw(GreenletExit)
            self._restore(state)

    def pause(self, wait: Wait | None = None) -> None:
        """Called within a partition: let others run, until a wait is over where one is given."""
        me = getcurrent()
        self._waits[me] = wait
        self._states[me] = self._state()
        self._hub.switch()

    def _turn(self, coroutine: greenlet) -> bool:
        wait = self._waits[coroutine]
        if wait is not None and not wait.ready():
            return False
        self._waits[coroutine] = None
        self._restore(self._states[coroutine])
        coroutine.switch()
        if coroutine.dead:
            del self._waits[coroutine]
        return True

    def _state(self) -> tuple[Any, ...]:
        run = self._run
        return self._engine.agent, run.frame, run.programs, run.in_step

    def _restore(self, state: tuple[Any, ...]) -> None:
        run = self._run
        self._engine.agent, run.frame, run.programs, run.in_step = state


def group_of(agent: Agent, kind: str, lane: Callable[[], int]) -> Groups:
    """The agent's work of a kind; its lane is made by `lane` when it is the first."""
    groups = agent.groups.get(kind)
    if groups is None:
        groups = agent.groups[kind] = Groups(lane())
    return groups
