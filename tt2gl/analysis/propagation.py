"""Layout propagation over the value graph: who has a layout, who takes one, who must convert.

Anchors (global accesses with at least as many elements as threads) have layouts of their own; these flow forward
through elementwise work, slices, reductions and loop-carried names. Everything made only of ranges, constants and
scalars is cheap: it has no layout until a reader demands one, and is computed again for a reader that demands
another. Where two layouts that are not cheap meet, the smaller value is converted. The passes of Triton that this
follows are Coalesce and RemoveLayoutConversions (forward from anchors, backward rematerialisation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tt2gl.analysis.anchors import Anchors, in_ring, merges_pairs
from tt2gl.analysis.facts import CallChain, Instruction, Position
from tt2gl.analysis.graph import Definition, DotSite, FunctionKey, Node, Site, Web
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.memory_arguments import caller_value
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import IN_RING, Cut, Inferred, Operand, Root, Stored, Term, Widened, halved, packed
from tt2gl.plan import ENTRY

Clone = Term | None
"""Which copy of a statement an expression is in: by the layout of the name it defines; None outside definitions."""


@dataclass(frozen=True)
class Spot:
    """An expression in one copy of its statement."""

    site: Site
    clone: Clone


@dataclass(frozen=True)
class NamedWeb:
    """One variable's linked definitions, the calls that led to them, and the layouts they are wanted in.

    `terms`: layouts that the statements compute it in; `converted`: those it is converted to after them; `cheap`:
    whether the statements may stand several times.
    """

    function: FunctionKey
    context: CallChain
    name: str
    statements: tuple[Position, ...]
    terms: tuple[Term, ...]
    converted: tuple[Term, ...]
    cheap: bool


@dataclass(frozen=True)
class RingWant:
    """The ring of a load: its name, the shared layout of a slot, and its dtype as source.

    `in_memory`: a dot takes the slots in place. `tile`: the load goes through a descriptor, which says all of a slot;
    without a name it goes through a tile of its own.
    """

    name: str
    slot: Stored
    dtype: str
    in_memory: bool
    tile: bool = False


@dataclass(frozen=True)
class DotWant:
    """How a dot is written; `dims` and `dtype` are of the zeros that it starts from.

    `memory`: where its accumulator lies in tensor memory, `lhs`: where its first operand does.
    """

    site: DotSite
    instruction: Instruction
    dims: tuple[str, ...]
    name: str
    memory: Stored | None = None
    lhs: Stored | None = None


@dataclass
class Decisions:
    """What propagation decided for one launch, by place in the source.

    `unconverted`: the layouts of values that are as they are wanted, for a text that another launch has converted.
    `given`: the parameters of helpers that come in shared memory.
    """

    creations: dict[Spot, Term] = field(default_factory=dict)
    converts: dict[Spot, Term] = field(default_factory=dict)
    unconverted: dict[Spot, Term] = field(default_factory=dict)
    expansions: dict[Spot, tuple[int, int]] = field(default_factory=dict)
    fills: dict[tuple[Spot, Position], tuple[tuple[str, ...], Term]] = field(default_factory=dict)
    reads: dict[Spot, tuple[str, Term]] = field(default_factory=dict)
    targets: dict[Spot, tuple[str, Term]] = field(default_factory=dict)
    indexed: dict[Spot, str] = field(default_factory=dict)
    staged: dict[Spot, tuple[Term, RingWant]] = field(default_factory=dict)
    tiles: dict[Spot, str] = field(default_factory=dict)
    views: dict[Spot, tuple[int, ...]] = field(default_factory=dict)
    loads: dict[Spot, Term] = field(default_factory=dict)
    stores: dict[Spot, Term] = field(default_factory=dict)
    dots: dict[Spot, tuple[Term, DotWant]] = field(default_factory=dict)
    webs: list[NamedWeb] = field(default_factory=list)
    after: dict[tuple[FunctionKey, Position, CallChain], list[tuple[str, Term, Term]]] = field(default_factory=dict)
    given: dict[tuple[FunctionKey, CallChain, str], Stored] = field(default_factory=dict)


class Propagation(Anchors):
    """Propagates layouts through one launch's graph."""

    def __init__(self, scene: Scene, index: int, classes: Classes, cores: TensorCores) -> None:
        super().__init__(scene, index, classes, cores)
        self.decisions = Decisions()
        self._done: set[tuple[int, Term | None, Clone]] = set()

    def run(self) -> None:
        """Decide the layouts of all that is used."""
        self.mark_cheap()
        self.find_naturals()
        for step in self.graph.steps:
            if isinstance(step, Node):
                self.settle(step, None)
            elif (natural := step_web(step).natural) is not None:
                self.define(step, natural)

    def finish(self, others: Sequence[Decisions]) -> Decisions:
        """Decide the layouts of the rest: what is never read is made as other launches make it, where any uses it."""
        known = {spot.site: term for each in others for spot, (_, term) in each.targets.items()}
        for step in self.graph.steps:
            if isinstance(step, Definition):
                web = step_web(step)
                # What a helper is given and does not use may come in any layout.
                unused = web.natural is None and not web.versions
                if unused and step.node.kind != "argument":
                    self.demand(web, known.get(step.site) or self._wanted(step.node))
        self._list_webs()
        return self.decisions

    # who takes which layout

    def define(self, definition: Definition, term: Term) -> None:
        """Give a definition's value its layout, in the copy of its statement that has it."""
        node = definition.node
        if node.kind != "argument" and definition.name != "return":
            self.decisions.targets[Spot(definition.site, term)] = (definition.name, term)
        if node.several:
            natural = self.settle(node, None)
            if natural != term:
                self._after(definition, definition.name, natural, term)
            return
        self.resolve(node, term, None if node.kind == "argument" else term)

    def demand(self, web: Web, term: Term) -> None:
        """Have a name in a layout: once for all where it is dear, in one more copy where it is cheap."""
        if term in web.versions:
            return
        web.versions.append(term)
        if not web.cheap:
            web.natural = term
        for definition in web.definitions:
            self.define(definition, term)

    def settle(self, node: Node, clone: Clone) -> Term:
        """Compute a value in its own layout, or in a default one; says which."""
        term = node.natural if node.natural is not None else self._wanted(node)
        self.resolve(node, term, clone)
        return term

    def _wanted(self, node: Node) -> Term:
        """A layout for a value without one: what it already is in elsewhere, what it is made of, or the default."""
        if node.kind == "read" and node.web is not None:
            web = node.web.find()
            known = [term for term in (web.natural, *web.versions) if term is not None and not isinstance(term, Stored)]
            if known:
                return known[0]
            if in_ring(node) and web.definitions[0].node is not node:
                return self._wanted(web.definitions[0].node)
        if node.kind == "store":
            return self._store_term(node)
        if node.staged:
            return self.access_root(node)
        if in_ring(node):
            return self.default(node)
        if node.kind == "elementwise":
            for operand in node.operands:
                if operand.kind in ("read", "elementwise") and operand.shape == node.shape:
                    return operand.natural if operand.natural is not None else self._wanted(operand)
        if node.function == "interleave":
            return self.doubled(self._operand_term(node), node) or self.default(node)
        if node.kind == "reduce" and node.shape:
            return self.reduced(node, self._operand_term(node)) or self.default(node)
        return self.default(node)

    def _operand_term(self, node: Node) -> Term:
        if node.operand_term is not None:
            return node.operand_term
        for operand in node.operands:
            if operand.natural is not None and not isinstance(operand.natural, Inferred):
                return operand.natural
        return self._wanted(node.operands[0])

    def _store_term(self, node: Node) -> Term:
        """A small store is no anchor: it takes the layout of its value, then of its address.

        A small atomic keeps its own: in a slice of a tile one thread would make many, one after the other (10 us
        against 21 us for 32 rows on an H200).
        """
        if not node.anchored and node.kind == "store":
            for operand in (*node.operands[1:2], node.operands[0]):
                known = operand.natural if not isinstance(operand.natural, Inferred) else None
                if known is not None and len(operand.shape) == len(node.shape):
                    return known
        return self.access_root(node)

    def resolve(self, node: Node, term: Term, clone: Clone) -> None:
        """Have an expression give its value in `term`, in the copy `clone` of its statement."""
        if (id(node), term, clone) in self._done:
            return
        self._done.add((id(node), term, clone))
        spot = Spot(node.site, clone)
        match node.kind:
            case "read":
                self._read(node, term, spot)
            case "create" if node.function == "fill":
                for place, dtype in node.scalars:
                    self.decisions.fills[spot, place] = ((*node.dims_known, dtype), term)
            case "create":
                self._create(node, term, spot)
            case "expand":
                self.resolve(node.operands[0], Cut(node.axis or 0, term), clone)
            case "descriptor":
                self.decisions.creations[spot] = term
            case "load" if node.tile:
                ring = self.cores.rings.get(node.chain)
                name, in_memory = (ring.name, ring.in_memory) if ring is not None else ("", False)
                self.decisions.tiles[spot] = node.kind
                self.decisions.staged[spot] = term, RingWant(name, IN_RING, f"{node.tile}.dtype", in_memory, tile=True)
            case "store" if node.tile:
                self.decisions.tiles[spot] = node.kind
                for operand in node.operands:
                    self.settle(operand, clone)
            case "load" if node.staged:
                self._operands(node, self.access_root(node), clone)
                use = self.cores.rings[node.chain]
                slot, dtype = self.cores.ring(node, self.graph), self.graph.element_type(node)
                # Where it is masked out there is another value, by a mask in the layout of the access.
                read = self.access_root(node) if node.replaced else term
                self.decisions.staged[spot] = read, RingWant(use.name, slot, dtype, use.in_memory)
                self._convert(node, read, term, spot)
            case "dot":
                self._dot(node, term, spot)
            case "upcast":
                self._upcast(node, term, clone)
                self.decisions.converts[spot] = term
            case "opaque" if in_ring(node):
                self.resolve(node.operands[0], IN_RING, clone)
                self.decisions.views[spot] = node.order
                if not isinstance(term, Stored):
                    self.decisions.loads[spot] = term
            case "elementwise" | "load":
                own = self._computed_in(node, term)
                self._operands(node, own, clone)
                self._convert(node, own, term, spot)
            case "store" | "atomic":
                own = self._store_term(node)
                self._operands(node, own, clone)
                for scalar, dtype in node.scalars:
                    self.decisions.fills[spot, scalar] = ((*node.dims_known, dtype), own)
                if node.kind == "atomic":
                    node.natural = own
                    self._convert(node, own, term, spot)
            case "reduce":
                taken = self._operand_term(node)
                self._operands(node, taken, clone)
                if node.function:
                    self.decisions.indexed[spot] = node.function
                own_reduced = self.reduced(node, taken)
                if own_reduced is not None:
                    self._convert(node, own_reduced, term, spot)
            case "scan":
                taken = self._operand_term(node)
                self._operands(node, taken, clone)
                if node.function:
                    self.decisions.indexed[spot] = node.function
                self._convert(node, taken, term, spot)
            case "join":
                self._join(node, term, spot)
            case "split" if isinstance(node.natural, Inferred):
                self.settle(node.operands[0], clone)
            case "split":
                assert isinstance(node.natural, Cut)
                self.resolve(node.operands[0], node.natural.parent, clone)
            case "opaque" if node.function == "interleave":
                self._interleave(node, term, spot)
            case "opaque":
                for operand in node.operands:
                    self.settle(operand, clone)
                if not node.several and (node.natural != term or merges_pairs(node)):
                    self.decisions.converts[spot] = term
            case "call" | "argument":
                self._passed(node, term, spot)

    def _create(self, node: Node, term: Term, spot: Spot) -> None:
        self.decisions.creations[spot] = term
        together = [o for o in node.operands if o.natural is not None] if node.function == "histogram" else []
        for operand in node.operands:
            if together and together[0].natural is not None:
                self.resolve(operand, together[0].natural, spot.clone)
            else:
                self.settle(operand, spot.clone)

    def _dot(self, node: Node, term: Term, spot: Spot) -> None:
        """A product: its operands as its instruction takes them, its accumulator and result in its own layout."""
        assert node.dot is not None
        own, use = self.cores.accumulator(node), self.cores.dots[node.chain]
        lhs: Stored | None = None
        for place, operand in enumerate(node.operands[:2]):
            if (held := self.cores.operand_memory(node, place, operand, self.graph)) is not None:
                registers, lhs = held
                self.resolve(operand, registers, spot.clone)
            elif self._reloaded(node, place, operand, Operand(place, own, self.cores.k_width(node, place)), spot.clone):
                pass
            elif not self.cores.in_memory(node, place):
                self.resolve(operand, Operand(place, own, self.cores.k_width(node, place)), spot.clone)
            elif in_ring(operand) and self.cores.read_in_place(operand):
                self.resolve(operand, IN_RING, spot.clone)
            else:
                self._store(node, place, operand, spot.clone)
        for accumulator in node.operands[2:]:
            self.resolve(accumulator, own, spot.clone)
        for place, scale in enumerate(node.scales):
            self.resolve(scale, self.cores.scale(node, place, scale), spot.clone)
        memory = self.cores.accumulator_memory(node, self.graph)
        want = DotWant(node.dot, use.instruction, self.cores.extents(node, self.graph), use.name, memory, lhs)
        self.decisions.dots[spot] = own, want
        self._convert(node, own, term, spot)

    def _reloaded(self, dot: Node, place: int, operand: Node, term: Term, clone: Clone) -> bool:
        """Bring an operand into its registers through shared memory, where Triton does, and not by a conversion.

        One from outside the loop is put there once, and loaded for each product. One of the loop in a blocked layout is
        converted: its conversion takes the registers through less memory (12% and 22% quicker on an H200).
        """
        slot = None if in_ring(operand) else self.cores.reloaded(dot, place, operand, self.graph)
        if slot is None:
            return False
        spot, web = Spot(operand.site, clone), operand.web.find() if operand.web is not None else None
        if web is not None and web.natural is not None and (made := self._made_outside(web, operand)) is not None:
            if not self._given(web, made, lambda value: self.cores.reloaded(dot, place, value, self.graph)):
                self._after(made, web.name, web.natural, slot)
            self.decisions.reads[spot] = (web.name, slot)
        elif isinstance(operand.natural, Root | Widened) and not self.cores.is_accumulator(operand.natural):
            return False
        else:
            self.settle(operand, clone)
            # It is stored as it comes: a transposition's result is not converted first.
            self.decisions.converts.pop(spot, None)
            self.decisions.stores[spot] = slot
        self.decisions.loads[spot] = term
        return True

    def _store(self, dot: Node, place: int, operand: Node, clone: Clone, turned: bool = False) -> None:
        """Put an operand into shared memory: where it is made if that is outside the loop, else for the dot."""
        if operand.kind == "opaque" and operand.order:
            self._store(dot, place, operand.operands[0], clone, not turned)
            self.decisions.views[Spot(operand.site, clone)] = operand.order
            return
        slot = self.cores.stored(dot, place, operand, self.graph, turned)
        web = operand.web.find() if operand.web is not None else None
        if web is not None and (made := self._made_once(web)) is not None:
            natural = web.natural if web.natural is not None else self.settle(operand, clone)
            if not self._given(web, made, lambda value: self.cores.stored(dot, place, value, self.graph, turned)):
                self._after(made, web.name, natural, slot)
            self.decisions.reads[Spot(operand.site, clone)] = (web.name, slot)
            return
        if operand.kind == "upcast":
            self._upcast(operand, None, clone)
        else:
            self.settle(operand, clone)
        self.decisions.stores[Spot(operand.site, clone)] = slot

    def _given(self, web: Web, made: Definition, stored: Callable[[Node], Stored | None]) -> bool:
        """Have a helper's argument in shared memory in its caller, where it can be; whether it is."""
        found = caller_value(self.graph, web, made)
        if found is None:
            return False
        value, given, defined = found
        spot, slot = Spot(value.site, None), stored(value)
        if spot in self.decisions.converts or given.natural is None or slot is None:
            return False
        self._after(defined, given.name, given.natural, slot)
        self.decisions.reads[spot] = (given.name, slot)
        self.decisions.unconverted.pop(spot, None)
        self.decisions.given[web.function, made.entry or (), web.name] = slot
        return True

    def _upcast(self, node: Node, term: Term | None, clone: Clone) -> None:
        """Have an operand's elements in the layout that its 16 bits are wanted in, where they can be: as they come."""
        elements, *scales = node.operands
        if isinstance(term, Operand):
            self.resolve(elements, term if elements.shape == node.shape else packed(term), clone)
        elif term is not None and elements.shape == node.shape:
            self.resolve(elements, term, clone)
        else:
            self.settle(elements, clone)
        for scale in scales:
            self.settle(scale, clone)

    def _interleave(self, node: Node, term: Term, spot: Spot) -> None:
        """Interleaved values: each in the layout that the result's is twice of, else both in one of theirs."""
        own = node.natural if node.natural is not None else term
        halves = halved(own, len(node.shape) - 1) or self._operand_term(node)
        for operand in node.operands:
            self.resolve(operand, halves, spot.clone)
        self.decisions.converts[spot] = term

    def _join(self, node: Node, term: Term, spot: Spot) -> None:
        own = node.natural if node.natural is not None else self.paired(node.operands[0])
        halves = node.operands[0].natural
        split_before = isinstance(halves, Cut) and halves.parent == own
        for operand in node.operands:
            self.resolve(operand, halves if split_before and halves else own.parent, spot.clone)  # type: ignore[union-attr]
        self._convert(node, own, term, spot)

    def _operands(self, node: Node, term: Term, clone: Clone) -> None:
        """Resolve operands at a node's layout; those of lower rank are expanded on the left first."""
        for operand in node.operands:
            wanted, missing = term, self._rank(node) - len(operand.shape)
            for axis in reversed(range(missing)):
                # `x[None, None, :]` adds the first dimension first: the last added is the outermost slice.
                wanted = Cut(axis, wanted)
            if missing > 0:
                self.decisions.expansions[Spot(operand.site, clone)] = (missing, len(operand.shape))
            self.resolve(operand, wanted, clone)

    @staticmethod
    def _rank(node: Node) -> int:
        return max((len(operand.shape) for operand in node.operands), default=len(node.shape))

    def _computed_in(self, node: Node, term: Term) -> Term:
        """The layout to compute a value in that is wanted in `term`: its own, unless what it is made of is smaller.

        Then that is converted instead: a tile of bytes before it becomes floats, and not after.
        """
        if node.natural is None or node.several or self._conversion(node) < node.elements * node.bits:
            return term
        return node.natural

    def _conversion(self, node: Node) -> int:
        """The bits that are converted to have a value in another layout than its own, in the cheapest way."""
        if node.natural is None:
            return 0
        whole = node.elements * node.bits
        if node.kind != "elementwise" or node.several:
            return whole
        return min(whole, sum(self._conversion(operand) for operand in node.operands))

    def _convert(self, node: Node, own: Term, term: Term, spot: Spot) -> None:
        if own == term:
            self.decisions.unconverted[spot] = term
        elif not node.several:
            self.decisions.converts[spot] = term

    def _passed(self, node: Node, term: Term, spot: Spot) -> None:
        value = node.value
        assert value is not None
        if node.kind == "argument":
            self.resolve(value, term, None)
            return
        if value.natural is None:
            self.resolve(value, term, None)
            return
        self.settle(value, None)
        self._convert(node, value.natural, term, spot)

    def _read(self, node: Node, term: Term, spot: Spot) -> None:
        assert node.web is not None
        web = node.web.find()
        if web.natural is None:
            self.demand(web, term)
        if web.natural is None or web.natural == term:
            self.decisions.reads[spot] = (web.name, term)
            self.decisions.unconverted[spot] = term
            return
        self.decisions.reads[spot] = (web.name, web.natural)
        if (made := self._made_outside(web, node)) is not None:
            # Converted once where it is defined, not again on every turn of the loop.
            self._after(made, web.name, web.natural, term)
            self.decisions.reads[spot] = (web.name, term)
        else:
            self.decisions.converts[spot] = term

    @staticmethod
    def _made_outside(web: Web, reading: Node) -> Definition | None:
        """The one definition of a name, where it stands outside the loop that reads it."""
        made = web.definitions[0]
        return made if len(web.definitions) == 1 and made.depth < reading.depth else None

    @staticmethod
    def _made_once(web: Web) -> Definition | None:
        """The one definition of a name, where it has only one."""
        return web.definitions[0] if len(web.definitions) == 1 else None

    def _after(self, made: Definition, name: str, source: Term, target: Term) -> None:
        """Have a name in another layout too, right after its definition."""
        steps = self.decisions.after.setdefault(_place(made), [])
        if (name, source, target) not in steps:
            steps.append((name, source, target))

    def _list_webs(self) -> None:
        for web in self.webs():
            places = [_place(d) for d in web.definitions if d.name != "return"]
            terms = [web.natural] if web.natural is not None else list(web.versions)
            steps = [step for place in places for step in self.decisions.after.get(place, ())]
            converted = [target for name, _, target in steps if name == web.name and target not in terms]
            statements = tuple(
                dict.fromkeys(statement for _, statement, _ in places if statement != ENTRY or converted)
            )
            if statements:
                function, _, context = places[0]
                named = NamedWeb(function, context, web.name, statements, tuple(terms), tuple(converted), web.cheap)
                self.decisions.webs.append(named)


def propagated(scenes: Sequence[Scene], classes: Classes, cores: TensorCores) -> list[Decisions]:
    """What is decided for each launch of a kernel."""
    launches = [Propagation(scene, index, classes, cores) for index, scene in enumerate(scenes)]
    for each in launches:
        each.run()
    return [each.finish([other.decisions for other in launches if other is not each]) for each in launches]


def _place(made: Definition) -> tuple[FunctionKey, Position, CallChain]:
    """Where a definition stands: its function, its statement there, and the calls that led there."""
    if made.entry is not None and made.web is not None:
        return made.web.function, ENTRY, made.entry
    return made.site.function, made.site.statement, made.site.context


def step_web(definition: Definition) -> Web:
    """The web that a definition is of."""
    assert definition.web is not None
    return definition.web.find()
