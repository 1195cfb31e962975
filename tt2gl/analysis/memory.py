"""Memory facts of every global access, and the named layouts that serve them.

Triton's Coalesce pass gives each access its layout under each launch (order, contiguity and width by AxisInfo).
Accesses that have the same layout under every launch share one `LayoutClass`, written as a formula of the
kernel's constexprs wherever the formula gives exactly those layouts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tt2gl.analysis.access_formulas import AccessFormulas, Candidate
from tt2gl.analysis.amd_dots import EXCHANGED
from tt2gl.analysis.copied_rows import MOST_WIDTH, copied_row
from tt2gl.analysis.extents import named_dims, pointee_bits
from tt2gl.analysis.facts import Access, CallChain, LaunchFacts
from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.repeated_rows import repeated_rows
from tt2gl.analysis.terms import Term, root_of
from tt2gl.formulas import Tile, Width
from tt2gl.launches import Launch
from tt2gl.layouts import ACCESS_BITS, Blocked, coalesced, permuted
from tt2gl.matrix_layouts import read_blocked
from tt2gl.padded_layouts import direct_source
from tt2gl.tensor_memory_layouts import Linear, read_linear

ACCESSES = ("load", "store", "atomic")

_REARRANGED = ("opaque", "join", "split")
# Of a warp of NVIDIA's, and of RDNA's.
_LANES = 32


@dataclass(frozen=True)
class Scene:
    """One launch as analysis sees it."""

    launch: Launch
    facts: LaunchFacts
    graph: Graph
    lanes: int

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return self.launch.options.num_warps * self.lanes


@dataclass
class LayoutClass:
    """A layout with a name: its tile's extents as source, and the layout under each launch.

    `pointers`: the accesses that it serves. `label`: what it is to be called, where it serves none. `extent`: of a row
    that has the layout where the parameter is not below the number of threads, and else that of who reads it. `plain`:
    its source, where `source` is in words of who asked for it first.
    """

    dims: tuple[str, ...]
    layouts: dict[int, Any]
    pointers: list[str] = field(default_factory=list)
    source: str = ""
    exact: bool = True
    name: str = ""
    label: str = ""
    extent: str = ""
    plain: str = ""

    @property
    def rank(self) -> int:
        """Dimensions of the tile."""
        return len(self.dims)


class Classes:
    """The layout classes of a kernel, found once for all its launches.

    `flags`: what they ask of a launch, each with the arguments that are multiples of 16 where it holds.
    """

    def __init__(self, scenes: Sequence[Scene], staged: Collection[CallChain]) -> None:
        self.scenes, self.staged = scenes, staged
        self.launches = [scene.launch for scene in scenes]
        self.classes: list[LayoutClass] = []
        self.by_chain: dict[CallChain, LayoutClass] = {}
        self.anchored: set[CallChain] = set()
        self.exchanged: dict[CallChain, str] = {}
        self._large: dict[CallChain, frozenset[int]] = {}
        self.formulas = AccessFormulas(scenes)
        self.flags = self.formulas.flags
        for candidate in self._candidates():
            if self._is_of_product(candidate):
                # Stored as it comes from a product, or nearly, it takes that's layout.
                if width := self._exchanged(candidate):
                    self.exchanged[candidate.chain] = width
                continue
            made = self._class_for(candidate)
            self.by_chain[candidate.chain] = made
            if self._is_told_apart(candidate):
                made.extent = candidate.dims[0]
                self._large[candidate.chain] = frozenset(i for i, large in candidate.anchored.items() if large)
            if 2 * sum(candidate.anchored.values()) >= len(candidate.anchored):
                # Small and large under different launches: what most of them are.
                self.anchored.add(candidate.chain)

    def _is_of_product(self, candidate: Candidate) -> bool:
        """Whether a value is stored as a product leaves it under most launches: of those that are there, if it is."""
        known = [index for index in candidate.shapes if not self.launches[index].turned] or [*candidate.shapes]
        return 2 * len(candidate.products.intersection(known)) > len(known)

    def is_anchor(self, chain: CallChain, index: int) -> bool:
        """Whether an access keeps its own layout under a launch, or takes that of who reads it."""
        large = self._large.get(chain)
        return chain in self.anchored if large is None else index in large

    def _is_told_apart(self, candidate: Candidate) -> bool:
        """Whether a row is loaded that has an element for each thread under some launches, and a parameter says so.

        In kernels with tiles alone: there the row comes in a tile's layout, in which a thread has much of it, and
        loads that much of it for itself.
        """
        mixed = len({*candidate.anchored.values()}) == 2
        known = len(candidate.dims) == 1 and candidate.dims[0] in self.scenes[0].launch.constexprs
        return candidate.loaded and mixed and known and self._has_tiles

    @cached_property
    def _has_tiles(self) -> bool:
        """Whether a kernel has products, or other tiles, under any launch.

        Products alone where warps have 64 lanes: a convolution of 16-bit rows takes 95 registers for 80 by it on
        gfx942, where Triton's takes 77.
        """
        if any(scene.facts.lowered.dots for scene in self.scenes):
            return True
        wide = any(scene.lanes > _LANES for scene in self.scenes)
        return not wide and any(len(node.shape) > 1 for scene in self.scenes for node in scene.graph.nodes)

    def serves(self, term: Term) -> bool:
        """Whether a layout is an access's, or made of one."""
        name = root_of(term).name
        return any(known.name == name and known.pointers for known in self.classes)

    def default(self, node: Node, index: int) -> LayoutClass:
        """The class of a tile that no access decides: one of the same extents, else a row-major one for 4 bytes.

        Where nothing in a kernel of as many dimensions has a layout of its own, all stays as Triton's compiler makes
        tensors: a thread has one element of what lies side by side. No pass takes a row's layout for a tile's.
        """
        if (accessed := self.of_access(node, index)) is not None:
            return accessed
        dims = named_dims(node, self.launches, {index: node.shape})
        return self._row_major(dims, ACCESS_BITS if self.is_alone(len(dims)) else 32)

    def is_alone(self, rank: int) -> bool:
        """Whether nothing of as many dimensions has a layout of its own: no access, and no product.

        Nor what is reshaped, permuted, joined or split: such tiles get layouts of fewer dimensions.
        """
        if any(scene.facts.lowered.dots for scene in self.scenes):
            return False
        anchored = any(len(self.by_chain[chain].dims) >= rank for chain in self.anchored)
        return not self.anchored or not anchored and not self._rearranges

    @cached_property
    def _rearranges(self) -> bool:
        return any(node.kind in _REARRANGED for scene in self.scenes for node in scene.graph.nodes)

    def of_access(self, node: Node, index: int) -> LayoutClass | None:
        """The class of accesses to tiles of a node's extents, None where there is none."""
        dims = named_dims(node, self.launches, {index: node.shape})
        return next((known for known in self.classes if known.dims == dims and known.pointers), None)

    def is_own(self, found: LayoutClass) -> bool:
        """Whether an access of that class keeps its layout, and does not take that of who reads it."""
        return any(self.by_chain[chain] is found for chain in self.anchored)

    def of_product(self, tile: Node, axis: int | None, index: int) -> LayoutClass:
        """The class that a product's result is scanned in: down its columns, that before it had an instruction."""
        if axis != 0 or len(tile.shape) != 2:
            return self.default(tile, index)
        each = tile.elements // self.scenes[index].threads
        side = 4 if each >= 16 else 2 if each >= 4 else 1
        dims = named_dims(tile, self.launches, {index: tile.shape})
        said = f"[{', '.join(dims)}], [1, 0], {ACCESS_BITS // side}, gl.num_warps(), {64 // side}"
        return self._register(dims, {}, f"coalesced_blocks({said})", [])

    def spread(self, node: Node, index: int) -> LayoutClass:
        """The class of a row-major tile whose threads have one element each of what lies side by side."""
        return self._row_major(named_dims(node, self.launches, {index: node.shape}), ACCESS_BITS)

    def scattered(self, node: Node, index: int) -> LayoutClass:
        """The class of a tile whose threads lie along all dimensions but the last, which gets those that are left.

        So a thread has as many elements along the last as it can, and with pairs the most steps of a transform.
        """
        scene, rank = self.scenes[index], len(node.shape)
        order = [*reversed(range(rank - 1)), rank - 1]
        own = coalesced(node.shape, order, ACCESS_BITS, scene.launch.options.num_warps, scene.lanes)
        dims = named_dims(node, self.launches, {index: node.shape})
        return self._register(dims, {index: own}, _coalesced_source(dims, order, str(ACCESS_BITS)), [])

    def has_lines(self, name: str, axis: int, index: int) -> bool:
        """Whether the layout of that key has whole lines along `axis` in each warp."""
        layouts = (known.layouts.get(index) for known in self.classes if known.name == name)
        return any(isinstance(layout, Blocked) and layout.warps_per_cta[axis] == 1 for layout in layouts)

    def repeats(self, name: str, axis: int) -> bool:
        """Whether a thread has several elements along `axis` in the layout of that key, under any launch."""
        known = (layout for each in self.classes if each.name == name for layout in each.layouts.values())
        return any(isinstance(layout, Blocked) and layout.size_per_thread[axis] > 1 for layout in known)

    def is_permuted(self, name: str, other: str, order: Sequence[int]) -> bool:
        """Whether a value in the layout of one key has that of another once its dimensions are in this order."""
        one, two = (next((each.layouts for each in self.classes if each.name == key), {}) for key in (name, other))
        return bool(one) and one.keys() == two.keys() and all(permuted(one[at], order) == two[at] for at in one)

    def has_neighbours(self, name: str, axis: int, count: int) -> bool:
        """Whether threads have neighbours along `axis` by so many in the layout of that key, under all launches."""
        known = [layout for each in self.classes if each.name == name for layout in each.layouts.values()]
        return all(
            isinstance(one, Blocked) and one.size_per_thread[axis] % count == 0 == one.order.index(axis)
            for one in known
        )

    def lines(self, tile: Node, axis: int, index: int) -> str | None:
        """The key of the class of a tile of which each warp has whole lines along `axis`, spread over its lanes.

        What is gathered along it then comes from other lanes (Triton's pass OptimizeThreadLocality). None where there
        are more warps than lines, or a thread would have more elements of one than the formula can say.
        """
        scene, extent = self.scenes[index], tile.shape[axis]
        if tile.elements < extent * scene.launch.options.num_warps or extent > ACCESS_BITS * scene.lanes:
            return None
        dims = named_dims(tile, self.launches, {index: tile.shape})
        said = f"{ACCESS_BITS * scene.lanes} // max({dims[axis]}, {scene.lanes})"
        bits = str(ACCESS_BITS * scene.lanes // max(extent, scene.lanes)) if dims[axis].isdigit() else said
        order = [axis, *(dim for dim in reversed(range(len(dims))) if dim != axis)]
        return self.named(dims, {}, _coalesced_source(dims, order, bits), True, "gather_layout")

    def _row_major(self, dims: tuple[str, ...], bits: int) -> LayoutClass:
        return self._register(dims, {}, _coalesced_source(dims, list(reversed(range(len(dims)))), str(bits)), [])

    def _candidates(self) -> list[Candidate]:
        found: dict[CallChain, Candidate] = {}
        for index, scene in enumerate(self.scenes):
            repeated = repeated_rows(scene.graph, scene.threads)
            for node in scene.graph.nodes:
                if node.kind not in ACCESSES or node.tile:
                    continue
                known = found.get(node.chain)
                if known is None:
                    known = found[node.chain] = Candidate(
                        node.chain, (), node.pointer, {}, {}, {}, set(), bool(node.site.context)
                    )
                known.shapes[index] = node.shape
                known.loaded = node.kind == "load"
                if (stored := scene.facts.lowered.stores.get(node.chain)) is not None:
                    known.products.add(index)
                    known.exchanged |= {index} if stored.name == EXCHANGED else set()
                known.anchored[index] = node.elements >= scene.threads and id(node) not in repeated
                if (access := scene.facts.accesses.get(node.chain)) is not None:
                    known.accesses[index] = access
                known.dims = named_dims(node, self.launches, known.shapes)
        return list(found.values())

    def _class_for(self, candidate: Candidate) -> LayoutClass:
        pointers = [candidate.pointer or ""]
        if direct := self._direct(candidate):
            tile = Tile(candidate.dims, tuple(candidate.shapes[index] for index in direct))
            launches = [self.scenes[index].launch for index in direct]
            widths = [Width(text, tuple(map(bits, launches))) for text, bits in self.formulas.widths(candidate)]
            warps = [launch.options.num_warps for launch in launches]
            said = direct_source(list(direct.values()), tile, widths, warps)
            return self._register(candidate.dims, direct, said.source, pointers, said.exact)
        if candidate.chain in self.staged and (rows := self._rows(candidate)):
            layouts, source = rows
            return self._register(candidate.dims, layouts, source, pointers)
        layouts = {index: self._layout(candidate.chain, index, access) for index, access in candidate.accesses.items()}
        if not layouts and (first := self._made_before(candidate)) is not None:
            return first
        source, exact = self.formulas.formula(candidate, layouts)
        return self._register(candidate.dims, layouts, source, pointers, exact)

    def _made_before(self, candidate: Candidate) -> LayoutClass | None:
        """The class of an access that Triton's compiler makes of an earlier one under all launches, as CSE does."""
        earlier = (known for known in self.classes if known.dims == candidate.dims)
        return next((known for known in earlier if candidate.pointer in known.pointers), None)

    def _rows(self, candidate: Candidate) -> tuple[dict[int, Any], str] | None:
        """The layouts of a row that is copied as one of many, where it is so under all launches, and their source."""
        for text, bits in self.formulas.widths(candidate):
            found = {
                index: copied_row(self.scenes[index], candidate.chain, shape, bits(self.launches[index]))
                for index, shape in candidate.shapes.items()
            }
            if found and None not in found.values():
                dims = f"{MOST_WIDTH * self.scenes[0].lanes} * gl.num_warps(), {candidate.dims[1]}"
                return found, f"coalesced([{dims}], [1, 0], {text}, gl.num_warps())"
        return None

    def _direct(self, candidate: Candidate) -> dict[int, Linear]:
        """The layouts of tiles that waves copy directly to padded LDS, where all launches have such; else nothing."""
        found: dict[int, Linear] = {}
        for index in candidate.accesses if candidate.chain in self.staged else ():
            ring = self.scenes[index].facts.lowered.rings.get(candidate.chain)
            if ring is None or not ring.direct or getattr(ring.copied, "name", "") != "ttg.linear":
                return {}
            layout = read_linear(ring.copied, candidate.shapes[index])
            assert layout is not None
            found[index] = layout
        return found

    def _layout(self, chain: CallChain, index: int, access: Access) -> Blocked:
        """The layout of an access: where Triton copies narrower pieces than it would load, as its copy.

        A slot that is swizzled by pieces smaller than a thread's would take those one after the other, and threads side
        by side would copy pieces that are not (Triton's pass CoalesceAsyncCopy).
        """
        turned = read_blocked(self.scenes[index].facts.lowered.turned.get(chain))
        loaded = Blocked(access.size_per_thread, access.threads_per_warp, access.warps_per_cta, access.order)
        ring = self.scenes[index].facts.lowered.rings.get(chain) if chain in self.staged else None
        copied = read_blocked(ring.copied) if ring is not None else None
        if copied is None or copied.order != loaded.order:
            return turned if turned is not None and turned.order == loaded.order else loaded
        if ring is not None and ring.registers:
            return copied
        fastest = loaded.order[0]
        return copied if copied.size_per_thread[fastest] < loaded.size_per_thread[fastest] else loaded

    def named(
        self, dims: tuple[str, ...], layouts: Mapping[int, Any], source: str, exact: bool, label: str, plain: str = ""
    ) -> str:
        """The key of a class that serves no access: one of that source, or a new one called `label`.

        `plain`: the source that tells whether two are one, where `source` is in words of who asked for it first.
        """
        plain = plain or source
        for known in self.classes:
            shared = known.layouts.keys() & layouts.keys()
            if known.label and known.plain == plain and all(known.layouts[i] == layouts[i] for i in shared):
                if known.source != source and layouts.keys() - shared:
                    # Those words are right under the launches that they were chosen for.
                    known.source = plain
                known.layouts.update(layouts)
                return known.name
        made = LayoutClass(dims, dict(layouts), [], source, exact, f"L{len(self.classes)}", label, plain=plain)
        self.classes.append(made)
        return made.name

    def _register(
        self,
        dims: tuple[str, ...],
        layouts: dict[int, Any],
        source: str,
        pointers: list[str],
        exact: bool = True,
    ) -> LayoutClass:
        """The class written as `source`, one of equal layouts on all launches that have both, or a new one.

        Of two exact sources, the one that was made for more launches is right for those of the other.
        """
        for known in self.classes:
            shared = known.layouts.keys() & layouts.keys()
            same = bool(shared) and all(known.layouts[i] == layouts[i] for i in shared)
            more = bool(layouts.keys() - shared)
            same = same and not (exact and more and known.layouts.keys() - shared)
            if known.dims == dims and known.exact == exact and (known.source == source or same):
                known.source = source if exact and more else known.source
                known.layouts = {**layouts, **known.layouts}
                known.pointers.extend(p for p in pointers if p not in known.pointers)
                return known
        made = LayoutClass(dims, layouts, pointers, source, exact, f"L{len(self.classes)}")
        self.classes.append(made)
        return made

    def _exchanged(self, candidate: Candidate) -> str:
        """Bits of what a product's lanes exchange for a store, as source; none where they do so under no launch.

        The text of a helper has no names for them: there the launches decide that are more.
        """
        pointer = candidate.pointer
        named = pointer is not None and all(pointee_bits(launch, pointer) for launch in self.launches)
        if candidate.exchanged and named and not candidate.inlined:
            return f"{pointer}.dtype.element_ty.primitive_bitwidth"
        return "16" if 2 * len(candidate.exchanged) >= len(candidate.products) else ""


def _coalesced_source(dims: Sequence[str], order: Sequence[int], bits: str) -> str:
    return f"coalesced([{', '.join(dims)}], {list(order)}, {bits}, gl.num_warps())"
