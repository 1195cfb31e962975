"""What the last iterations of a loop are written with: the names of those that stand one after the other."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tt2gl.pipelining.counting import Count
from tt2gl.pipelining.flags import flags_over
from tt2gl.pipelining.flow import NONE, Names, rivals, writes
from tt2gl.pipelining.last import Named, made_by_products, only_added_to
from tt2gl.pipelining.loop_plan import Last, Split
from tt2gl.pipelining.naming import Fresh
from tt2gl.pipelining.rings import LoopRings
from tt2gl.pipelining.slices import Slice
from tt2gl.plan import Ring


@dataclass(frozen=True)
class Ending:
    """How a loop ends: `drain`, `last` and `split` of its `LoopPlan`."""

    drain: str = ""
    last: Last | None = None
    split: Split | None = None


@dataclass(frozen=True)
class Endings:
    """A loop of a function, and what stays of its body; `lasting`: the names that last from turn to turn, or longer.

    `settled` says of a test whether the compiler knows it.
    """

    function: ast.FunctionDef
    loop: ast.For
    parts: Slice
    lasting: Names
    count: Count
    fresh: Fresh
    settled: Callable[[ast.expr], bool]

    def plain(self, rings: Sequence[Ring], spec: LoopRings) -> Last:
        """Names of iterations that stand one after the other."""
        tiles = {ring.name: self.fresh(f"{ring.name}_last") for ring in rings}
        placed = [ring for ring in rings if not ring.held]
        several = {spec.depth(ring) for ring in placed} == {spec.ahead} and spec.ahead.known != 1
        slots = {ring.name: self.fresh(f"{ring.name}_slots") for ring in placed if several}
        return Last(self.fresh("s"), self.fresh(f"{self.count.variable}_last"), tiles, slots)

    def asked_for(self, last: Last) -> Last:
        """Those of iterations whose products alone are asked for."""
        kept = self.kept
        asked = [self._named(name) for name in made_by_products(self.loop)]
        befores = {name: self.fresh(f"{name}_before") for name in sorted(self.lasting - only_added_to(kept))}
        met = rivals(self.function.body, self.loop, self.settled)
        bound = NONE.union(*map(writes, kept)) - self.parts.lasting
        others = {name: self.fresh(f"{name}_at_last") for name in sorted(bound & met)}
        flags = {name: flags_over(self.loop, name, self.settled) for name in befores}
        return replace(last, exists=self.fresh("exists"), products=asked, befores=befores, flags=flags, renamed=others)

    def _named(self, made: str) -> Named:
        start = f"{made}_" if made else ""
        product, lhs, rhs = (self.fresh(f"{start}{word}") for word in ("product", "lhs", "rhs"))
        return product, lhs, rhs

    def split(self, rings: Sequence[Ring], spec: LoopRings, last: Last | None) -> Split | None:
        """Names of a loop whose turns do halves of two iterations; None where Triton has no such loop."""
        alike = all(ring.split and ring.registers and not ring.held for ring in rings)
        if not alike or self.count.wide or spec.ahead.known != 1:
            return None
        if last is None or not last.exists:
            last = self.asked_for(last or self.plain(rings, spec))
        if last.renamed or len(last.products) != 2:
            return None
        tiles = {ring.name: self.fresh(f"{ring.name}_tile") for ring in rings}
        return Split(self.fresh(f"{self.count.variable}_next"), self.fresh("follows"), tiles, last)

    @property
    def kept(self) -> list[ast.stmt]:
        """What stays of the body's statements."""
        return [each for each in self.loop.body if each in self.parts.kept]
