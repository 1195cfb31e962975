"""What of a loop goes ahead with its loads, and what stays of it: its slice, and what is asked of that."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.pipelining.carried import carried_values, loaded_again, value_of
from tt2gl.pipelining.flow import NONE, Names, strays, writes
from tt2gl.pipelining.loads import needs, ring_name
from tt2gl.pipelining.loop_plan import comes_early
from tt2gl.pipelining.rings import LoopRings
from tt2gl.pipelining.slices import Slice, slice_loop
from tt2gl.pipelining.stops import Stops, stops_of
from tt2gl.plan import Ring
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class TakenAhead:
    """A loop of a function, taken apart for its loads: `parts`.

    `wanted`: what each marker needs, but those of what only says where tiles are; `rings`: those that they fill.
    `stops`: what goes ahead until the last iteration; `live_after`: the names that are read behind the loop, but those
    that `stops` has there. `again`: the statements that stay, and are done ahead as well; `carried`: those whose values
    wait for their iterations, with the names that they bind.
    """

    function: ast.FunctionDef
    loop: ast.For
    wanted: Mapping[ast.Call, Sequence[ast.expr]]
    rings: tuple[Ring, ...]
    parts: Slice
    stops: Stops
    live_after: Names
    again: frozenset[ast.stmt]
    carried: Mapping[ast.stmt, str]

    @property
    def leaking(self) -> Names:
        """The names that must be others where loads run ahead, though the slice says that they may stay.

        A prologue is unrolled, so that its names stay: another loop or branch may give them another type. Loads that
        stand among the lines that stay have names of their own for what those bind as well.
        """
        leaking = NONE.union(*map(writes, self.parts.taken)) & strays(self.function.body, self.loop)
        leaking -= self.parts.carried
        if not comes_early(self.rings) or any(ring.direct for ring in self.rings):
            return leaking
        both = self.parts.taken & self.parts.kept
        return leaking.union(*(writes(each) for each in both if not isinstance(each, ast.If)))

    @property
    def first_in_branches(self) -> Names:
        """The names that branches of the loop give values to, and nothing else in it or above it."""
        arguments = self.function.args
        given = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        names = [node for node in nodes_in(self.function) if isinstance(node, ast.Name)]
        given |= {each.id for each in names if isinstance(each.ctx, ast.Store) and each.lineno < self.loop.lineno}
        branches = [each for each in self.loop.body if isinstance(each, ast.If)]
        always = NONE.union(*(writes(each) for each in self.loop.body if each not in branches))
        return NONE.union(*map(writes, branches)) - always - given


def taken_ahead(
    function: ast.FunctionDef,
    loop: ast.For,
    markers: Sequence[ast.Call],
    spec: LoopRings,
    live_after: Names,
    looked_up: Collection[str],
    settled: Callable[[ast.expr], bool],
) -> TakenAhead:
    """Take a loop apart for its markers; `looked_up`: the rings of what says where tiles are.

    `settled` says of a test whether the compiler knows it. Raises `NotPipelinedError`.
    """
    wanted = {each: needs(each) for each in markers if ring_name(each) not in looked_up}
    parts = slice_loop(loop, wanted, live_after)
    rings = tuple(spec.ring(name) for name in dict.fromkeys(map(ring_name, wanted)))
    # Where the last iterations are a loop of their own, nothing stops.
    waits = not comes_early(rings) and not spec.flattened
    stops = stops_of(loop, wanted, parts, live_after, settled) if waits else Stops()
    if stops.names:
        live_after -= stops.names
        parts = slice_loop(loop, wanted, live_after)
    again = loaded_again(function, loop, parts) if waits else frozenset[ast.stmt]()
    if again:
        parts = slice_loop(loop, wanted, live_after, also=again)
    carried = carried_values(function, loop, parts) if waits else {}
    if carried:
        parts = slice_loop(loop, wanted, live_after, frozenset(map(value_of, carried)), again)
    return TakenAhead(function, loop, wanted, rings, parts, stops, live_after, again, carried)
