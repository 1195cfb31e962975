"""Layout propagation over the value graph: who has a layout, who takes one, who must convert.

Anchors (global accesses with at least as many elements as threads) have layouts of their own; these flow forward
through elementwise work, slices, reductions and loop-carried names. Everything made only of ranges, constants and
scalars is cheap: it has no layout until a reader demands one, and is computed again for a reader that demands
another. Where two layouts that are not cheap meet, the smaller value is converted. The passes of Triton that this
follows are Coalesce and RemoveLayoutConversions (forward from anchors, backward rematerialisation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tt2gl.analysis.facts import CallChain, Position
from tt2gl.analysis.graph import Definition, FunctionKey, Node, Site, Web
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.terms import Cut, Pair, Root, Term

Clone = Term | None
"""Which copy of a statement an expression is in: by the layout of the name it defines; None outside definitions."""


_DEAR = ("store", "atomic", "reduce", "scan", "join", "split", "opaque", "call")


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


@dataclass
class Decisions:
    """What propagation decided for one launch, by place in the source."""

    creations: dict[Spot, Term] = field(default_factory=dict)
    converts: dict[Spot, Term] = field(default_factory=dict)
    expansions: dict[Spot, tuple[int, int]] = field(default_factory=dict)
    fills: dict[tuple[Spot, Position], tuple[tuple[str, ...], Term]] = field(default_factory=dict)
    reads: dict[Spot, tuple[str, Term]] = field(default_factory=dict)
    targets: dict[Spot, tuple[str, Term]] = field(default_factory=dict)
    indexed: dict[Spot, str] = field(default_factory=dict)
    webs: list[NamedWeb] = field(default_factory=list)
    after: dict[tuple[FunctionKey, Position], list[tuple[str, Term, Term]]] = field(default_factory=dict)


class Propagation:
    """Propagates layouts through one launch's graph."""

    def __init__(self, scene: Scene, index: int, classes: Classes) -> None:
        self.scene, self.index, self.classes = scene, index, classes
        self.graph, self.decisions = scene.graph, Decisions()
        self._done: set[tuple[int, Term | None, Clone]] = set()

    def run(self) -> Decisions:
        """Decide every layout of the graph."""
        self._mark_cheap()
        self._find_naturals()
        for step in self.graph.steps:
            if isinstance(step, Node):
                self.settle(step, None)
            elif (natural := step_web(step).natural) is not None:
                self.define(step, natural)
        for step in self.graph.steps:
            if isinstance(step, Definition):
                web = step_web(step)
                if web.natural is None and not web.versions:
                    self.demand(web, self._wanted(step.node))
        self._list_webs()
        return self.decisions

    # what has a layout of its own

    def _mark_cheap(self) -> None:
        """Find what may be computed twice: nothing that loads a full tile, reduces, or leaves through a helper."""
        for node in self.graph.nodes:
            node.anchored = node.chain in self.classes.anchored and node.kind in ("load", "store", "atomic")
        changed = True
        while changed:
            changed = False
            for node in self.graph.nodes:
                if node.cheap and not self._is_cheap(node):
                    node.cheap, changed = False, True
            for web in self._webs():
                if web.cheap and not self._is_cheap_web(web):
                    web.cheap, changed = False, True

    @staticmethod
    def _is_cheap_web(web: Web) -> bool:
        """Whether a variable may be computed twice: not where a loop accumulates what it loads."""
        carried = len({definition.depth for definition in web.definitions}) > 1
        return all(d.clonable and d.node.cheap and not (carried and _loads(d.node)) for d in web.definitions)

    def _is_cheap(self, node: Node) -> bool:
        if node.kind in _DEAR or node.anchored or node.several:
            return False
        if node.web is not None and not node.web.find().cheap:
            return False
        return all(operand.cheap for operand in node.operands)

    def _webs(self) -> Iterable[Web]:
        return (web for web in self.graph.webs if web.merged is None)

    def _find_naturals(self) -> None:
        """Flow layouts forward from the anchors until nothing changes; deepest definitions decide a name's."""
        while True:
            self._flow()
            undecided = [
                (definition.depth, -place, definition.node.natural, web)
                for place, web in enumerate(self._webs())
                if web.natural is None
                for definition in web.definitions
                if definition.node.natural is not None
            ]
            if not undecided:
                if not self._anchor_reduction():
                    return
                continue
            _, _, natural, web = max(undecided, key=lambda entry: entry[:2])
            web.natural = natural

    def _anchor_reduction(self) -> bool:
        """Give the first reduction or scan of values without a layout the default one of their tile."""
        for node in self.graph.nodes:
            undecided = node.kind in ("reduce", "scan") and node.shape and node.natural is None
            if undecided and all(operand.natural is None for operand in node.operands):
                node.operand_term = own = self.default(node.operands[0])
                node.natural = own if node.kind == "scan" else self._reduced(node, own)
                return node.natural is not None
        return False

    def _flow(self) -> None:
        changed = True
        while changed:
            changed = False
            for node in self.graph.nodes:
                if node.natural is None and (natural := self._natural(node)) is not None:
                    node.natural, changed = natural, True
            for web in self._webs():
                if web.natural is None and len(web.definitions) == 1:
                    web.natural = web.definitions[0].node.natural
                    changed |= web.natural is not None

    def _natural(self, node: Node) -> Term | None:
        match node.kind:
            case "atomic":
                return self.access_root(node)
            case "load":
                return self.access_root(node) if node.anchored else None
            case "elementwise":
                return self._strongest(node)
            case "expand":
                operand = node.operands[0].natural
                return operand.parent if isinstance(operand, Cut) and operand.dim == node.axis else None
            case "reduce":
                return self._reduced(node, node.operands[0].natural)
            case "scan":
                return node.operands[0].natural
            case "join":
                return self._paired(node.operands[0])
            case "split":
                operand = node.operands[0].natural
                whole = operand if isinstance(operand, Pair) else Pair(self.default(node))
                return Cut(len(node.shape), whole)
            case "read":
                return node.web.find().natural if node.web else None
            case "call" | "argument":
                return node.value.natural if node.value else None
        return None

    def _paired(self, operand: Node) -> Term:
        """The layout of two such values joined: one of them with a last dimension of two, or what was split before."""
        match operand.natural:
            case Cut(dim=dim, parent=Pair() as whole) if dim == len(operand.shape):
                return whole
            case Root() as known:
                return Pair(known)
        return Pair(self.default(operand))

    def _strongest(self, node: Node) -> Term | None:
        """The layout of the largest operand: it would cost most to convert. Of equal ones, the first."""
        best: tuple[int, Term] | None = None
        for operand in node.operands:
            if operand.natural is None or len(operand.shape) != len(node.shape):
                continue
            if best is None or operand.elements > best[0]:
                best = (operand.elements, operand.natural)
        return best[1] if best else None

    @staticmethod
    def _reduced(node: Node, operand: Term | None) -> Term | None:
        if operand is None or node.axis is None or not node.shape:
            return None
        return operand if node.keep_dims else Cut(node.axis, operand)

    def access_root(self, node: Node) -> Term:
        """The layout that a global access has by itself."""
        found = self.classes.by_chain.get(node.chain)
        return Root(found.name) if found else self.default(node)

    def default(self, node: Node) -> Term:
        """A layout for a value that nothing decides."""
        return Root(self.classes.default(node, self.index).name)

    # who takes which layout

    def define(self, definition: Definition, term: Term) -> None:
        """Give a definition's value its layout, in the copy of its statement that has it."""
        node = definition.node
        if node.kind != "argument" and definition.name != "return":
            self.decisions.targets[Spot(definition.site, term)] = (definition.name, term)
        if node.several:
            natural = self.settle(node, None)
            if natural != term:
                steps = self.decisions.after.setdefault((definition.site.function, definition.site.statement), [])
                if (definition.name, natural, term) not in steps:
                    steps.append((definition.name, natural, term))
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
            if web.natural is not None or web.versions:
                return web.natural if web.natural is not None else web.versions[0]
        if node.kind == "store":
            return self._store_term(node)
        if node.kind == "elementwise":
            for operand in node.operands:
                if operand.kind in ("read", "elementwise") and operand.shape == node.shape:
                    return operand.natural if operand.natural is not None else self._wanted(operand)
        if node.kind == "reduce" and node.shape:
            return self._reduced(node, self._operand_term(node)) or self.default(node)
        return self.default(node)

    def _operand_term(self, node: Node) -> Term:
        if node.operand_term is not None:
            return node.operand_term
        for operand in node.operands:
            if operand.natural is not None:
                return operand.natural
        return self._wanted(node.operands[0])

    def _store_term(self, node: Node) -> Term:
        """A small store is no anchor: it takes the layout of its value, then of its address.

        A small atomic keeps its own: in a slice of a tile one thread would make many, one after the other (10 us
        against 21 us for 32 rows on an H200).
        """
        if not node.anchored and node.kind == "store":
            for operand in (*node.operands[1:2], node.operands[0]):
                if operand.natural is not None and len(operand.shape) == len(node.shape):
                    return operand.natural
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
                self.decisions.creations[spot] = term
                together = [o for o in node.operands if o.natural is not None] if node.function == "histogram" else []
                for operand in node.operands:
                    if together and together[0].natural is not None:
                        self.resolve(operand, together[0].natural, clone)
                    else:
                        self.settle(operand, clone)
            case "expand":
                self.resolve(node.operands[0], Cut(node.axis or 0, term), clone)
            case "elementwise" | "load":
                own = node.natural if node.natural is not None else term
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
                own_reduced = self._reduced(node, taken)
                if own_reduced is not None:
                    self._convert(node, own_reduced, term, spot)
            case "scan":
                taken = self._operand_term(node)
                self._operands(node, taken, clone)
                self._convert(node, taken, term, spot)
            case "join":
                own = node.natural if node.natural is not None else self._paired(node.operands[0])
                halves = node.operands[0].natural
                split_before = isinstance(halves, Cut) and halves.parent == own
                for operand in node.operands:
                    self.resolve(operand, halves if split_before and halves else own.parent, clone)  # type: ignore[union-attr]
                self._convert(node, own, term, spot)
            case "split":
                assert isinstance(node.natural, Cut)
                self.resolve(node.operands[0], node.natural.parent, clone)
            case "opaque":
                shared = self._operand_term(node) if node.function == "interleave" else None
                for operand in node.operands:
                    self.resolve(operand, shared, clone) if shared else self.settle(operand, clone)
                if not node.several:
                    self.decisions.converts[spot] = term
            case "call" | "argument":
                self._passed(node, term, spot)

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

    def _convert(self, node: Node, own: Term, term: Term, spot: Spot) -> None:
        if own != term and not node.several:
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
            return
        self.decisions.reads[spot] = (web.name, web.natural)
        outside = [d for d in web.definitions if d.depth < node.depth and d.node.kind != "argument"]
        if len(outside) == len(web.definitions) == 1:
            # Converted once where it is defined, not again on every turn of the loop.
            made = outside[0]
            steps = self.decisions.after.setdefault((made.site.function, made.site.statement), [])
            if (web.name, web.natural, term) not in steps:
                steps.append((web.name, web.natural, term))
            self.decisions.reads[spot] = (web.name, term)
        else:
            self.decisions.converts[spot] = term

    def _list_webs(self) -> None:
        for web in self._webs():
            made = [d for d in web.definitions if d.node.kind != "argument" and d.name != "return"]
            if not made:
                continue
            site = made[0].site
            terms = [web.natural] if web.natural is not None else list(web.versions)
            steps = [s for d in made for s in self.decisions.after.get((d.site.function, d.site.statement), ())]
            converted = [target for name, _, target in steps if name == web.name and target not in terms]
            statements = tuple(dict.fromkeys(d.site.statement for d in made))
            self.decisions.webs.append(
                NamedWeb(site.function, site.context, web.name, statements, tuple(terms), tuple(converted), web.cheap)
            )


def _loads(node: Node) -> bool:
    """Whether an expression reads global memory, itself or through the names it reads."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if current.kind == "load":
            return True
        stack.extend(current.operands)
        if current.value is not None:
            stack.append(current.value)
        if current.web is not None:
            stack.extend(definition.node for definition in current.web.find().definitions)
    return False


def step_web(definition: Definition) -> Web:
    """The web that a definition is of."""
    assert definition.web is not None
    return definition.web.find()
