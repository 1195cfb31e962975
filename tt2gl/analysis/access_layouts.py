"""Accesses to global memory and the layouts of what they take and give: tiles, loads into rings, stores, atomics."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tt2gl.analysis.copied_rows import tile_around
from tt2gl.analysis.decisions import RingWant, Spot
from tt2gl.analysis.graph import Node
from tt2gl.analysis.terms import IN_RING, Cut, Exchanged, Inferred, Root, Term

if TYPE_CHECKING:
    from tt2gl.analysis.propagation import Propagation


class AccessLayouts:
    """Decides how accesses take their operands, where layouts flow through the rest of the graph."""

    def __init__(self, flow: Propagation) -> None:
        self.flow = flow
        self.cores, self.graph, self.decisions = flow.cores, flow.graph, flow.decisions

    def tile(self, node: Node, term: Term, spot: Spot) -> None:
        """A descriptor's tile goes between global and shared memory as a whole."""
        self.decisions.tiles[spot] = node.function
        if node.kind == "load":
            ring = self.cores.rings.get(node.chain)
            name, in_memory = (ring.name, ring.in_memory) if ring is not None else ("", False)
            at_once, direct = self.cores.ends_at_once(ring), ring.direct if ring is not None else ""
            want = RingWant(name, IN_RING, f"{node.tile}.dtype", in_memory, True, direct=direct, ends_at_once=at_once)
            self.decisions.staged[spot] = term, want
        for operand in node.operands:
            self.flow.settle(operand, spot.clone)

    def staged(self, node: Node, term: Term, spot: Spot) -> None:
        """A load into a ring's slot, from where it is read in `term`."""
        copied = self._copied(node)
        self.flow.take(node, copied, spot.clone)
        use = self.cores.rings[node.chain]
        slot, dtype = self.cores.ring(node, self.graph), self.graph.element_type(node)
        # Where it is masked out there is another value, by a mask in the layout of the copy.
        read = copied if node.replaced else term
        filled = (use.registers, use.stored, use.direct, self.cores.ends_at_once(use))
        want = RingWant(use.name, slot, dtype, use.in_memory, False, *filled, looked_up=use.looked_up)
        want = replace(want, late=use.late, located=use.located, split=use.split)
        self.decisions.staged[spot] = read, want
        self.flow.convert(node, read, term, spot)

    def _copied(self, node: Node) -> Term:
        """The layout that a load into a ring is copied in: its own, or for a small row that of a tile beside it."""
        tile, dim = tile_around(self.flow.scene, node) or (None, None)
        beside = self.flow.classes.by_chain.get(tile) if tile is not None else None
        if beside is None:
            return self.flow.access_root(node)
        return Root(beside.name) if dim is None else Cut(dim, Root(beside.name))

    def write(self, node: Node, term: Term, spot: Spot) -> None:
        """A store or an atomic, whose result is wanted in `term`."""
        own = self.written(node)
        self.flow.take(node, own, spot.clone)
        for scalar, dtype in node.scalars:
            self.decisions.fills[spot, scalar] = ((*self.flow.scene.graph.spelled(node), dtype), own)
        if node.kind == "atomic":
            node.natural = own
            self.flow.convert(node, own, term, spot)
        if len(node.operands) > 1 and node.operands[1].bits != node.bits:
            fewer = 8 <= node.bits < node.operands[1].bits
            self.decisions.shortened[spot] = node.function if fewer else ""

    def written(self, node: Node) -> Term:
        """A small store is no anchor: it takes the layout of its value, then of its address.

        Not so where Triton spreads it: what of a product's rows is stored after a loop would be addressed as the
        product has them, in registers that the loop needs (two loops of attention spill 8 more on sm80).

        A small atomic keeps its own: in a slice of a tile one thread would make many, one after the other (10 us
        against 21 us for 32 rows on an H200).
        """
        if node.chain in self.flow.classes.exchanged:
            value = node.operands[1]
            if isinstance(value.natural, Root) and self.cores.is_accumulator(value.natural):
                return Exchanged(value.natural, value.dims_known, self.flow.classes.exchanged[node.chain])
        if not node.anchored and node.kind == "store" and not self._is_spread(node):
            for operand in (*node.operands[1:2], node.operands[0]):
                known = operand.natural if not isinstance(operand.natural, Inferred) else None
                if known is not None and len(operand.shape) == len(node.shape):
                    return self.flow.access_root(node) if self._is_repeated(node, known) else known
        return self.flow.access_root(node)

    def _is_repeated(self, node: Node, term: Term) -> bool:
        """Whether threads would store each element several times, along a dimension that has one alone."""
        single = [dim for dim, extent in enumerate(node.dims_known) if extent == "1"]
        return isinstance(term, Root) and any(self.flow.classes.repeats(term.name, dim) for dim in single)

    def _is_spread(self, node: Node) -> bool:
        """Whether Triton stores a value in a layout for memory under every launch, but those that store one element."""
        facts = [scene.facts for scene in self.cores.scenes if node.chain in scene.facts.accesses]
        large = [each for each in facts if prod(each.accesses[node.chain].shape) > 1]
        return bool(large) and all(node.chain in each.lowered.spread for each in large)
