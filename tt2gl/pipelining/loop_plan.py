"""What is decided of a loop before it is written, and where tiles lie by that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tt2gl.pipelining.counting import Count
from tt2gl.pipelining.rings import Amount, LoopRings, Ring
from tt2gl.pipelining.slices import Slice
from tt2gl.pipelining.tma import Barriers


@dataclass(frozen=True)
class LoopPlan:
    """All that is decided of one loop.

    `buffers`: the name of each ring's memory. `ahead`: that of the loop's variable in the iteration ahead. `turn`: that
    of the iteration's number, where it is counted. `stage`, `first`: what the prologue counts with, and the loop's
    variable there. `renamed`: names of the producer. `bindings`: what is bound before the loop, name and source.
    `slots`: names of this iteration's slot and of the one that is filled, for rings of a depth. `barriers`: for tiles
    that TMA copies; `each` counts them.
    """

    spec: LoopRings
    copy: str
    parts: Slice
    count: Count
    rings: tuple[Ring, ...]
    buffers: Mapping[str, str]
    ahead: str
    turn: str | None
    stage: str
    first: str
    renamed: Mapping[str, str]
    bindings: tuple[tuple[str, str], ...]
    slots: Mapping[Amount, tuple[str, str]]
    barriers: tuple[Barriers, ...] = ()
    each: str = ""

    @property
    def copied(self) -> bool:
        """Whether threads copy some tiles, in groups of copies."""
        return any(not ring.tile for ring in self.rings)

    @property
    def number(self) -> str:
        """The number of the iteration."""
        return self.turn or self.count.number(self.count.variable)

    def slot(self, ring: Ring) -> str:
        """Where the tile of this iteration is."""
        depth = self.spec.depth(ring)
        return self.slots[depth][0] if depth in self.slots else self._slot(depth)

    def coming_slot(self, ring: Ring) -> str:
        """Where the tile of the iteration ahead goes."""
        depth = self.spec.depth(ring)
        if depth == self.spec.ahead:
            return self.slot(ring)
        return self.slots[depth][1] if depth in self.slots else self._coming_slot(depth)

    @property
    def first_slot(self) -> str:
        """Where a tile of the prologue goes."""
        return self.count.number(self.stage) if self.stage == self.first else self.stage

    def named_slots(self) -> Iterator[tuple[str, str]]:
        """The names of this iteration's slots, and what they are."""
        yield from ((name, self._slot(depth)) for depth, (name, _) in self.slots.items())

    def named_coming_slots(self) -> Iterator[tuple[str, str]]:
        """The names of the slots of the iteration ahead, and what they are."""
        for depth, (_, name) in self.slots.items():
            if depth != self.spec.ahead:
                yield name, self._coming_slot(depth)

    def _slot(self, depth: Amount) -> str:
        if depth.known == 1:
            return "0"
        return f"{self.number} % {depth.factor}"

    def _coming_slot(self, depth: Amount) -> str:
        if self.turn:
            return f"({self.turn} + {self.spec.ahead.source}) % {depth.factor}"
        return f"{self.count.number(self.ahead)} % {depth.factor}"
