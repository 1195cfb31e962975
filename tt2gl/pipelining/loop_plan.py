"""What is decided of a loop before it is written, and where tiles lie by that."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tt2gl.pipelining.counting import Count
from tt2gl.pipelining.direct import TDM_LOAD
from tt2gl.pipelining.flow import NONE, Names
from tt2gl.pipelining.last import Named
from tt2gl.pipelining.late_reads import Late
from tt2gl.pipelining.lookups import Lookups
from tt2gl.pipelining.rings import Amount, LoopRings
from tt2gl.pipelining.scalars import value_of
from tt2gl.pipelining.slices import Slice
from tt2gl.pipelining.slots import Slots
from tt2gl.pipelining.stops import Stops
from tt2gl.pipelining.tma import Barriers
from tt2gl.pipelining.turns import Turns
from tt2gl.plan import Ring


@dataclass(frozen=True)
class Last:
    """Names of the last iterations: what counts them, the loop's variable, and what is read of each ring, by its name.

    `slots`: of each ring of several tiles, where those are, the oldest first: both loops carry that. `exists`: where
    products alone are under a condition, its name; `products`: then, the names of each and of its operands; `befores`:
    what variables are called as they were before an iteration, and `flags`, the tests that they are only changed under;
    `renamed`: variables that would meet those of another branch. `tests`: the flags that they stand under; `wanted`:
    the variables that are read below.
    """

    counter: str
    variable: str
    tiles: Mapping[str, str]
    slots: Mapping[str, str]
    exists: str = ""
    products: Sequence[Named] = ()
    befores: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    tests: Sequence[str] = ()
    wanted: Names = NONE


@dataclass(frozen=True)
class Split:
    """Names of a loop whose turns do halves of two iterations: its variable in the one after, and whether there is it.

    `tiles`: what is read of each ring, by its name; `last`: the names of the last iterations.
    """

    after: str
    follows: str
    tiles: Mapping[str, str]
    last: Last


@dataclass(frozen=True)
class LoopPlan:
    """All that is decided of one loop.

    `buffers`: the name of each ring's memory. `ahead`: that of the loop's variable in the iteration ahead; `more`: of
    whether there is one. `stage`, `first`: what the prologue counts with, and the loop's variable there. `renamed`:
    names of the producer. `bindings`: what is bound before the loop, name and source; `flagged`: the tests that some
    of it has values under. `slots`: counters of slots, for rings of a depth. `barriers`: for tiles that TMA copies;
    `each` counts them. `lookups`: what is loaded to know where
    tiles are. `outside`: rings are made before a loop around this one, and used in each of its turns. `coming`: the
    names of tiles in registers on their way to rings; `begun`: of those in a prologue that loads several before it
    stores them. `drain`: where the iterations that load nothing begin, a loop of
    their own; without a name, loads are masked there. `last`: that loop's names, where it is unrolled. `conditions`:
    the tests that there is a ring under; `decided`: those of branches that are constants of the compilation.
    `descriptors`: what rings of tiles are loaded through. `turns`: how loads run on from turn to turn of the loop
    around, where they do. `late`: the reads of tiles that stand where products take them. `layouts`: the names of those
    of scalars, by the names of their rings. `carried`: statements whose values wait for their iterations, with
    the names that they wait under. `stops`: what goes ahead until the last iteration.
    `awaited`: an iteration waits for all of its products, which read every tile where it lies. `split`: a turn does the
    second half of an iteration, and the first of the next, where the body can be parted so.
    """

    spec: LoopRings
    copy: str
    parts: Slice
    count: Count
    rings: tuple[Ring, ...]
    buffers: Mapping[str, str]
    ahead: str
    more: str
    stage: str
    first: str
    renamed: Mapping[str, str]
    bindings: tuple[tuple[str, str], ...]
    slots: Mapping[Amount, Slots]
    barriers: tuple[Barriers, ...] = ()
    each: str = ""
    lookups: Lookups | None = None
    flagged: Mapping[str, Sequence[str]] = field(default_factory=dict)
    outside: bool = False
    coming: Mapping[str, str] = field(default_factory=dict)
    begun: Mapping[str, str] = field(default_factory=dict)
    drain: str = ""
    last: Last | None = None
    conditions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    descriptors: Mapping[str, str] = field(default_factory=dict)
    decided: frozenset[str] = frozenset()
    turns: Turns | None = None
    late: Late = field(default_factory=Late)
    layouts: Mapping[str, str] = field(default_factory=dict)
    carried: Mapping[ast.stmt, str] = field(default_factory=dict)
    stops: Stops = field(default_factory=Stops)
    awaited: bool = False
    split: Split | None = None

    @property
    def copied(self) -> bool:
        """Whether threads copy some tiles, in groups of copies."""
        return any(not ring.tile and not ring.registers for ring in self.rings)

    @property
    def flags(self) -> tuple[str, ...]:
        """The tests that all tiles stand under that threads copy: those alone of a descriptor's other side, say."""
        tests = [self.conditions.get(ring.name, ()) for ring in self.rings if not ring.tile and not ring.registers]
        alike = bool(tests) and not self.direct and all(each == tests[0] for each in tests)
        return tests[0] if alike else ()

    @property
    def moved(self) -> int:
        """How many tiles AMD's data mover copies in every iteration."""
        return sum(ring.direct == TDM_LOAD and not self.conditions.get(ring.name) for ring in self.rings)

    @property
    def early(self) -> bool:
        """Whether an iteration loads before it reads, as all tiles have somewhere to go by then."""
        return comes_early(self.rings)

    @property
    def brought(self) -> bool:
        """Whether all tiles come to registers, above what an iteration reads."""
        return all(ring.registers for ring in self.rings)

    @property
    def plain(self) -> bool:
        """Whether threads copy all tiles, from where nothing has to be looked up."""
        return self.copied and not self.early and not self.barriers and self.lookups is None

    @property
    def read_at_once(self) -> bool:
        """Whether threads copy all tiles, each of which is out of its slot before the slot is filled again."""
        copied = self.copied and not self.early and not self.barriers
        return copied and all(self.spec.depth(ring) == self.spec.ahead for ring in self.rings)

    @property
    def direct(self) -> bool:
        """Whether some tiles are copied directly to LDS."""
        return any(ring.direct for ring in self.rings)

    def tile(self, ring: Ring) -> str:
        """The tile of this iteration."""
        if ring.held:
            return f"{self.buffers[ring.name]}[0]"
        if self.last is not None and ring.name in self.last.slots:
            return f"{self.last.slots[ring.name]}[0]"
        slot = f"{self.buffers[ring.name]}.index({self.slot(ring)})"
        return value_of(slot, self.layouts[ring.name]) if ring.scalar else slot

    @property
    def freed(self) -> set[str]:
        """Memory of rings whose tiles products are done with at once."""
        return {self.buffers[ring.name] for ring in self.rings if ring.ends_at_once}

    def slot(self, ring: Ring) -> str:
        """Where the tile of this iteration is."""
        return self.slots[self.spec.depth(ring)].here

    def free_slot(self, ring: Ring) -> str:
        """Where the tile of the iteration ahead goes."""
        return self.slots[self.spec.depth(ring)].free

    def first_slot(self, ring: Ring) -> str:
        """Where a tile of the prologue goes."""
        if self.outside and self.turns is None:
            return self.free_slot(ring)
        return self.count.number(self.stage) if self.stage == self.first else self.stage


def comes_early(rings: Sequence[Ring]) -> bool:
    """Whether tiles come to registers, or to slots that an iteration does not read: its loads may start before it."""
    return all(ring.registers or ring.direct for ring in rings)
