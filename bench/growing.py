"""Launches grown until a tensor is as large as 32-bit offsets allow, and by one step more.

What makes a tensor large is found by trying: an argument (a stride), a program's place on an axis of the grid, with an
argument that bounds it (the number of elements), or what is in a tensor of indices. Only what lets the kernel do as
much work as before is taken, so that programs at the corners of the grid can be simulated, in memory of which only
what is touched is held.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tt2gl.analysis.buffer_sizes import BUFFER_BYTES
from tt2gl.launches import Launch
from tt2gl.simulate.api import Simulation, TensorInput, simulate
from tt2gl.simulate.findings import SimulationError
from tt2gl.simulate.sparse import Touched
from tt2gl.verify.bind import bind
from tt2gl.verify.inputs import Inputs, make_inputs
from tt2gl.verify.simulated_kernel import SimulatedKernel

# What a trial may take, in seconds, and how much more work than the launch as it is.
_SECONDS, _MORE = 5.0, 1.3
_ANY_LENGTH = 1 << 36
_MOST = (1 << 31) - (1 << 16)

Knob = tuple[str, str]
"""What is turned: an `argument` or the `content` of a tensor by name, or an `axis` of the grid by number."""
Turns = Mapping[Knob, int]
"""By how much each is increased."""


@dataclass(frozen=True)
class Large:
    """A launch at the limit: what to turn, by how much more it is beyond, and the tensors that are at the limit then.

    Those are of the tensors that have a limit. `reached`: the bytes up to which each tensor is touched.
    """

    turns: Turns
    beyond: Turns
    tensors: tuple[str, ...]
    reached: Mapping[str, int]


@dataclass(frozen=True)
class Way:
    """Knobs that are turned together, each by so much a step; `first`, `most`: the steps of a trial, and at most.

    `bound`: the one of them that may cut a program short.
    """

    each: Mapping[Knob, Fraction]
    first: int
    most: int
    bound: Knob | None = None

    def turns(self, steps: int) -> Turns:
        """All knobs after so many steps."""
        return {knob: math.ceil(step * steps) for knob, step in self.each.items()}


@dataclass
class Growth:
    """Grows one launch of a kernel. `limited`: the tensors that no launch lets end beyond the limit."""

    kernel: SimulatedKernel
    launch: Launch
    limited: frozenset[str]
    trials: dict[frozenset[tuple[Knob, int]], dict[str, Touched] | None] = field(default_factory=dict)
    faults: Set[str] = frozenset()

    def __post_init__(self) -> None:
        self.inputs = make_inputs(self.launch, 0)
        self.values = {
            name: value
            for name, value in self.inputs.scalars.items()
            if isinstance(value, int) and not isinstance(value, bool) and value > 1
        }
        grid = [*(self.launch.grid or ()), 1, 1, 1]
        self.grid = grid[0], grid[1], grid[2]
        self.start = self._tried({})

    # --------------------------------------------------------------------------------------------- what is run

    def inputs_of(self, turns: Turns) -> Inputs:
        """The arguments, turned."""
        scalars = {name: value + turns.get(("argument", name), 0) for name, value in self.inputs.scalars.items()}
        tensors = {
            name: replace(data, elements=data.elements + data.elements.dtype.type(turns["content", name]))
            if ("content", name) in turns
            else data
            for name, data in self.inputs.tensors.items()
        }
        return replace(self.inputs, scalars=scalars, tensors=tensors)

    def run(self, kernel: SimulatedKernel, turns: Turns, lengths: Mapping[str, int] | None = None) -> Simulation:
        """The programs at the corners of the grid, of tensors of such lengths (of any)."""
        arguments = [
            replace(each, length=_ANY_LENGTH if lengths is None else lengths[each.name])
            if isinstance(each, TensorInput)
            else each
            for each in bind(kernel.names, kernel.launch, self.inputs_of(turns), kernel.module)
        ]
        x, y, z = (size + turns.get(("axis", str(axis)), 0) for axis, size in enumerate(self.grid))
        corners = itertools.product(*(sorted({0, size - 1}) for size in (x, y, z)))
        programs = np.array([a + x * (b + y * c) for a, b, c in corners], np.int64)
        return simulate(kernel.module, arguments, (x, y, z), programs=programs)

    def _tried(self, turns: Turns) -> dict[str, Touched] | None:
        """What the original touches of each tensor; None where it cannot be run, or does much more work."""
        key = frozenset(turns.items())
        if key not in self.trials:
            self.trials[key] = None
            with contextlib.suppress(SimulationError, TimeoutError, OverflowError, MemoryError), _within(_SECONDS):
                done = self.run(self.kernel, turns)
                found = {each.name: each.touched for each in done.tensors if each.touched is not None}
                kinds = {each.kind for each in done.findings}
                if not turns:
                    self.faults = kinds
                # Beyond what can be addressed there are faults that the launch as it is has not.
                if not turns or kinds <= self.faults and _work(found) <= _MORE * _work(self.start or {}):
                    self.trials[key] = found
        return self.trials[key]

    # ------------------------------------------------------------------------------------------- what to turn

    def large(self, wanted: str) -> Large | None:
        """A launch under which a tensor is at the limit, or else one with a limit before it; None if none is found."""
        if self.start is None or wanted not in self.start:
            return None
        instead: Large | None = None
        for way in self._ways():
            found = self._grown(wanted, way)
            if found is not None and wanted in found.tensors:
                return found
            instead = instead or found
        return instead

    def _ways(self) -> Iterator[Way]:
        """What may be turned."""
        for name, value in self.values.items():
            step = 1 if value % 16 else 16
            most = _MOST - value if self.launch.signature[name] == "i32" else 1 << 40
            yield Way({("argument", name): Fraction(step)}, max(1, (value + 1) // 2 * 16 // step), most // step)
        for name, data in self.inputs.tensors.items():
            if data.elements.dtype.kind in "iu" and data.elements.itemsize >= 4:
                yield Way({("content", name): Fraction(1)}, 8 * (int(data.elements.max(initial=0)) + 1), _MOST)
        for axis, size in enumerate(self.grid):
            yield Way({("axis", str(axis)): Fraction(1)}, 8 * size, _MOST)
        for axis, size in enumerate(self.grid):
            for name, value in self.values.items():
                # A program's part of it: as much as is there, or a block, of which the last program has not all.
                part = Fraction(value, size)
                for share in sorted({part, Fraction(1 << (math.ceil(part) - 1).bit_length())}):
                    turned = {("axis", str(axis)): Fraction(1), ("argument", name): share}
                    yield Way(turned, 8 * size, min(_MOST, int((_MOST - value) / share)), ("argument", name))

    def _grown(self, wanted: str, way: Way) -> Large | None:
        reached = [self.start, self._tried(way.turns(way.first)), self._tried(way.turns(2 * way.first))]
        if reached[0] is None or reached[1] is None or reached[2] is None:
            return None
        if not reached[0][wanted].high < reached[1][wanted].high < reached[2][wanted].high:
            return None
        limited = (self.limited | {wanted}) & reached[2].keys()
        gained = {name: reached[2][name].high - reached[1][name].high for name in limited}
        rooms = [
            (BUFFER_BYTES - reached[2][name].high) * way.first // gain for name, gain in gained.items() if gain > 0
        ]
        turn = self._largest(limited, way.turns, 2 * way.first + min(rooms), way.most)
        if turn is None:
            return None
        turns, beyond = way.turns(turn), way.turns(turn + 1)
        ends = [(turns, beyond)]
        if way.bound:
            # The last program, or one after it, is cut short by what bounds it.
            low, high, bound = turns[way.bound], beyond[way.bound], way.bound
            for placed in (turns, beyond):
                cut = partial(_with, placed, bound, low)
                count = self._largest(limited, cut, 0, high - low)
                if count is not None and count < high - low:
                    ends.append((cut(count), cut(count + 1)))
        found = [large for here, there in ends if (large := self._as_found(limited, here, there)) is not None]
        return max(found, key=lambda large: max(large.reached[name] for name in large.tensors), default=None)

    def _fits(self, limited: Collection[str], turns: Turns) -> bool:
        reached = self._tried(turns)
        return reached is not None and all(reached[name].high <= BUFFER_BYTES for name in limited)

    def _largest(self, limited: Collection[str], turns: Callable[[int], Turns], guess: int, most: int) -> int | None:
        """The most that may be turned for tensors with a limit to fit, found from a guess."""
        low, width = max(0, min(guess, most)), 1
        while not self._fits(limited, turns(low)):
            if low == 0:
                return None
            low, width = max(0, low - width), 2 * width
        width = 1
        while low + width <= most and self._fits(limited, turns(low + width)):
            low, width = low + width, 2 * width
        while width > 1:
            width //= 2
            if low + width <= most and self._fits(limited, turns(low + width)):
                low += width
        return low

    def _as_found(self, limited: Collection[str], turns: Turns, beyond: Turns) -> Large | None:
        here, there = self._tried(turns), self._tried(beyond)
        if here is None or there is None:
            return None
        over = tuple(name for name in there if name in limited and there[name].high > BUFFER_BYTES >= here[name].high)
        return Large(turns, beyond, over, {name: each.high for name, each in here.items()}) if over else None

    def reached(self, turns: Turns) -> Mapping[str, int]:
        """Up to which byte tensors are touched."""
        return {name: each.high for name, each in (self._tried(turns) or {}).items()}


def _with(turns: Turns, knob: Knob, least: int, more: int) -> Turns:
    return {**turns, knob: least + more}


def _work(touched: Mapping[str, Touched]) -> int:
    return sum(each.elements for each in touched.values())


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of work."""

    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
