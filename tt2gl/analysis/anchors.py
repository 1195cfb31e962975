"""What has a layout of its own: anchors, and what follows from them.

Layouts (`natural`) flow forward from the global accesses through elementwise work, slices, reductions and names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tt2gl.analysis.cheap import is_loaded_ahead, last_tile, row_of_step, tile_in_ring
from tt2gl.analysis.flowing_first import flowing_first, of_tiles
from tt2gl.analysis.gathers import gathered, whole_lines
from tt2gl.analysis.graph import Node
from tt2gl.analysis.held_pairs import as_they_come, is_of_pairs, loaded_in_pairs
from tt2gl.analysis.joins import in_pairs, is_awaited, merged_pairs, pair_of, stacked, unpaired
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import (
    RESHAPES,
    follows,
    in_other_rank,
    inferred_reshape,
    is_computed,
    is_computed_with,
    is_idle,
    is_large_enough,
    is_named_reshape,
    is_of_several,
    is_reshaped_back,
    is_reshaped_next,
    reduced,
    reshaped,
    unnamed,
)
from tt2gl.analysis.rows_of_sums import in_a_row
from tt2gl.analysis.scanned_products import is_awaited_row, meets_product, of_rows
from tt2gl.analysis.split_arguments import anchor_split_argument
from tt2gl.analysis.stored_alike import mark_stored_alike
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import Cut, Inferred, Pair, Reshaped, Root, Term, Turned, Widened, base_of, doubled, expanded
from tt2gl.analysis.transform_steps import is_of_step, is_step, passed_on
from tt2gl.analysis.transpositions import anchor_turned_sum, as_turned, is_narrowed, transposed_for_products
from tt2gl.analysis.wanted_layouts import WantedLayouts

# Two: what is as large as a result and has no layout yet is waited for; one: but not where another as large has one.
_MOST_PATIENCE = 2
_OF_DOT = 2


class Anchors:
    """Finds the natural layouts of one launch's graph."""

    def __init__(self, scene: Scene, index: int, classes: Classes, cores: TensorCores) -> None:
        self.scene, self.index, self.classes, self.cores = scene, index, classes, cores
        self.graph = scene.graph
        self.patience, self.is_last = _MOST_PATIENCE, False

    def is_anchor(self, node: Node) -> bool:
        """Whether a global access has a layout of its own in this launch."""
        return self.classes.is_anchor(node.chain, self.index)

    def find_naturals(self) -> None:
        """Flow layouts forward from the anchors until nothing changes; deepest definitions decide a name's."""
        mark_stored_alike(self.graph, self.readers, self.access_root, self.scene.lanes)
        while True:
            self._flow()
            self.patience, self.is_last = _MOST_PATIENCE, False
            undecided = [
                (definition.depth, -place, natural, web)
                for place, web in enumerate(self.graph.distinct_webs())
                if web.natural is None and any(definition.node.natural is not None for definition in web.definitions)
                for definition in web.definitions
                if (natural := self._prospect(definition.node)) is not None and not isinstance(natural, Inferred)
            ]
            if not undecided:
                anchored = self._flow_on() or anchor_turned_sum(self.graph) or self._anchor_reduction()
                if not (anchored or self._anchor_loaded_ahead() or anchor_split_argument(self.graph, self.readers)):
                    return
                continue
            _, _, natural, web = max(undecided, key=lambda entry: entry[:2])
            web.natural = natural

    def _prospect(self, node: Node, above: frozenset[int] = frozenset()) -> Term | None:
        """The layout that a value has, or will have by those of its operands that have one; `above`: what asks."""
        if node.natural is not None or id(node) in above:
            return node.natural
        above |= {id(node)}
        if node.kind == "read" and node.web is not None:
            made = node.web.find().definitions
            return self._prospect(made[0].node, above) if len(made) == 1 else None
        if node.function == "gather":
            return whole_lines(node, self.classes, self.index)
        if node.kind != "elementwise":
            return None
        return self._largest(node, {id(operand): self._prospect(operand, above) for operand in node.operands})

    def _anchor_reduction(self) -> bool:
        """Give the first reduction or scan of values without a layout its tile's or row's; by a product, that one's."""
        for node in self.graph.nodes:
            undecided = node.kind in ("reduce", "scan") and node.shape and node.natural is None
            if undecided and all(operand.natural is None for operand in node.operands):
                tile = node.operands[0]
                if (row := row_of_step(tile, self.scene)) is not None:
                    row.natural = self.access_root(row)
                    return True
                meets = node.kind == "scan" and meets_product(node, self.readers, self._is_of_dot)
                own = Root(self.classes.of_product(tile, node.axis, self.index).name) if meets else self.default(tile)
                node.operand_term = own
                node.natural = own if node.kind == "scan" else reduced(node, own)
                return node.natural is not None
        return False

    def _anchor_loaded_ahead(self) -> bool:
        """Give the first name that a loop loads for its next turn, and that has no layout, the default one of its tile.

        In its reader's, what is loaded would be waited for right there, to be converted, and not where it is read.
        """
        for web in self.graph.distinct_webs():
            if web.natural is None and not web.cheap and is_loaded_ahead(web):
                web.natural = self.default(web.definitions[0].node)
                return True
        return False

    def _flow_on(self) -> bool:
        """Flow layouts forward with less patience, as little less as has an effect; whether any had."""
        for patience, self.is_last in ((1, False), (0, False), (0, True)):
            self.patience = patience
            if self._flow():
                return True
        return False

    def _flow(self) -> bool:
        """Flow layouts forward until nothing changes; whether anything did."""
        changed, ever = True, False
        while changed:
            changed = False
            for node in self.graph.nodes:
                if node.natural is None and (natural := self._natural(node)) is not None:
                    node.natural, changed = natural, True
            for web in self.graph.distinct_webs():
                if web.natural is None and len(web.definitions) == 1:
                    web.natural = web.definitions[0].node.natural
                    changed |= web.natural is not None
            ever |= changed
        return ever

    def _natural(self, node: Node) -> Term | None:
        if not self.cores.dots and (held := as_they_come(node, self.readers, self.classes)) is not None:
            return held
        match node.kind:
            case "atomic":
                return self.access_root(node)
            case "load":
                return self.access_root(node) if node.anchored else None
            case "dot":
                return self.cores.accumulator(node)
            case "descriptor":
                return self.cores.descriptor(node)
            case "elementwise":
                return in_a_row(node, self._strongest(node), self.readers, self.classes, self.index)
            case "expand":
                return expanded(node.operands[0].natural, node.axis)
            case "reduce":
                if node.shape and is_of_several(node):
                    node.operand_term = self.default(node.operands[0])
                return reduced(node, node.operand_term or node.operands[0].natural)
            case "scan":
                return self._scanned(node)
            case "join" if self.patience and all(is_awaited(each, bool(self.cores.dots)) for each in node.operands):
                return None
            case "join" if not self.is_last and not self.cores.dots and is_of_step(node, self.readers):
                return None
            case "join":
                return self.paired(node)
            case "opaque" if node.function == "cat":
                return None
            case "opaque" if (rows := stacked(node, self.readers)) is not None:
                return rows
            case "opaque" | "split" if (inferred := self._inferred(node)) is not None:
                return inferred
            case "split":
                whole = loaded_in_pairs(node, self.classes) or pair_of(node.operands[0]) or self._pairs(node)
                return Cut(len(node.shape), whole) if whole is not None else None
            case "opaque" if node.order == (1, 0):
                return self._turned(node) if self.cores.dots else as_turned(node, self.readers)
            case "opaque" if node.order and not self.cores.dots and self.readers.lead_to(node, is_reshaped_next):
                own = node.operands[0].natural
                return Inferred(own, f"{node.function} {node.order}") if isinstance(own, Root | Reshaped) else None
            case "opaque" if node.function == "interleave":
                return None if node.cheap else self._interleaved(node)
            case "opaque" if (single := unpaired(node.operands[0].natural, merged_pairs(node))) is not None:
                return self.doubled(single, node, merged_pairs(node))
            case "opaque" if node.function == "gather":
                waits = self.patience and node.operands[0].natural is None and not node.operands[0].cheap
                return None if waits else gathered(node, self.classes, self.index)
            case "opaque" if node.function in RESHAPES:
                return self._reshaped(node)
            case "read":
                return node.web.find().natural if node.web else None
            case "call" | "argument":
                return node.value.natural if node.value else None
        return None

    def _reshaped(self, node: Node) -> Term | None:
        """The layout in which threads keep what they loaded or gathered when it is reshaped, as Triton leaves it.

        Beside products that is known of what is computed, and of rows. Pairs that no thread has whole lie as what parts
        them; those that were joined, and are computed with next, stay where they are.
        """
        operand, own = node.operands[0], node.operands[0].natural
        passes = not self.cores.dots or is_computed(operand)
        tile = last_tile(operand, self.scene, self.is_anchor) if own is None and passes else None
        own = self.access_root(tile) if tile is not None else own
        if is_idle(node) and not isinstance(own, Inferred):
            return own
        if isinstance(own, Inferred) and own.of_shape == node.shape:
            return own.parent
        if (other := in_other_rank(node, own, self.readers)) is not None:
            return other
        if isinstance(own, Cut) and None in (*node.dims, *operand.dims):
            return inferred_reshape(node, own)
        if isinstance(own, Pair) and is_named_reshape(node) and self.readers.lead_to(node, is_computed_with):
            return reshaped(node, own, self.scene.launch)
        if not isinstance(own, Root | Reshaped | Turned | Widened):
            return None
        passes |= isinstance(own, Reshaped | Turned | Widened)
        if own != operand.operand_term and not (passes and self.classes.serves(own)):
            return None
        if (pairs := in_pairs(node, own, self.classes)) is not None:
            return pairs
        if None in (*node.dims, *operand.dims):
            return inferred_reshape(node, own)
        back = is_reshaped_back(node, own, self.scene.launch)
        return reshaped(node, own, self.scene.launch) if back or node.shape[-1] != 2 else None

    def _turned(self, node: Node) -> Term | None:
        """The layout of a product's transposition, on NVIDIA also of one that products alone read; None elsewhere."""
        operand, natural = node.operands[0], node.operands[0].natural
        if not isinstance(natural, Root):
            return None
        if operand.kind == "dot":
            is_blocked = self.cores.dots[operand.chain].instruction not in ("wgmma", "mma_v2", "mfma", "wmma")
            return Turned(natural, () if is_blocked else operand.dims_known)
        if id(node) in self._transposed and not self.cores.is_accumulator(natural):
            return Inferred(natural, f"{node.function} {node.order}")
        return None

    @cached_property
    def _transposed(self) -> set[int]:
        return transposed_for_products(self.graph)

    def is_kept(self, node: Node) -> bool:
        """Whether Triton leaves a value in the layout that follows from a product's, under every launch.

        What takes a sum apart by its columns is gone where Triton loads those from tensor memory. A sum that is turned
        is kept so where it is stored alone, in fewer bits: those are converted, and not the sum.
        """
        said = [scene.facts.lowered.inferred.get(node.chain) for scene in self.cores.scenes]
        kept = True in said or self.cores.in_parts(node.operands[0].natural)
        if not kept or False in said:
            return False
        return node.order != (1, 0) or is_computed(node.operands[0]) or is_narrowed(node, self.readers)

    def _inferred(self, node: Node) -> Term | None:
        """The layout that the compiler infers for a product taken apart, where Triton leaves it in that."""
        natural = node.operands[0].natural
        if not self.is_kept(node) or isinstance(natural, Inferred) and natural.of_shape == node.shape:
            return None if self.cores.dots else passed_on(node, self.readers)
        if isinstance(natural, Inferred):
            return Inferred(natural.parent, f"{natural.how}, {node.function or node.kind} {node.order}")
        if isinstance(natural, Root | Reshaped) and self.cores.is_accumulator(natural):
            if is_named_reshape(node) and id(node) not in self._unnamed:
                return reshaped(node, natural, self.scene.launch)
            return Inferred(natural, f"{node.function or node.kind} {node.order}")
        return None

    @cached_property
    def _unnamed(self) -> set[int]:
        return unnamed(self.graph)

    def _scanned(self, node: Node) -> Term | None:
        """The layout of a scan, and of all that it takes: only blocked ones are, so no dot's and no slice is."""
        natural = next((each.natural for each in node.operands if each.natural is not None), None)
        if natural is not None and self.cores.is_accumulator(natural):
            natural = Root(self.classes.of_product(node.operands[0], node.axis, self.index).name)
        elif isinstance(natural, Cut | Inferred | Reshaped):
            natural = self.default(node.operands[0])
        node.operand_term = natural
        return natural

    def paired(self, join: Node) -> Term:
        """The layout of two such values joined: one of them with a last dimension of two, or what was split before.

        Where nothing says how they are held, it is as what is made of them is wanted.
        """
        match self._prospect(join.operands[0]):
            case Cut(dim=dim, parent=whole) if dim == len(join.shape) - 1 and is_of_pairs(whole, dim + 1, self.classes):
                return whole
            case Root() | Widened() | Pair() as known:
                return Pair(known)
        return self._by_readers.of_join(join) or Pair(self.default(join.operands[0]))

    @cached_property
    def readers(self) -> Readers:
        """Who reads what in the graph."""
        return Readers(self.graph)

    @cached_property
    def _by_readers(self) -> WantedLayouts:
        return WantedLayouts(self.readers, self.classes)

    def _interleaved(self, node: Node) -> Term | None:
        """The layout of values interleaved: of one of them with twice as many elements, as that of a tile loaded."""
        known = (each.natural if each.natural is not None else self._ring_root(each) for each in node.operands)
        first = next((each for each in known if each is not None), None)
        return self.doubled(first, node) if first is not None else None

    def doubled(self, term: Term, node: Node, times: int = 1) -> Term | None:
        """The layout of a value that has two elements side by side for each that another has in `term`; `times` so."""
        made = None if self.cores.is_accumulator(term) else term
        for _ in range(times):
            made = doubled(made, len(node.shape) - 1) if made is not None else None
        return made

    def _ring_root(self, node: Node) -> Term | None:
        """The layout that a tile was copied in to the ring that it is read from; None for other and small values."""
        tile = tile_in_ring(node)
        return self.access_root(tile) if tile is not None and self.is_anchor(tile) else None

    def _strongest(self, node: Node) -> Term | None:
        """The layout of the largest operand, unless one as large is still to get its own, as it is computed once."""
        large = [operand for operand in node.operands if operand.elements == node.elements and not operand.cheap]
        waits = any(operand.natural is None for operand in large)
        whole = any(operand.natural is not None and operand.elements == node.elements for operand in node.operands)
        if waits and self.patience > whole or self.patience and is_awaited_row(node, self._is_of_dot):
            return None
        known = [(operand.elements, operand.natural) for operand in node.operands]
        node.weighed = tuple((elements, natural) for elements, natural in known if natural is not None)
        return self._largest(node, {id(operand): operand.natural for operand in node.operands})

    def _largest(self, node: Node, layouts: Mapping[int, Term | None]) -> Term | None:
        """The layout of the largest operand, which costs most to convert; of equal ones a dot's, then one as loaded.

        Of a tile's sums and what was loaded, Triton takes that of the last, which flows on first. So it does where dots
        have their results in tensor memory. Not where other tiles meet: dequantisation took 94 registers for 71.
        """
        shaped = [operand for operand in node.operands if operand.shape]
        known = [
            (operand.elements, self._weight(layout), layout, operand)
            for operand in shaped
            if (layout := layouts[id(operand)]) is not None and len(operand.shape) == len(node.shape)
            # What has no name is taken by nothing else.
            if not isinstance(layout, Inferred) or all(follows(other, layouts[id(other)], layout) for other in shaped)
            if operand.elements == node.elements or is_large_enough(layout, node, self.scene.launch)
        ]
        if not known:
            return None
        most = max(each[:2] for each in known)
        equal = [(layout, operand) for elements, weight, layout, operand in known if (elements, weight) == most]
        if (row := of_rows(shaped, [each for _, each in equal], self._is_of_dot)) is not None:
            return row
        if any(self.cores.is_loaded(layout) for layout, _ in equal):
            return flowing_first(equal, self.graph.nodes, self.cores.scenes[self.index].facts.lowered.places)
        return equal[0][0] if most[1] == _OF_DOT else of_tiles(equal, node, self.graph.nodes)

    def _is_of_dot(self, layout: Term) -> bool:
        return self._weight(layout) == _OF_DOT

    def _weight(self, layout: Term) -> int:
        """Which of two layouts a value of as many elements takes: a dot's, else one that was not reshaped."""
        if self.cores.is_accumulator(layout) and not self.cores.is_loaded(layout):
            return _OF_DOT
        return 0 if isinstance(base_of(layout), Reshaped) else 1

    def _pairs(self, split: Node) -> Pair | None:
        """The layout of what is split, in the end: of its halves as they are wanted, else a default one."""
        natural = split.operands[0].natural
        if self.cores.dots or not isinstance(natural, Inferred | None):
            awaited = self.patience and natural is None and self.is_kept(split)
            return None if awaited else Pair(self.default(split))
        wanted = None if self.patience else self._by_readers.of_split(split)
        if wanted is not None or not self.is_last:
            return wanted
        # What a step gives is known before the next one is asked for.
        self.is_last = not is_step(split, self.readers)
        apart = not self.is_last and split.elements > self.scene.threads
        return Pair(Root(self.classes.scattered(split, self.index).name) if apart else self.default(split))

    def access_root(self, node: Node) -> Term:
        """The layout that a global access has by itself."""
        return Root(found.name) if (found := self.classes.by_chain.get(node.chain)) else self.default(node)

    def default(self, node: Node) -> Term:
        """A layout for a value that nothing decides."""
        return Root(self.classes.default(node, self.index).name)

    def spread(self, node: Node) -> Term:
        """A layout with neighbours in neighbouring threads."""
        return Root(self.classes.spread(node, self.index).name)
