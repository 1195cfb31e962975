"""Which slot of a ring holds a tile: counters that a loop carries, as dividing the iteration's number takes longer."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.rings import Amount, LoopRings, by_threads
from tt2gl.pipelining.static import called
from tt2gl.pipelining.trees import statement
from tt2gl.pipelining.walking import Lines
from tt2gl.plan import Ring
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class Slots:
    """The counters of the rings of one depth.

    `here`: the slot of this iteration's tiles. `free`: the slot that the iteration ahead fills; the last iteration's,
    or `here` where a tile is in registers by then. `phase`: that of the mbarriers of `here`, where there are any.
    `follows`: `free` is what `here` was an iteration before, and takes no counting of its own. `twice`: the two are the
    same slot, and are counted apart all the same.
    """

    depth: Amount
    here: str
    free: str
    phase: str = ""
    follows: bool = False
    twice: bool = False

    def once(self) -> Slots:
        """The same with one counter where one will do."""
        return replace(self, free=self.here, twice=False) if self.twice else self

    def started(self, ahead: Amount | None, *, at_use: bool = False) -> Lines:
        """The counters before the first iteration; loads run `ahead`, None where that is for the loop to say.

        `at_use`: an iteration counts where it uses them, not at its end.
        """
        made: Lines = []
        if self.depth.known != 1:
            made.append(statement(f"{self.here} = {-1 if at_use else 0}"))
        if self.free != self.here and ahead is not None:
            made.append(statement(f"{self.free} = {(ahead.plus(-1) if at_use else ahead).source}"))
        if self.phase:
            made.append(statement(f"{self.phase} = 0"))
        return made

    def resumed(self) -> Lines:
        """The slot that the prologue fills first, where the counters go on from an earlier turn of the loop."""
        return [statement(f"{self.free} = {self.here}")] if self.free != self.here else []

    def filled(self) -> Lines:
        """The slot that the prologue fills next, by the same counter."""
        return [] if self.depth.known == 1 else [self._next(self.free)]

    def read_next(self) -> Lines:
        """The slot of this iteration's tiles, from that of the last one's."""
        return [] if self.depth.known == 1 else [self._next(self.here)]

    def filled_next(self) -> Lines:
        """The slot that this iteration fills, from the one that the last filled, where it is not the one it reads."""
        return [] if self.free == self.here else [self._next(self.free)]

    def advanced(self) -> Lines:
        """The counters of the next iteration."""
        if self.depth.known == 1:
            return [statement(f"{self.phase} = {self.phase} ^ 1")] if self.phase else []
        if self.follows:
            made: Lines = [statement(f"{self.free} = {self.here}"), self._next(self.here)]
        else:
            made = [self._next(name) for name in dict.fromkeys((self.here, self.free))]
        if self.phase:
            made.append(statement(f"{self.phase} = {self.phase} ^ ({self.here} == 0)"))
        return made

    def _next(self, name: str) -> cst.BaseStatement:
        """The slot behind one, or the first again.

        `>=` as in Triton's pipeliner: of a ring of one tile, whose depth is a constant of the launch, LLVM then proves
        that its slot is the first (similarities of 8-bit integers take 72 registers for 102, where Triton's have 75).
        """
        return statement(f"{name} = gl.where({name} + 1 >= {self.depth.source}, 0, {name} + 1)")


def counted_twice(loop: ast.For, spec: LoopRings, rings: Sequence[Ring]) -> bool:
    """Whether the slots that are read and those that are filled are counted apart, though they are the same.

    So has Triton's pipeliner it. For sm120 ptxas then takes 204 registers for 232 (a matmul of any strides, whose
    Triton has 204) and 146 for 172 (attention, 156); for sm80 another ptxas takes 168 for 255 (a matmul of halves in
    three parts, 168), and spills none for 12 (8-bit integers, none). Of a product with an operand that
    the iteration loads for itself, that one takes 242 for 210, and where tiles are read below a product, as by
    attention, it spills 2 for 0.
    """
    if spec.looks_ahead or not by_threads(rings):
        return False
    calls = [each for each in nodes_in(loop) if isinstance(each, ast.Call)]
    products = [each for each in calls if called(each) == "mma_v2"]
    if spec.slots_apart or not products:
        return bool(products)
    first = min(each.end_lineno or each.lineno for each in products)
    plain = any(ast.unparse(each.func) in ("gl.load", "tl.load") for each in calls)
    return not plain and all(each.lineno <= first for each in calls if is_marker(each))


def slots_of(
    spec: LoopRings,
    rings: Sequence[Ring],
    by_mbarrier: Collection[Amount],
    fresh: Callable[[str], str],
    *,
    twice: bool = False,
) -> dict[Amount, Slots]:
    """The counters of a loop's rings, by depth. `by_mbarrier`: the depths of rings of mbarriers.

    `twice`: count the slot that is read and the one that is filled apart, even where they are the same.
    """
    first = {spec.depth(ring): ring.name for ring in reversed(rings)}
    made = {}
    for depth in dict.fromkeys(map(spec.depth, rings)):
        own = f"{first[depth]}_" if len(first) > 1 else ""
        here = "0" if depth.known == 1 else fresh(f"{own}slot")
        same = depth == spec.ahead
        counted = twice and same and depth.known != 1
        free = here if same and not counted else fresh(f"{own}free_slot")
        phase = fresh(f"{own}phase") if depth in by_mbarrier else ""
        follows = any(ring.direct for ring in rings if spec.depth(ring) == depth)
        made[depth] = Slots(depth, here, free, phase, follows, counted)
    return made
