"""The layouts that dots and rings ask for, under names: accumulators, operands in shared memory, rings of buffers.

What each launch's layouts are, Triton's own compiler says (`analysis.lowered`); they are written as formulas of the
kernel's constexprs where one gives exactly those.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from functools import partial

from tt2gl.analysis.decisions import Passed
from tt2gl.analysis.depths import stages
from tt2gl.analysis.dot_formulas import Extent, Formulas, Layouts, Shapes
from tt2gl.analysis.extents import named_dims, pointee
from tt2gl.analysis.facts import CallChain, DotFact, DotOperandFact, RingFact
from tt2gl.analysis.frames import Unsupported
from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.idle_casts import forget_busy
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.naming import stem
from tt2gl.analysis.passed_operands import laid_out_as
from tt2gl.analysis.scalar_rings import ScalarLoad
from tt2gl.analysis.terms import Root, Stored, Term, root_of
from tt2gl.analysis.transpositions import as_it_comes, other_way
from tt2gl.analysis.uses import (
    LOOKED_UP_SHARED,
    DotUse,
    RingUse,
    are_alike,
    either,
    fact_of,
    lies_as_taken,
    loaded_from,
    names_in,
    ring_of,
    stages_of,
)
from tt2gl.formulas import Written
from tt2gl.names import unused
from tt2gl.stages import Stages
from tt2gl.tensor_memory_layouts import packed_rows


class TensorCores:
    """Dots and rings of a kernel, found once for all its launches; loads in order (`in_order`) have no ring."""

    def __init__(
        self,
        classes: Classes,
        staged: Collection[CallChain],
        held: Collection[CallChain] = frozenset(),
        in_order: Collection[CallChain] = frozenset(),
    ) -> None:
        self.classes, self.scenes = classes, classes.scenes
        self.formulas = Formulas(self.scenes)
        self.dots: dict[CallChain, DotUse] = {}
        self.rings: dict[CallChain, RingUse] = {}
        self.descriptors: dict[CallChain, dict[int, Node]] = {}
        self._accumulators: set[str] = set()
        self._loaded: set[str] = set()
        self._in_parts: set[str] = set()
        forget_busy(self.scenes)
        for index, scene in enumerate(self.scenes):
            names = names_in(scene.graph)
            for node in scene.graph.nodes:
                node.staged = node.kind == "load" and (node.chain in staged or bool(node.tile))
                if node.kind == "dot":
                    if (fact := fact_of(node, scene)) is None:
                        what = "a matrix product that Triton's compiler drops, or makes something else of"
                        raise Unsupported("TTG302", what, (node.site.function[0], *node.site.position[:2]))
                    dot = self.dots.setdefault(node.chain, DotUse(node, names.get(id(node), "dot")))
                    dot.facts[index], dot.shapes[index] = fact, node.shape
                elif node.kind == "descriptor":
                    self.descriptors.setdefault(node.chain, {})[index] = node
                elif node.chain not in in_order and (ring := ring_of(node, scene, held)) is not None:
                    if node.chain not in self.rings:
                        self.rings[node.chain] = RingUse(node, self._ring_name(node, ring, names, index))
                    use = self.rings[node.chain]
                    use.facts[index], use.shapes[index] = ring, node.shape

    def _ring_name(self, node: Node, ring: RingFact, names: dict[int, str], index: int) -> str:
        """What a ring is called: as the variable its tile becomes, else as the pointer it is loaded from.

        Loads of one variable, extent, type and layout share a ring where one turn of a loop takes only one of them.
        """
        name = names.get(id(node)) or stem(node.function) or "tile"
        beside = {
            use.name
            for use in self.rings.values()
            if use.node.site.function == node.site.function
            and use.node.site.position != node.site.position
            and (
                use.node.site.statement == node.site.statement
                or not are_alike(use, node, index)
                or (use.node.loop is not node.loop and use.kinds != {ring.layout.name})
                or any(pointee(each, use.node.pointer) != pointee(each, node.pointer) for each in self.classes.launches)
                or (
                    index in use.facts
                    and (
                        use.facts[index].layout != ring.layout
                        or (use.node.loop is node.loop and not either(use.node, node))
                    )
                )
            )
        }
        return unused(name, beside)

    def stages(self, taken: Set[str], scalars: Collection[ScalarLoad] = ()) -> Stages | None:
        """How deep Triton pipelines the kernel's loops (`depths`); None if it does not."""
        rings, memory = self.rings.values(), self._all_in_tensor_memory()
        return stages(rings, scalars, self.scenes, taken, released=self.released, in_tensor_memory=memory)

    @property
    def released(self) -> bool:
        """Whether products are done with their tiles at once, as `plan.Dot.ends_at_once` has it."""

        def at_once(use: DotUse) -> bool:
            scaled = use.node.dot.scaled if use.node.dot is not None else None
            said = {fact.instruction for fact in use.facts.values()}
            return said == {"tcgen05_scaled"} or said == {"tcgen05"} and scaled is not None and scaled.turned

        return bool(self.dots) and all(map(at_once, self.dots.values()))

    def held(self, node: Node) -> RingUse | None:
        """The tiles of a load that wait in registers until they are read; None for other values."""
        use = self.rings.get(node.chain) if node.kind == "load" else None
        return use if use is not None and use.held else None

    def ends_at_once(self, ring: RingUse | None) -> bool:
        """Whether products are done with a ring's tiles in the iteration that reads them.

        So it is where Triton gives it a slot less than others of its loop let loads run ahead with.
        """
        if ring is None or not ring.in_memory:
            return False
        deeper = {index: fact.buffers + 1 for index, fact in ring.facts.items()}
        beside = [each.facts for each in self.rings.values() if each.node.loop is ring.node.loop and each is not ring]
        return any(all(i in facts and stages_of(facts[i]) == depth for i, depth in deeper.items()) for facts in beside)

    def extents(self, node: Node, graph: Graph) -> tuple[str, ...]:
        """The extents of a dot's result as source that is right under every launch."""
        return self.spelled(node, graph, self.dots[node.chain].shapes)

    def dims(self, node: Node, shapes: Shapes) -> tuple[str, ...]:
        """A value's extents as source, by what it has in each launch."""
        return named_dims(node, self.classes.launches, shapes)

    def spelled(self, node: Node, graph: Graph, shapes: Shapes) -> tuple[str, ...]:
        """A value's extents in the words of its function: in a kernel, those that every launch agrees with."""
        in_helper = (node.site.function, node.site.context) in graph.words
        return graph.spelled(node) if in_helper else self.dims(node, shapes)

    def _all_in_tensor_memory(self) -> bool:
        """Whether there are dots, and all have their accumulators in tensor memory."""
        return bool(self.dots) and all(
            fact.memory is not None for use in self.dots.values() for fact in use.facts.values()
        )

    def is_accumulator(self, term: Term) -> bool:
        """Whether a layout is a dot's."""
        return root_of(term).name in self._accumulators

    def is_loaded(self, term: Term) -> bool:
        """Whether a layout is of registers that a dot's result is loaded into from tensor memory."""
        return root_of(term).name in self._loaded

    def in_parts(self, term: Term | None) -> bool:
        """Whether a layout is of registers that a dot's result is loaded into columns at a time; None may become so."""
        return bool(self._in_parts) if term is None else root_of(term).name in self._in_parts

    def accumulator(self, node: Node) -> Root:
        """The layout of a dot's result."""
        use = self.dots[node.chain]
        dims, layouts, said = self._sum(use)
        if not said.exact:
            # Triton may have given a product the layout of the next of its chain, which says what this tile does not.
            alike = (
                other
                for other in self.dots.values()
                if all(i in other.facts and other.facts[i].accumulator == each for i, each in layouts.items())
            )
            use = next((other for other in alike if self._sum(other)[2].exact), use)
            dims, layouts, said = self._sum(use)
        label = "mma_layout" if len(self.dots) == 1 else f"{use.name}_layout"
        name = self.classes.named(dims, layouts, said.source, said.exact, label)
        self._accumulators.add(name)
        if all(fact.memory is not None for fact in use.facts.values()):
            self._loaded.add(name)
        if any(fact.in_parts for fact in use.facts.values()):
            self._in_parts.add(name)
        return Root(name)

    def _sum(self, use: DotUse) -> tuple[tuple[str, ...], Layouts, Written]:
        """The extents of a dot's result, its layout under each launch, and how that is written."""
        layouts = {index: fact.accumulator for index, fact in use.facts.items()}
        dims = self.dims(use.node, use.shapes)
        return dims, layouts, self.formulas.written(dims, use.shapes, layouts, inner=self._inner(use.node))

    def k_width(self, node: Node, operand: int, said: Callable[[str], str] = str) -> str:
        """How many elements along K a thread has side by side, as source; `said`: what flags are called there."""
        taken = {i: self._operand(fact, operand) for i, fact in self.dots[node.chain].facts.items()}
        # Launches under which the operand stays in memory say none.
        widths = {i: each.layout.get("kWidth", 0) for i, each in taken.items() if not each.in_memory}
        return self.formulas.k_width(widths or dict.fromkeys(taken, 0), self._inner(node), said)

    def _inner(self, node: Node) -> Extent:
        """The extent that a product adds up along."""
        shapes = {index: fact.a.shape for index, fact in self.dots[node.chain].facts.items()}
        return self.dims(node.operands[0], shapes)[-1], {i: shape[-1] for i, shape in shapes.items()}

    def in_memory(self, node: Node, operand: int) -> bool:
        """Whether a dot takes an operand from shared memory."""
        taken = [self._operand(fact, operand) for fact in self.dots[node.chain].facts.values()]
        return all(fact.in_memory and fact.registers is None for fact in taken)

    def converted_width(self, node: Node, operand: int) -> int:
        """How many elements along K a thread has side by side of an operand that comes in registers by a conversion.

        0 for other operands, and where it comes otherwise under other launches.
        """
        taken = [self._operand(fact, operand) for fact in self.dots[node.chain].facts.values()]
        if any(fact.in_memory or fact.registers is not None or fact.reloaded is not None for fact in taken):
            return 0
        return min(int(fact.layout.get("kWidth", 0)) for fact in taken)

    def read_in_place(self, node: Node, operand: int, slot: Node) -> bool:
        """Whether a product may take a tile where its ring has it, which is then laid out for that."""
        load, turned = slot, False
        while not load.staged:
            turned ^= load.order == (1, 0)
            load = load.operands[0] if load.web is None else load.web.find().definitions[0].node
        if load.chain in self.rings:
            ring = self.rings[load.chain]
            return ring.in_memory and lies_as_taken(self.dots[node.chain], operand, ring, turned)
        return not any(load.chain in scene.facts.lowered.copied for scene in self.scenes)

    def accumulator_memory(self, node: Node, graph: Graph) -> Stored | None:
        """The layout of a dot's accumulator in tensor memory; None for one in registers."""
        use = self.dots[node.chain]
        layouts = {index: fact.memory for index, fact in use.facts.items() if fact.memory is not None}
        return self._in_tensor_memory(node, graph, layouts, use.name) if layouts else None

    def operand_memory(self, node: Node, operand: int, value: Node, graph: Graph) -> tuple[Root, Stored] | None:
        """The registers that an operand in tensor memory is stored from, and its layout there; None for another."""
        use = self.dots[node.chain]
        taken = {index: self._operand(fact, operand) for index, fact in use.facts.items()}
        layouts = {index: fact.layout for index, fact in taken.items() if fact.registers is not None}
        registers = {index: fact.registers for index, fact in taken.items() if fact.registers is not None}
        if not layouts:
            return None
        shapes = {index: taken[index].shape for index in layouts}
        dims = self.dims(value, shapes)
        label = f"{use.name}_{('lhs', 'rhs')[operand]}"
        root = Root(self.register(dims, shapes, registers, f"{label}_layout"))
        return root, self._in_tensor_memory(value, graph, layouts, label, shapes)

    def packed_registers(self, node: Node, operand: int, packed: Node) -> Root | None:
        """The registers of bytes that unpack to those that an operand is put into tensor memory from."""
        taken = {index: self._operand(fact, operand) for index, fact in self.dots[node.chain].facts.items()}
        made = {index: packed_rows(fact.registers, fact.shape) for index, fact in taken.items()}
        layouts = {index: layout for index, layout in made.items() if layout is not None}
        if len(layouts) < len(taken):
            return None
        shapes = {index: (fact.shape[0], fact.shape[1] // 2) for index, fact in taken.items()}
        return Root(self.register(self.dims(packed, shapes), shapes, layouts, "packed_layout"))

    def operand_parent(self, node: Node, operand: int, own: Root) -> Root:
        """The layout that a product's operand follows from: its accumulator's, or one of an instruction as deep."""
        use = self.dots[node.chain]
        parents = {i: self._operand(fact, operand).layout.get("parent") for i, fact in use.facts.items()}
        if all(parents[index] in (None, fact.accumulator) for index, fact in use.facts.items()):
            return own
        dims = self.dims(node, use.shapes)
        return Root(self.register(dims, use.shapes, parents, f"{use.name}_{('lhs', 'rhs')[operand]}_mma_layout"))

    def _in_tensor_memory(
        self, value: Node, graph: Graph, layouts: Layouts, label: str, shapes: Shapes | None = None
    ) -> Stored:
        shapes = shapes or {index: self.dots[value.chain].shapes[index] for index in layouts}
        root = Root(self.register(self.dims(value, shapes), shapes, layouts, f"{label}_tmem_layout"))
        return Stored(root, self.spelled(value, graph, shapes))

    def is_stored(self, node: Node, operand: int) -> bool:
        """Whether a dot takes an operand from shared memory, or as a transposition of what lies there."""
        taken = (self._operand(fact, operand) for fact in self.dots[node.chain].facts.values())
        return all(fact.transposed is not None or fact.layout.name != "ttg.dot_op" for fact in taken)

    def stored(self, node: Node, operand: int, value: Node, graph: Graph, turned: bool) -> Stored:
        """The shared layout of an operand that is put into memory for a dot; `turned`: before it is transposed."""
        use = self.dots[node.chain]
        taken = {index: self._operand(fact, operand) for index, fact in use.facts.items()}
        before = {index: fact.transposed or other_way(fact.layout) for index, fact in taken.items()}
        layouts = before if turned else {index: fact.layout for index, fact in taken.items()}
        shapes = {index: fact.shape[::-1] if turned else fact.shape for index, fact in taken.items()}
        name = value.web.find().name if value.web is not None else f"{use.name}_{('lhs', 'rhs')[operand]}"
        root = self.register(self.dims(value, shapes), shapes, layouts, f"{name}_shared", loaded_from(value))
        in_place = all(fact.in_memory for fact in taken.values())
        return Stored(Root(root), self.spelled(value, graph, shapes), in_place)

    def reloaded(
        self,
        node: Node,
        operand: int,
        value: Node,
        graph: Graph,
        at: int | None = None,
        *,
        anyhow: bool = False,
        turned_before: bool = False,
        kept: bool = False,
    ) -> Stored | None:
        """Where an operand is put that Triton loads from shared memory for a product; None for other operands.

        `at`: the launch that it is asked for, if it may come otherwise under others; None where it comes alike in all.
        `anyhow`: if it does so under some; under others Triton may compute it in its registers. `kept`: or before its
        loop. `turned_before`: what it is the transposition of is nowhere here (a helper's argument): put as it is read.
        """
        use = self.dots[node.chain]
        as_put = partial(as_it_comes, turned_before=turned_before, kept=kept)
        taken = {index: as_put(self._operand(fact, operand)) for index, fact in use.facts.items()}
        some = {index: fact for index, fact in taken.items() if fact.reloaded is not None}
        if at is not None:
            some = some if at in some and len(some) < len(taken) else {}
        taken = taken if at is None and not anyhow else some
        layouts = {index: fact.reloaded for index, fact in taken.items() if fact.reloaded is not None}
        turned = all(fact.turned for fact in taken.values())
        plain = all(layout.name == "ttg.swizzled_shared" for layout in layouts.values())
        alike = turned or plain and not any(fact.turned for fact in taken.values())
        if not taken or len(layouts) < len(taken) or not alike:
            return None
        shapes = {index: fact.shape for index, fact in taken.items()}
        name = value.web.find().name if value.web is not None else f"{use.name}_{('lhs', 'rhs')[operand]}"
        root = self.register(self.dims(value, shapes), shapes, layouts, f"{name}_shared", loaded_from(value))
        return Stored(Root(root), self.spelled(value, graph, shapes), in_place=False, turned=turned)

    def passed(self, node: Node, operand: int) -> Passed | None:
        """How LDS lies that an operand passes under some launches or calls, on AMD; None where it is under all or none.

        Its text is one for all of them: whether other warps have the elements, the compiler asks.
        """
        uses = [use for use in self.dots.values() if use.node.site.position == node.site.position]
        uses = [use for use in uses if use.node.site.function == node.site.function]
        taken = [self._operand(fact, operand) for use in uses for fact in use.facts.values()]
        through = [fact for fact in taken if fact.reloaded is not None]
        if not 0 < len(through) < len(taken) or not self.dots[node.chain].instruction.startswith(("mfma", "wmma")):
            return None
        return laid_out_as(through)

    def transposed(self, node: Node, operand: int) -> bool:
        """Whether Triton puts into shared memory what an operand is the transposition of, and reads it from there."""
        facts = [self._operand(fact, operand) for fact in self.dots[node.chain].facts.values()]
        return all(fact.transposed is not None and fact.transposed.name == "ttg.swizzled_shared" for fact in facts)

    def taken_otherwise(self, node: Node, operand: int) -> list[Scene]:
        """The launches under which Triton does not load a product's operand from shared memory that it put it in."""
        facts = self.dots[node.chain].facts
        return [self.scenes[index] for index, fact in facts.items() if self._operand(fact, operand).reloaded is None]

    def read_again(self, node: Node, operand: int) -> bool:
        """Whether Triton reads an operand from the memory that it was put in once for each product anew."""
        return all(self._operand(fact, operand).reloaded is not None for fact in self.dots[node.chain].facts.values())

    def ring(self, node: Node, graph: Graph) -> Stored:
        """The shared layout of a ring's slots."""
        use = self.rings[node.chain]
        layouts = {index: fact.layout for index, fact in use.facts.items()}
        if use.looked_up:
            extents = graph.spelled(node)
            name = self.classes.named(extents, layouts, LOOKED_UP_SHARED, True, f"{use.name}_shared")
            return Stored(Root(name), extents)
        dims = self.dims(node, use.shapes)
        root = Root(self.register(dims, use.shapes, layouts, f"{use.name}_shared", use.node.pointer))
        return Stored(root, graph.spelled(node))

    def descriptor(self, node: Node) -> Root:
        """The shared layout of a descriptor's tiles: Triton's, or where it uses none, the usual one."""
        shapes = {index: made.shape for index, made in self.descriptors[node.chain].items()}
        known = {index: self.scenes[index].facts.lowered.descriptors.get(node.chain) for index in shapes}
        layouts = {index: fact.layout for index, fact in known.items() if fact is not None}
        dims = self.dims(node, shapes)
        label = f"{(node.pointer or 'tile').removesuffix('_ptr').removeprefix('p_')}_shared"
        if not layouts:
            usual = f"gl.NVMMASharedLayout.get_default_for([{', '.join(dims)}], {node.pointer}.dtype.element_ty)"
            return Root(self.classes.named(dims, {}, usual, True, label))
        said = self.formulas.written(dims, shapes, layouts, node.pointer)
        return Root(self.classes.named(dims, layouts, said.source, said.exact, label))

    @staticmethod
    def _operand(fact: DotFact, operand: int) -> DotOperandFact:
        return fact.b if operand else fact.a

    def register(
        self, dims: tuple[str, ...], shapes: Shapes, layouts: Layouts, label: str, pointer: str | None = None
    ) -> str:
        """The class of these layouts; called `label` where it is new. `pointer`: to elements of such a tile."""
        plain = self.formulas.written(dims, shapes, layouts)
        said = self.formulas.written(dims, shapes, layouts, pointer) if pointer else plain
        said = said if said.exact else plain
        return self.classes.named(dims, layouts, said.source, said.exact, label, plain.source)
