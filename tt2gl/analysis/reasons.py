"""Why each place of a kernel got what it got: the decisions of propagation and the facts they rest on, by place.

Nothing is decided or guessed here. What was weighed was noted where it was weighed (`graph.Node.weighed`), Triton's own
choice is what its compiler said (`facts`), and the rest is in `propagation.Decisions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.decisions import Decisions, RingWant, Spot
from tt2gl.analysis.facts import DotFact, DotOperandFact, Position
from tt2gl.analysis.graph import Node
from tt2gl.analysis.memory import LayoutClass, Scene
from tt2gl.analysis.terms import IN_RING, Root, Stored, Term, renamed, rendered, root_of
from tt2gl.layouts import Blocked
from tt2gl.plan import ENTRY


@dataclass(frozen=True)
class Case:
    """What a choice rests on under one launch: sizes, and Triton's own choice, where it has one to compare with."""

    facts: str = ""
    triton: str = ""


@dataclass(frozen=True)
class Reason:
    """One choice at a place of the working file: what was chosen, why, what else was weighed, and Triton's own choice.

    `kind`: layout, conversion, buffer or instruction. `names`: the layouts and buffers of the port that it is about.
    `under` has the launches that it holds for, by their place among those analysed together, with what is of each; for
    all of them the port has the function `body`, where it has several.
    """

    file: str
    position: Position
    kind: str
    chosen: str
    why: str
    weighed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    under: tuple[tuple[int, Case], ...] = ()
    body: str = ""


def reasons(analysis: KernelAnalysis) -> list[Reason]:
    """All reasons of the launches that were analysed together, in the order of the source; equal ones as one."""
    found: dict[Reason, dict[tuple[int, Case], None]] = {}
    for index, (scene, decisions) in enumerate(zip(analysis.scenes, analysis.decisions, strict=True)):
        for reason, case in _Launch(analysis, index, scene, decisions).reasons():
            found.setdefault(reason, {})[index, case] = None
    body = analysis.bodies.get(analysis.function, "")
    made = [replace(reason, under=tuple(cases), body=body) for reason, cases in found.items()]
    everywhere = tuple((index, Case()) for index in range(len(analysis.scenes)))
    for refusal in analysis.refused:
        why = f"Triton copies this load ahead, and here that would change what it does: {refusal.reason}."
        weighed = ("a ring of buffers, as Triton has",)
        file, place, chosen = refusal.function[0], refusal.position, "the load stays where it is"
        made.append(Reason(file, place, "buffer", chosen, why, weighed, (), everywhere, body))
    return sorted(made, key=lambda reason: (reason.file, reason.position, reason.kind))


class _Launch:
    """The reasons of one launch."""

    def __init__(self, analysis: KernelAnalysis, index: int, scene: Scene, decisions: Decisions) -> None:
        self.analysis, self.index, self.scene, self.decisions = analysis, index, scene, decisions
        self.nodes: dict[tuple[object, ...], Node] = {}
        for node in scene.graph.nodes:
            self.nodes.setdefault((node.site, node.kind), node)
        self.classes: Mapping[str, LayoutClass] = {known.name: known for known in analysis.classes.classes}

    def reasons(self) -> Iterator[tuple[Reason, Case]]:
        """Those of accesses, products, rings, conversions, and of what is made in a layout."""
        for node in self.scene.graph.nodes:
            if node.kind in ("load", "store", "atomic") and not node.tile and not node.staged and node.shape:
                yield self._access(node)
            elif len({layout for _, layout in node.weighed}) > 1 and node.natural is not None:
                yield self._meeting(node), Case(f"{node.elements} elements")
        for spot, (term, ring) in self.decisions.staged.items():
            yield self._ring(spot, term, ring)
        for spot, (_, want) in self.decisions.dots.items():
            yield from self._product(spot, want.instruction, want.memory)
        for spot, term in self.decisions.converts.items():
            yield self._conversion(spot, term), Case(_cost(self._node(spot)))
        for (function, position, _), steps in self.decisions.after.items():
            # What is done where a function is entered is told at its `def`.
            place = position if position != ENTRY else (function[1], 0, function[1] + 1, 0)
            for name, source, target in steps:
                yield self._after(function[0], place, name, source, target), Case()
        for spot, (name, term) in self.decisions.targets.items():
            if term != IN_RING:
                yield self._variable(spot, name, term), Case()
        copies = Counter(spot.site for spot in self.decisions.creations)
        for spot, term in self.decisions.creations.items():
            yield self._creation(spot, term, copies[spot.site]), Case(_cost(self._node(spot, "create", "descriptor")))

    # what reasons are made of

    def _said(self, term: Term) -> str:
        """A layout in the words of the port: its name, and how it is written where it has one."""
        name = rendered(renamed(term, self.analysis.names))
        known = self.classes.get(root_of(term).name)
        written = f" = {known.source}" if isinstance(term, Root) and known is not None else ""
        return f"{name}{written}" if name else "the ring's own"

    def _name(self, term: Term) -> str:
        return rendered(renamed(term, self.analysis.names)) or "the ring's own layout"

    def _names(self, *terms: Term) -> tuple[str, ...]:
        names = (self.analysis.names.get(root_of(term).name, "") for term in terms)
        return tuple(dict.fromkeys(name for name in names if name))

    def _reason(self, spot: Spot, kind: str, chosen: str, why: str, **more: object) -> Reason:
        return Reason(spot.site.function[0], spot.site.position, kind, chosen, why, **more)  # type: ignore[arg-type]

    def _node(self, spot: Spot, *kinds: str) -> Node | None:
        """The value at a spot: of one of `kinds` if some are given, else the outermost there."""
        if kinds:
            return next((self.nodes[spot.site, kind] for kind in kinds if (spot.site, kind) in self.nodes), None)
        return next((node for node in reversed(self.scene.graph.nodes) if node.site == spot.site), None)

    # the kinds of choices

    def _access(self, node: Node) -> tuple[Reason, Case]:
        fact = self.scene.facts.accesses.get(node.chain)
        triton = ""
        if fact is not None:
            own = Blocked(fact.size_per_thread, fact.threads_per_warp, fact.warps_per_cta, fact.order)
            bits = fact.size_per_thread[fact.order[0]] * node.bits
            triton = f"{own.source()}, {bits} bits a thread along dimension {fact.order[0]}"
        case = Case(f"{node.elements} elements of {node.bits} bits, {self.scene.threads} threads", triton)
        spot, term = Spot(node.site, None), node.natural
        if not node.anchored:
            chosen = self._said(term) if term is not None else "that of its reader, or of its value"
            why = "It has fewer elements than there are threads: too few for a layout of its own."
            names = self._names(term) if term is not None else ()
            return self._reason(spot, "layout", chosen, why, names=names), case
        known = self.analysis.classes.by_chain[node.chain]
        why = f"Every thread has some of its elements, so the {node.kind} decides: as wide as its address allows, lanes"
        why += " side by side."
        weighed: list[str] = []
        if not known.exact:
            weighed.append("Triton's own under each launch: no one formula gives that, and this is right for most")
        served = [pointer for pointer in known.pointers if pointer]
        if known.exact and len(served) > 1:
            weighed.append(f"one for each of {' and '.join(served)}: they are equal under every launch")
        root = Root(known.name)
        chosen, names = self._said(root), self._names(root)
        return self._reason(spot, "layout", chosen, why, weighed=tuple(weighed), names=names), case

    def _meeting(self, node: Node) -> Reason:
        """Where operands of several layouts meet: the largest stays, as it costs most to move."""
        natural = node.natural
        assert natural is not None
        others = tuple(dict.fromkeys(layout for _, layout in node.weighed if layout != natural))
        weighed = tuple(f"{self._name(layout)}, which another operand has" for layout in others)
        why = "Its operands come in several layouts; that of the largest stays, as it costs most to convert, and of"
        why += " equal ones that of a product."
        spot, names = Spot(node.site, None), self._names(natural, *others)
        return self._reason(spot, "layout", self._said(natural), why, weighed=weighed, names=names)

    def _ring(self, spot: Spot, term: Term, ring: RingWant) -> tuple[Reason, Case]:
        node = self._node(spot, "load")
        fact = self.scene.facts.lowered.rings.get(node.chain) if node is not None else None
        triton = f"{fact.buffers} buffers of {_extents(fact.shape)}, {fact.layout}" if fact is not None else ""
        read = "taken in place by the product" if ring.in_memory else f"read into registers in {self._name(term)}"
        how = "TMA copies the tiles" if ring.tile else "the loads are asynchronous copies"
        if ring.registers:
            how = "the tiles come to registers, and are stored from there"
        chosen = f"a ring {ring.name}_buf: {how}, {read}" if ring.name else f"a tile of shared memory: {how}, {read}"
        why = "Triton copies this load ahead of its loop's work, and the source may be taken apart so."
        if not ring.name:
            why = "What goes through a descriptor comes by shared memory."
        names = (f"{ring.name}_buf", *self._names(ring.slot)) if ring.name else self._names(ring.slot)
        weighed = ("an ordinary load in the loop (rule `pipeline` off): its time would add to the product's",)
        reason = self._reason(spot, "buffer", chosen, why, weighed=weighed if ring.name else (), names=names)
        return reason, Case(_cost(node), triton)

    def _product(self, spot: Spot, instruction: str, memory: Stored | None) -> Iterator[tuple[Reason, Case]]:
        node = self._node(spot, "dot")
        fact = self.scene.facts.lowered.dots.get(node.chain) if node is not None else None
        if node is None or fact is None:
            return
        own = node.natural
        chosen = f"{instruction}, its sum in {self._said(own)}" if own is not None else instruction
        if memory is not None:
            chosen = f"{instruction}, its sum in tensor memory, {self._name(memory)}"
        first, second = ("shared memory" if one.in_memory else "registers" for one in (fact.a, fact.b))
        why = (
            "The instruction that Triton's compiler takes for such operands and so many warps; the first operand comes"
        )
        why += f" from {first}, the second from {second}."
        case = Case(
            f"{_shape(fact)}, {self.scene.launch.options.num_warps} warps", f"{fact.instruction}, {fact.accumulator}"
        )
        names = self._names(own) if own is not None else ()
        yield self._reason(spot, "instruction", chosen, why, names=names), case

    def _conversion(self, spot: Spot, term: Term) -> Reason:
        node = self._node(spot)
        source = node.natural if node is not None else None
        if node is not None and node.kind == "read" and node.web is not None:
            source = node.web.find().natural
        came = f"from {self._name(source)} " if source is not None else ""
        why = "What reads it works in another layout"
        dear = node is not None and not node.cheap
        why += ", and it costs more to compute it again there." if dear else "."
        weighed = ("computing it again in that layout: it loads, reduces or is carried by a loop",) if dear else ()
        names = self._names(term, *([source] if source is not None else []))
        return self._reason(spot, "conversion", f"{came}to {self._name(term)}", why, weighed=weighed, names=names)

    def _after(self, file: str, position: Position, name: str, source: Term, target: Term) -> Reason:
        stored = isinstance(target, Stored)
        where = "shared memory, " if stored else ""
        why = f"`{name}` is wanted so further on, and is converted once where it is made, not where it is read."
        weighed = ("converting it where it is read: in a loop, that is on every turn",)
        chosen = f"`{name}` from {self._name(source)} to {where}{self._name(target)}"
        kind = "buffer" if stored else "conversion"
        names = self._names(source, target)
        return Reason(file, position, kind, chosen, why, weighed, names)

    def _variable(self, spot: Spot, name: str, term: Term) -> Reason:
        """The layout of what a statement gives a name: that of what it is made of, or of what reads it."""
        made = (web for web in self.scene.graph.webs if web.merged is None and web.name == name)
        web = next((web for web in made if any(one.site == spot.site for one in web.definitions)), None)
        wanted = list(web.versions) if web is not None else []
        if web is not None and web.cheap and wanted:
            why = "It costs little to compute, so it is computed in the layout of what reads it"
            several = len(wanted) > 1
            why += f": {' and '.join(map(self._name, wanted))}, once for each." if several else "."
            weighed = ("converting it from one to the other",) if several else ()
        else:
            why = "It has the layout of what it is made of."
            joined = web is not None and len(web.definitions) > 1
            why += " All values that the name has in a loop or after a branch share it." if joined else ""
            weighed = ()
        chosen = f"`{name}` in {self._name(term)}"
        return self._reason(spot, "layout", chosen, why, weighed=weighed, names=self._names(term))

    def _creation(self, spot: Spot, term: Term, copies: int) -> Reason:
        why = (
            "What is made of ranges and constants has no layout of its own: it is made in the one that its reader wants"
        )
        why += f", here in {copies} of them." if copies > 1 else "."
        weighed = (f"one layout and {copies - 1} conversion{'s' * (copies > 2)} of it",) if copies > 1 else ()
        return self._reason(spot, "layout", self._said(term), why, weighed=weighed, names=self._names(term))


def _cost(node: Node | None) -> str:
    """How much a value is: what a conversion moves, or a buffer holds."""
    if node is None or not node.shape or not node.bits:
        return ""
    return f"{node.elements} elements, {node.elements * node.bits // 8} bytes a program"


def _extents(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape))


def _shape(fact: DotFact) -> str:
    def said(operand: DotOperandFact) -> str:
        return f"{_extents(operand.shape)} {operand.element}"

    return f"{said(fact.a)} by {said(fact.b)}"
