"""Products and their operands: each as its instruction takes it, in registers, in shared memory or in a ring's slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from tt2gl.analysis.cast_operands import cast_transposition, through_memory
from tt2gl.analysis.cheap import in_ring, is_loaded, tile_in_ring
from tt2gl.analysis.decisions import Clone, DotWant, Spot
from tt2gl.analysis.given_tiles import taken_as_given
from tt2gl.analysis.graph import Definition, Node, Web, made_once, uncast
from tt2gl.analysis.memory_arguments import Use, caller_value, uses
from tt2gl.analysis.scale_registers import scale_registers
from tt2gl.analysis.terms import IN_RING, BlockScale, Inferred, Operand, Root, Stored, Term, Widened, packed
from tt2gl.analysis.unpacking import Unpacking, unpacking
from tt2gl.analysis.widened_operands import WidenedOperands, named

if TYPE_CHECKING:
    from tt2gl.analysis.propagation import Propagation

_Way = Callable[[Node, int, Node, Term, Clone], bool]


class Products:
    """Decides how the operands of products come, where layouts flow through the rest of the graph.

    `unpacked`: values, by identity, that become operands in their layout; `once`: names that are converted for that.
    `turned`: transpositions with names of their own that are views of memory, with the product that reads each.
    """

    def __init__(self, flow: Propagation) -> None:
        self.flow = flow
        self.cores, self.graph, self.decisions = flow.cores, flow.graph, flow.decisions
        self._at_once: dict[int, Stored] = {}
        self.unpacked: set[int] = set()
        self.once: set[int] = set()
        self.turned: dict[int, tuple[Node, int]] = {}
        self.narrow = WidenedOperands(flow)

    def find(self) -> None:
        """Find the operands that come otherwise than in the layout that they would have by themselves."""
        self._find_unpacked()
        self._find_loaded_at_once()
        self._find_turned()

    def _find_unpacked(self) -> None:
        """Find operands that Triton unpacks in their own layout, of which it converts what they are unpacked from."""
        readers: dict[int, list[Node]] = {}
        for node in self.graph.nodes:
            if node.kind == "read" and node.web is not None:
                readers.setdefault(id(node.web.find()), []).append(node)
        for dot in [node for node in self.graph.nodes if node.kind == "dot"]:
            for place, operand in enumerate(dot.operands[:2]):
                width = self.cores.converted_width(dot, place)
                found = unpacking(operand, place == 1, width, readers) if width else None
                if found is not None and self._pays(dot, found):
                    found.forget()
                    self.unpacked |= found.nodes.keys()
                    self.once |= found.taken_once(readers)

    def _pays(self, dot: Node, found: Unpacking) -> bool:
        """Whether an operand comes better by what it is made of: put side by side, or, but on AMD, cast and turned.

        AMD's registers hold the wider tile in fewer (of 32x64 bytes 54 for 60 on gfx942).
        """
        if found.merges:
            return all(map(self.flow.is_kept, found.merges))
        return found.is_turned and not self._is_amd(dot)

    def _read_once(self) -> Iterator[tuple[Node, int, Node, Definition]]:
        """Products' operands that are names made once and read nowhere else: product, place, reading, definition."""
        nodes = self.graph.nodes
        reads = Counter(id(node.web.find()) for node in nodes if node.kind == "read" and node.web is not None)
        for dot in [node for node in nodes if node.kind == "dot"]:
            for place, operand in enumerate(dot.operands[:2]):
                made = made_once(operand)
                if made is not None and reads[id(made.own_web())] == 1:
                    yield dot, place, operand, made

    def _find_loaded_at_once(self) -> None:
        """Find tiles that go through shared memory where they are loaded: another launch's are in a ring, or computed.

        A product then reads one name, whose value is in its operand's registers on either side of the branch. Such a
        name has no layout for memory.
        """
        for dot, place, operand, made in self._read_once():
            if made.node.kind != "load" or made.node.staged or self._is_amd(dot):
                continue
            if not self._is_loaded_elsewhere(dot, place, made.node):
                slot = self.cores.reloaded(dot, place, operand, self.graph, self.flow.index)
                if slot is not None:
                    self._at_once[id(made.node)] = slot
                    operand.natural = made.own_web().natural = None

    def _find_turned(self) -> None:
        """Find names of transpositions that one product alone reads, from shared memory.

        What is turned is put there as it comes, as in Triton, where a transposition in registers converts them. What
        has a layout under a name of its own is put there by that name (`_store_source`).
        """
        for dot, place, operand, made in self._read_once():
            if made.node.kind != "opaque" or made.node.order != (1, 0) or in_ring(operand):
                continue
            source = _transposed_name(operand)
            in_memory = self.cores.in_memory(dot, place) or self.cores.transposed(dot, place)
            if (source is None or named(source) is None) and in_memory:
                self.turned[id(made.node)] = dot, place
                operand.natural = made.own_web().natural = made.node.natural = None

    def _is_turned(self, operand: Node) -> bool:
        made = made_once(operand)
        return made is not None and id(made.node) in self.turned

    def _is_transposed(self, dot: Node, place: int, operand: Node) -> bool:
        """Whether an operand is a transposition that its product reads from shared memory, turned, as in Triton.

        (A conversion takes as much memory, and half as many instructions more: 5% of a product's time on an H200.)
        """
        made = made_once(operand)
        value = operand if made is None else made.node
        return value.kind == "opaque" and value.order == (1, 0) and self.cores.transposed(dot, place)

    def view(self, node: Node, clone: Clone) -> None:
        """Have a transposition as a view of what its product reads it from."""
        dot, place = self.turned[id(node)]
        self._store(dot, place, node, clone)

    def _is_loaded_elsewhere(self, dot: Node, place: int, load: Node) -> bool:
        """Whether a load is one of another launch's, of whose product Triton takes the operand otherwise."""
        return any(
            node.kind == "load" and node.chain == load.chain
            for scene in self.cores.taken_otherwise(dot, place)
            for node in scene.graph.nodes
        )

    def load(self, node: Node, term: Term, spot: Spot) -> None:
        """Have a loaded tile in a product's registers through shared memory, if it is one of those."""
        slot = self._at_once.get(id(node))
        if slot is not None and isinstance(term, Operand):
            self.decisions.converts.pop(spot, None)
            self.decisions.stores[spot], self.decisions.loads[spot] = slot, term

    def dot(self, node: Node, spot: Spot) -> Term:
        """A product: operands as its instruction takes them, the accumulator in its own layout, which it returns."""
        assert node.dot is not None
        own, use = self.cores.accumulator(node), self.cores.dots[node.chain]
        lhs: Stored | None = None
        for place, operand in enumerate(node.operands[:2]):
            parent = self.cores.operand_parent(node, place, own)
            wanted = Operand(place, parent, self.cores.k_width(node, place, partial(self.graph.word, node)))
            if (held := self.cores.operand_memory(node, place, operand, self.graph)) is not None:
                registers, lhs = held
                if operand.kind == "upcast" and operand.operands[0].shape != operand.shape:
                    elements = self.cores.packed_registers(node, place, operand.operands[0])
                    self.upcast(operand, registers, spot.clone, elements)
                    self.decisions.converts[Spot(operand.site, spot.clone)] = registers
                else:
                    self.flow.resolve(operand, registers, spot.clone)
            elif self._passed(node, place, operand, wanted, spot.clone):
                pass
            elif not self.cores.in_memory(node, place) and not self._is_transposed(node, place, operand):
                if self._repeats(node, operand):
                    self.flow.convert(
                        operand, self.flow.settle(operand, spot.clone), wanted, Spot(operand.site, spot.clone)
                    )
                else:
                    self.flow.resolve(operand, wanted, spot.clone)
            elif self._is_turned(operand) or in_ring(operand) and self.cores.read_in_place(node, place, operand):
                self.flow.resolve(operand, IN_RING, spot.clone)
            elif not taken_as_given(self.flow, node, place, operand, spot.clone):
                self._store(node, place, operand, spot.clone)
            if self._is_transposed(node, place, operand):
                self.decisions.loads[Spot(operand.site, spot.clone)] = wanted
        for accumulator in node.operands[2:]:
            self.flow.resolve(accumulator, own, spot.clone)
        for place, scale in enumerate(node.scales):
            self.flow.resolve(scale, scale_registers(self.cores, node, place, scale), spot.clone)
        memory = self.cores.accumulator_memory(node, self.graph)
        want = DotWant(node.dot, use.instruction, self.cores.extents(node, self.graph), use.name, memory, lhs)
        self.decisions.dots[spot] = own, want
        return own

    def _passed(self, dot: Node, place: int, operand: Node, term: Term, clone: Clone) -> bool:
        """Bring an operand to its registers through shared memory, as it is or as it was loaded, where Triton does."""
        if self._is_amd(dot):
            ways: tuple[_Way, ...] = (self._reloaded, self.narrow.converted)
        else:
            ways = (self._reloaded, self.narrow.stored, partial(through_memory, self.flow))
        return any(way(dot, place, operand, term, clone) for way in ways)

    def _reloaded(self, dot: Node, place: int, operand: Node, term: Term, clone: Clone) -> bool:
        """Bring an operand into its registers through shared memory, where Triton does, and not by a conversion.

        One from outside the loop is put there once, and loaded for each product, without casts to the type that it has
        (on AMD it is loaded once, too: Triton's HoistLayoutConversions, by which its memory serves others in the loop);
        a tile that is loaded to registers as soon as it is in them, which are free by that. (On an H200 its conversion
        is up to a tenth quicker, but takes up to 1.4 times Triton's registers, or spills.) So is what is computed: its
        conversion is up to a fifth quicker, but all of it comes to registers at once, where the other operand waits,
        too. (A backward pass of chunks by `mma_v2` spills 54 registers a thread on sm80, for 1; ordinary products of
        tiles of 64x64 and 64x32 1418 for 140 on sm90.) Where `wgmma` takes the other operand from memory that the same
        iteration puts it in, both are put there, as soon as they are computed, and one barrier serves both.
        """
        value, idle = uncast(operand)
        spot, web = Spot(operand.site, clone), value.web.find() if value.web is not None else None
        if in_ring(operand):
            # A descriptor's tile is in shared memory as it comes, and may stay there.
            if web is None or web.made_outside(operand) is None or not self.cores.read_again(dot, place):
                return False
            self.flow.resolve(operand, IN_RING, clone)
            self.decisions.loads[spot] = term
            return True
        if (passed := self.cores.passed(dot, place)) is not None:
            self.flow.resolve(operand, term, clone)
            if spot in self.decisions.converts:
                self.decisions.passed[spot] = passed
            return True
        anyhow = self._is_blocked(operand) and not self._is_amd(dot)
        # A helper gets a transposition turned.
        before = not self._is_transposed(dot, place, operand)
        made = web.made_outside(value) if web is not None and web.natural is not None else None
        kept = made is not None and made.entry is None and self._is_amd(dot)
        slot = self.cores.reloaded(dot, place, operand, self.graph, anyhow=anyhow, turned_before=before, kept=kept)
        if slot is None:
            return False
        if web is not None and web.natural is not None:
            at_once = is_loaded(value) or self._beside_stored(dot, place)
            if made is None and at_once and not self._is_amd(dot):
                made = web.made_once()
        if web is not None and web.natural is not None and made is not None:
            if self._is_amd(dot) and made.entry is None:
                self.decisions.convert_after(made, web.name, web.natural, slot)
                self.decisions.convert_after(made, web.name, slot, term)
                self.decisions.reads[Spot(value.site, clone)] = (web.name, term)
                return True
            if not self._given(web, made, lambda value, use: self._slot(value, use, turned_before=before)):
                self.decisions.convert_after(made, web.name, web.natural, slot)
            self.decisions.reads[Spot(value.site, clone)] = (web.name, slot)
            self.decisions.views |= {Spot(cast.site, clone): cast.order for cast in idle}
        elif slot.turned and not self._is_blocked(operand):
            return False
        else:
            self._settle(value, clone)
            # It is stored as it comes: a transposition's result is not converted first.
            self.decisions.converts.pop(Spot(value.site, clone), None)
            self.decisions.stores[Spot(value.site, clone)] = slot
            self.decisions.views |= {Spot(cast.site, clone): cast.order for cast in idle}
        self.decisions.loads[spot] = term
        return True

    def _slot(self, value: Node, use: Use, *, turned_before: bool) -> Stored | None:
        dot, place, turned = use
        return self.cores.reloaded(dot, place, value, self.graph, turned_before=turned_before and not turned)

    def _settle(self, operand: Node, clone: Clone) -> None:
        """Give what goes to shared memory its own layout; one that is turned and cast, that of its elements by then."""
        if (turned := cast_transposition(operand)) is not None:
            tile = tile_in_ring(turned.operands[0])
            own = self.flow.access_root(tile) if tile is not None else self.flow.default(turned.operands[0])
            turned.natural = Inferred(own, "trans (1, 0)")
            self.flow.resolve(operand, turned.natural, clone)
        else:
            self.flow.settle(operand, clone)

    def _repeats(self, dot: Node, operand: Node) -> bool:
        """Whether an operand of multiply-adds is computed: in their registers each warp's lanes would repeat that.

        Triton hoists conversions above what an operand is computed by for matrix instructions alone.
        """
        value, _ = uncast(operand)
        return self.cores.dots[dot.chain].instruction == "fma" and value.kind == "elementwise"

    def _beside_stored(self, dot: Node, place: int) -> bool:
        """Whether `wgmma` takes an operand in registers, and the other one from where its iteration puts it, too."""
        other = dot.operands[1]
        if place != 0 or self.cores.dots[dot.chain].instruction != "wgmma" or in_ring(other):
            return False
        web = other.web.find() if other.web is not None else None
        return self.cores.in_memory(dot, 1) and (web is None or web.made_outside(other) is None)

    def _is_amd(self, dot: Node) -> bool:
        return self.cores.dots[dot.chain].instruction.startswith(("mfma", "wmma"))

    def _is_blocked(self, operand: Node) -> bool:
        return isinstance(operand.natural, Root | Widened) and not self.cores.is_accumulator(operand.natural)

    def _store(self, dot: Node, place: int, operand: Node, clone: Clone, turned: bool = False) -> None:
        """Put an operand into shared memory: where it is made if that is outside the loop, else for the dot."""
        spot = Spot(operand.site, clone)
        if operand.kind in ("opaque", "elementwise") and operand.order:
            turns = operand.kind == "opaque"
            self._store(dot, place, operand.operands[0], clone, turned != turns)
            self.decisions.views[spot] = operand.order
            return
        if (source := _transposed_name(operand)) is not None and self._store_source(dot, place, source, turned, spot):
            return
        slot = self.cores.stored(dot, place, operand, self.graph, turned)
        web = operand.web.find() if operand.web is not None else None
        if web is not None and (made := web.made_once()) is not None:
            natural = web.natural if web.natural is not None else self.flow.settle(operand, clone)
            if not self._given(web, made, self._stored):
                self.decisions.convert_after(made, web.name, natural, slot)
            self.decisions.reads[Spot(operand.site, clone)] = (web.name, slot)
            return
        if operand.kind == "upcast":
            self.upcast(operand, None, clone)
        else:
            self._settle(operand, clone)
        self.decisions.stores[Spot(operand.site, clone)] = slot

    def _stored(self, value: Node, use: Use) -> Stored | None:
        """How a value that a helper is given lies in memory for a product of it; None where that takes registers."""
        dot, place, turned = use
        return self.cores.stored(dot, place, value, self.graph, turned) if self.cores.is_stored(dot, place) else None

    def _store_source(self, dot: Node, place: int, source: Definition, turned: bool, spot: Spot) -> bool:
        """Put a value into shared memory whose transposition an operand is, which is a view then; whether it can be."""
        web = named(source)
        if web is None or web.natural is None:
            return False
        slot = self.cores.stored(dot, place, source.node, self.graph, not turned)
        self.decisions.convert_after(source, web.name, web.natural, slot)
        self.decisions.reads[spot] = (web.name, slot)
        self.decisions.views[spot] = (1, 0)
        return True

    def _given(self, web: Web, made: Definition, stored: Callable[[Node, Use], Stored | None]) -> bool:
        """Have a helper's argument in shared memory in its caller, where it can be; whether it is."""
        found = caller_value(self.graph, web, made)
        if found is None:
            return False
        value, given, defined = found
        spot, (slot, *others) = Spot(value.site, None), [stored(value, use) for use in uses(self.graph, web)]
        if spot in self.decisions.converts or given.natural is None or slot is None:
            return False
        if others and not (slot.in_place and all(other == slot for other in others)):
            return False
        self.decisions.convert_after(defined, given.name, given.natural, slot)
        self.decisions.reads[spot] = (given.name, slot)
        self.decisions.unconverted.pop(spot, None)
        self.decisions.given[web.function, made.entry or (), web.name] = slot
        return True

    def upcast(self, node: Node, term: Term | None, clone: Clone, pairs: Term | None = None) -> None:
        """Have an operand's elements in the layout that its 16 bits are wanted in, where they can be: as they come.

        `pairs`: the layout of bytes with two elements each that gives `term`, where it is known.
        """
        elements, *scales = node.operands
        own = term if pairs is not None or isinstance(term, Operand) or elements.shape == node.shape else None
        if pairs is not None:
            self.flow.resolve(elements, pairs, clone)
        elif isinstance(term, Operand):
            self.flow.resolve(elements, term if elements.shape == node.shape else packed(term), clone)
        elif own is not None:
            self.flow.resolve(elements, own, clone)
        elif in_ring(elements) and elements.shape != node.shape:
            # A slot's bytes, two elements each, on their way to shared memory: Triton spreads them so.
            self.flow.resolve(elements, self.flow.spread(elements), clone)
        else:
            settled = self.flow.settle(elements, clone)
            own = settled if elements.shape == node.shape else None
        for scale in scales:
            self._scale(node, scale, own, clone)

    def _scale(self, node: Node, scale: Node, own: Term | None, clone: Clone) -> None:
        """Have scales where the elements are that they serve, `own`, as soon as they are loaded, as Triton has them.

        Where they are brought there just before they are multiplied, all that is converted of both operands waits for
        one barrier after the other.
        """
        web = scale.web.find() if scale.kind == "read" and scale.web is not None else None
        if web is None or web.made_once() is None or not isinstance(own, Root | Operand):
            self.flow.settle(scale, clone)
            return
        self.once.add(id(web))
        self.flow.resolve(scale, BlockScale(node.axis or 0, own, node.dims_known), clone)


def _transposed_name(operand: Node) -> Definition | None:
    """Where the name is made whose transposition is all that another is, which is an operand."""
    made = made_once(operand)
    if made is None or made.node.kind != "opaque" or made.node.order != (1, 0):
        return None
    source = made.node.operands[0]
    return None if in_ring(source) else made_once(source)
