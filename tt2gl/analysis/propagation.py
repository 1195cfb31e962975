"""Layout propagation over the value graph: who has a layout, who takes one, who must convert.

Anchors (global accesses with at least as many elements as threads) have layouts of their own; these flow forward
through elementwise work, slices, reductions and loop-carried names. Everything made only of ranges, constants and
scalars is cheap: it has no layout until a reader demands one, and is computed again for a reader that demands
another. Where two layouts that are not cheap meet, the smaller value is converted; in a loop, of two as large, what
was made before it. The passes of Triton that this follows are Coalesce and RemoveLayoutConversions (forward from
anchors, backward rematerialisation).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tt2gl.analysis.access_layouts import AccessLayouts
from tt2gl.analysis.anchors import Anchors
from tt2gl.analysis.cheap import in_ring, last_row, last_tile, mark_cheap
from tt2gl.analysis.decisions import Clone, Decisions, NamedWeb, RingWant, Spot, place_of
from tt2gl.analysis.given_names import given_cheaply, made_of_given
from tt2gl.analysis.graph import Definition, Node, Web, counts_from_zero, operands_rank, uncast
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.products import Products
from tt2gl.analysis.rearranged import Rearranged
from tt2gl.analysis.remade_names import move_remade
from tt2gl.analysis.reshapes import reduced
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import IN_RING, Cut, Inferred, Operand, Root, Stored, Term, Turned, cut
from tt2gl.analysis.uses import RingUse
from tt2gl.analysis.widened_names import Recast, forget_widened, is_wider, recasts
from tt2gl.plan import ENTRY

_DEPTH = 50_000


class Propagation(Anchors):
    """Propagates layouts through one launch's graph."""

    def __init__(self, scene: Scene, index: int, classes: Classes, cores: TensorCores) -> None:
        super().__init__(scene, index, classes, cores)
        self.decisions = Decisions()
        self.products = Products(self)
        self.accesses = AccessLayouts(self)
        self.rearranged = Rearranged(self)
        self.recast: Recast = {}
        self._done: set[tuple[int, Term | None, Clone]] = set()
        self._waiting: dict[int, Term] = {}

    def prepare(self) -> None:
        """Find what has a layout of its own."""
        mark_cheap(self.scene, self.is_anchor, self._waits_once)
        self.find_naturals()

    def run(self, recast: Recast) -> None:
        """Decide the layouts of all that is used."""
        self.recast = recast
        forget_widened(self.graph, self.accesses.written, recast)
        move_remade(self.graph)
        self.products.find()
        for step in self.graph.steps:
            if isinstance(step, Node):
                self.settle(step, None)
            elif (natural := step.own_web().natural) is not None:
                self.define(step, natural)

    def finish(self, others: Sequence[Decisions]) -> Decisions:
        """Decide the layouts of the rest: what is never used is made, or given, as where another launch uses it."""
        known = {spot.site: term for each in others for spot, (_, term) in each.targets.items()}
        given = {spot.site: term for each in others for spot, (_, term) in each.reads.items()}
        for step in self.graph.steps:
            if isinstance(step, Definition):
                web = step.own_web()
                unused = web.natural is None and not web.versions
                if unused and step.node.kind != "argument":
                    self.demand(web, known.get(step.site) or self._wanted(step.node))
                elif unused and step.node.value is not None:
                    # What a helper is given and does not use may come in any layout.
                    value = step.node.value
                    self.resolve(step.node, given.get(value.site) or self._wanted(value), None)
        self._list_webs()
        return self.decisions

    # who takes which layout

    def define(self, definition: Definition, term: Term) -> None:
        """Give a definition's value its layout, in the copy of its statement that has it."""
        node = definition.node
        if node.kind != "argument" and definition.name != "return":
            self.decisions.targets[Spot(definition.site, term)] = (definition.name, term)
        if node.several:
            if node.kind == "call" and node.natural is None:
                # A helper can return each in any layout: the first that it is wanted in.
                node.natural = term
            natural = self.settle(node, None)
            if natural != term:
                self.decisions.convert_after(definition, definition.name, natural, term)
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
            # A slot may be read again: in a product's operand's layout several warps would compute the same.
            others = (Stored, Operand, Turned) if in_ring(node) else Stored
            known = [term for term in (web.natural, *web.versions) if term is not None and not isinstance(term, others)]
            if known:
                return known[0]
            if in_ring(node) and web.definitions[0].node is not node:
                return self._wanted(web.definitions[0].node)
        if node.kind == "store":
            return self.accesses.written(node)
        if node.staged:
            return self.access_root(node)
        if in_ring(node):
            return self.default(node)
        if (tile := last_tile(node, self.scene, self.is_anchor)) is not None:
            # Nothing else decides: Triton's layouts flow from the last load first.
            return self.access_root(tile)
        if node.kind == "elementwise":
            for operand in node.operands:
                if operand.kind in ("read", "elementwise") and operand.shape == node.shape:
                    return operand.natural if operand.natural is not None else self._wanted(operand)
        if node.function == "interleave":
            return self.doubled(self.operand_term(node), node) or self.default(node)
        if node.kind == "reduce" and node.shape:
            return reduced(node, self.operand_term(node)) or self.default(node)
        return self.default(node)

    def operand_term(self, node: Node) -> Term:
        """The layout that what a value is made of comes in."""
        if node.operand_term is not None:
            return node.operand_term
        alone = node.operands[0].natural if len(node.operands) == 1 else None
        if node.kind == "reduce" and alone is not None and (not node.shape or isinstance(alone, Inferred)):
            return alone
        for operand in node.operands:
            if operand.natural is not None and not isinstance(operand.natural, Inferred):
                return operand.natural
        if node.kind == "reduce" and not node.shape and (row := last_row(node.operands[0], self.scene)) is not None:
            # Triton loads it once more, as it lies in memory: in a slice of a tile a thread has many of its elements.
            return self.access_root(row)
        return self._wanted(node.operands[0])

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
                    self.decisions.fills[spot, place] = ((*self.scene.graph.spelled(node), dtype), term)
            case "create":
                self._create(node, term, spot)
            case "expand" if isinstance(node.operands[0].natural, Inferred) and node.natural is not None:
                self.settle(node.operands[0], clone)
                self.convert(node, node.natural, term, spot)
            case "expand":
                self.resolve(node.operands[0], Cut(node.axis or 0, term), clone)
            case "descriptor":
                self.decisions.creations[spot] = term
            case "load" | "store" if node.tile:
                self.accesses.tile(node, term, spot)
            case "load" if node.staged:
                self.accesses.staged(node, term, spot)
            case "dot":
                self.convert(node, self.products.dot(node, spot), term, spot)
            case "upcast":
                self.products.upcast(node, term, clone)
                self.decisions.converts[spot] = term
            case "opaque" if id(node) in self.products.turned:
                self.products.view(node, clone)
            case "opaque" | "elementwise" if in_ring(node):
                self._view(node, term, spot)
            case "elementwise" | "load":
                self._compute(node, term, spot)
            case "store" | "atomic":
                self.accesses.write(node, term, spot)
            case "reduce" | "scan":
                self._fold(node, term, spot)
            case "join":
                self.rearranged.join(node, term, spot)
            case "split" if isinstance(node.natural, Inferred):
                self.settle(node.operands[0], clone)
            case "split":
                assert isinstance(node.natural, Cut)
                whole = node.natural.parent
                is_row = len(node.operands[0].shape) == 1
                self.resolve(node.operands[0], Cut(0, whole) if is_row else whole, clone)
            case "opaque":
                self._rearrange(node, term, spot)
            case "call" | "argument":
                self._passed(node, term, spot)

    def _view(self, node: Node, term: Term, spot: Spot) -> None:
        """What is turned, or cast to what it is, of a ring's slot."""
        if isinstance(term, Inferred):
            # Nothing says in which layout memory is read that is turned: it is turned in registers.
            self.resolve(node.operands[0], term if node.kind == "elementwise" else term.parent, spot.clone)
            return
        self.resolve(node.operands[0], IN_RING, spot.clone)
        self.decisions.views[spot] = node.order
        if not isinstance(term, Stored):
            self.decisions.loads[spot] = term

    def _compute(self, node: Node, term: Term, spot: Spot) -> None:
        """What is computed element by element, or loaded: all that it takes comes in the layout that it is made in."""
        own = self._computed_in(node, term)
        self.take(node, own, spot.clone)
        self.convert(node, own, term, spot)
        self.products.load(node, term, spot)
        if (held := self.cores.held(node)) is not None and self._waits_in(node, held, own):
            want = RingWant(held.name, IN_RING, "", in_memory=False, registers=True, held=True)
            self.decisions.staged[spot] = IN_RING, want

    def _waits_in(self, node: Node, held: RingUse, term: Term) -> bool:
        """Whether a load waits in registers in this layout: where it is loaded again in others, in one alone."""
        return held.holds(term) and (not held.again or self._waiting.setdefault(id(node), term) == term)

    def _waits_once(self, node: Node) -> bool:
        """Whether a load waits in registers for all that reads it."""
        held = self.cores.held(node)
        return held is not None and not held.again

    def _rearrange(self, node: Node, term: Term, spot: Spot) -> None:
        """What has the elements of others in another order."""
        match node.function:
            case "interleave":
                self.rearranged.interleave(node, term, spot)
            case "gather" if isinstance(node.natural or term, Root | Cut):
                self.rearranged.gather(node, term, spot)
            case "cat":
                self.rearranged.concatenate(node, term, spot)
            case _:
                self.rearranged.reorder(node, term, spot)

    def _fold(self, node: Node, term: Term, spot: Spot) -> None:
        """A reduction or a scan: what it takes comes in one layout, which says that of what it gives."""
        taken = self.operand_term(node)
        self.take(node, taken, spot.clone)
        if node.function:
            self.decisions.indexed[spot] = node.function
        own = taken if node.kind == "scan" else reduced(node, taken)
        if own is not None:
            self.convert(node, own, term, spot)

    def _create(self, node: Node, term: Term, spot: Spot) -> None:
        self.decisions.creations[spot] = term
        together = [o for o in node.operands if o.natural is not None] if node.function == "histogram" else []
        for operand in node.operands:
            if together and together[0].natural is not None:
                self.resolve(operand, together[0].natural, spot.clone)
            else:
                self.settle(operand, spot.clone)

    def take(self, node: Node, term: Term, clone: Clone) -> None:
        """Resolve operands at a node's layout; those of lower rank are expanded on the left first."""
        for operand in node.operands:
            missing = operands_rank(node) - len(operand.shape)
            self.decisions.expansions[Spot(operand.site, clone)] = (max(missing, 0), len(operand.shape))
            self.resolve(operand, cut(term, missing), clone)

    def _computed_in(self, node: Node, term: Term) -> Term:
        """The layout to compute a value in that is wanted in `term`: its own, unless what it is made of is smaller.

        Then that is converted instead: a tile of bytes before it becomes floats, and not after. So is a name of
        before the loop that is cast to the type that it has, which is converted there.
        """
        recast = self.recast if isinstance(term, Root | Cut) else {}
        if node.natural is None or node.several or is_wider(node, recast=recast):
            return term
        value = uncast(node)[0]
        if value is not node and value.web is not None and value.web.find().made_outside(value) is not None:
            return term
        return node.natural

    def convert(self, node: Node, own: Term, term: Term, spot: Spot) -> None:
        """Note that a value computed in the layout `own` is wanted in `term`."""
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
        self.convert(node, value.natural, term, spot)

    def _read(self, node: Node, term: Term, spot: Spot) -> None:
        assert node.web is not None
        web = node.web.find()
        self.decisions.sources[spot] = place_of(web.definitions[0])[1]
        if web.natural is None:
            self.demand(web, term)
        if web.natural is None or web.natural == term:
            self.decisions.reads[spot] = (web.name, term)
            self.decisions.unconverted[spot] = term
            return
        if (cast := web.made_once()) is not None and id(node) in self.recast and isinstance(term, Root | Cut):
            self.decisions.recast_after(cast, web.name, web.natural, term)
            self.decisions.reads[spot] = (web.name, term)
            return
        self.decisions.reads[spot] = (web.name, web.natural)
        made = web.made_once() if id(web) in self.products.once else web.made_outside(node)
        if (given := given_cheaply(web) or made_of_given(web)) is not None:
            # A range from zero it makes itself, before its loop.
            counts = counts_from_zero(given.node)
            if given.depth and not counts:
                self.decisions.cheap.add(web.function)
            elif not (counts and made is not None) and isinstance(term, Root | Cut):
                self.decisions.again[spot] = term
        if made is not None:
            # Converted once where it is defined, not again on every turn of the loop, or for each reader.
            self.decisions.convert_after(made, web.name, web.natural, term)
            self.decisions.reads[spot] = (web.name, term)
        else:
            self.decisions.converts[spot] = term

    def _list_webs(self) -> None:
        for web in self.graph.distinct_webs():
            places = [place_of(d) for d in web.definitions if d.name != "return"]
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
        for site, web in self.graph.mentions:
            _, statement, _ = place_of(web.find().definitions[0])
            self.decisions.mentions[site] = (web.name, statement)


def propagated(scenes: Sequence[Scene], classes: Classes, cores: TensorCores) -> list[Decisions]:
    """What is decided for each launch of a kernel."""
    launches = [Propagation(scene, index, classes, cores) for index, scene in enumerate(scenes)]
    with _deep_calls():
        for each in launches:
            each.prepare()
        recast = recasts([scene.graph for scene in scenes])
        for each in launches:
            each.run(recast)
    return [each.finish([other.decisions for other in launches if other is not each]) for each in launches]


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Let what asks of a value what it is made of go through thousands of statements: the rounds of a cipher, say."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
