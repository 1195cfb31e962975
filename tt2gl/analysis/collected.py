"""Decisions of all launches and callers, gathered by function: one slot for each place in the source.

A slot holds what every context (kernel, launch, chain of calls) wants of it. A statement whose variable is wanted in
several layouts stands several times; which copy of one context is which of another is settled here (`Version`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tt2gl.analysis.decisions import Clone, Decisions, DotWant, NamedWeb, Passed, RingWant, Spot, both_ways
from tt2gl.analysis.facts import Position
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.terms import IN_RING, Root, Stored, Term
from tt2gl.analysis.versions import Context, Group, Version, Wanted

Body = tuple[str, int, str]
"""A function's text: file, line of its `def`, and its name where some launches have a text of their own, else empty."""

LAYOUT_KINDS = ("creation", "convert", "fill", "staged", "ring", "load", "store", "dot", "memory", "lhs")


class Conflict(Exception):
    """Two launches, or two callers, want different layouts where the text can say only one: `wanted`."""

    def __init__(self, function: Body, position: Position, wanted: Sequence[Wanted]) -> None:
        super().__init__(f"{function[0]}:{position[0]}:{position[1]}")
        self.function, self.position, self.wanted = function, position, wanted


@dataclass(frozen=True)
class Entry:
    """What one context wants of one place, in one copy of its statement."""

    context: Context
    clone: Clone
    term: Term


@dataclass
class Function:
    """Everything decided about one function."""

    slots: dict[tuple[str, Position], list[Entry]] = field(default_factory=dict)
    statements: dict[Position, Position] = field(default_factory=dict)
    variables: dict[Position, str] = field(default_factory=dict)
    dims: dict[Position, tuple[str, ...]] = field(default_factory=dict)
    ranks: dict[Position, tuple[int, int]] = field(default_factory=dict)
    indexed: dict[Position, str] = field(default_factory=dict)
    shortened: dict[Position, str] = field(default_factory=dict)
    passed: dict[Position, Passed] = field(default_factory=dict)
    tiles: dict[Position, str] = field(default_factory=dict)
    views: dict[Position, tuple[int, ...]] = field(default_factory=dict)
    rings: dict[Position, RingWant] = field(default_factory=dict)
    dots: dict[Position, DotWant] = field(default_factory=dict)
    touched: bool = False
    webs: list[tuple[Context, NamedWeb]] = field(default_factory=list)
    rows: set[tuple[int, Term]] = field(default_factory=set)
    after: dict[tuple[Position, str], list[tuple[Context, Term, Term]]] = field(default_factory=dict)
    given: dict[str, Wanted] = field(default_factory=dict)
    ranges: dict[str, set[Context]] = field(default_factory=dict)
    mentions: dict[Position, tuple[str, set[Position]]] = field(default_factory=dict)
    recast: set[tuple[Position, str, Context, Term]] = field(default_factory=set)
    sources: dict[Position, dict[Context, Position]] = field(default_factory=dict)
    constants: dict[Position, tuple[str, Position]] = field(default_factory=dict)

    @cached_property
    def groups(self) -> list[Group]:
        """The webs of all contexts, those of one variable together that share a statement."""
        made: list[Group] = []
        for _, web in self.webs:
            statements = set(web.statements)
            for group in [g for g in made if g.name == web.name and g.statements & statements]:
                statements |= group.statements
                made.remove(group)
            made.append(Group(web.name, statements, reads=self._reads.get(web.name, {})))
        for group in made:
            own = [each for each in self.webs if each[1].name == group.name]
            own = [each for each in own if group.statements & set(each[1].statements)]
            group.cheap = all(web.cheap for _, web in own)
            for context, web in own:
                group.add(context, web.terms, converted=False)
                group.add(context, web.converted, converted=True)
            group.convert_alike()
            group.compute_alike(self.rows)
        return made

    @cached_property
    def _reads(self) -> dict[str, dict[tuple[Context, Term], set[Position]]]:
        """Where contexts read each variable in each of its layouts."""
        made: dict[str, dict[tuple[Context, Term], set[Position]]] = {}
        for position, each in ((p, each) for (kind, p), some in self.slots.items() if kind == "read" for each in some):
            made.setdefault(self.variables[position], {}).setdefault((each.context, each.term), set()).add(position)
        return made

    @cached_property
    def copied(self) -> dict[Position, list[Version]]:
        """The statements that stand several times, with the layout of each copy."""
        return {
            statement: group.computed
            for group in self.groups
            for statement in group.statements
            if len(group.computed) > 1
        }

    @cached_property
    def _places(self) -> dict[tuple[str, Position | None], list[Position]]:
        """The places of each kind: in a statement that stands several times, and in all others."""
        made: dict[tuple[str, Position | None], list[Position]] = {}
        for kind, position in self.slots:
            owner = self.statements[position]
            made.setdefault((kind, owner if owner in self.copied else None), []).append(position)
        return made

    def _is_made_anew(self, kind: str, position: Position) -> bool:
        """Whether a place has the layout of its statement's copy, and nothing is read there: a range that is named."""
        if kind not in ("creation", "target") or any(each.term != each.clone for each in self.slots[kind, position]):
            return False
        return not self._places.get(("read", self.statements[position]))

    def wanted(self, kind: str, statement: Position | None, version: Version | None) -> dict[Position, Wanted]:
        """What is wanted at each place of a kind: in one copy of a statement, or in all that stand once.

        What a helper is given in a call is wanted in no copy above others: each has the call, so each has it.
        """
        found: dict[Position, Wanted] = {}
        for position in self._places.get((kind, statement), ()):
            for entry in self.slots[kind, position]:
                if version is None or version.wanted.get(entry.context) == entry.clone:
                    found.setdefault(position, {})[entry.context] = entry.term
                elif entry.clone is None:
                    found.setdefault(position, {}).setdefault(entry.context, entry.term)
            if version is not None and position not in found and self._is_made_anew(kind, position):
                # The launches that have this layout do not come here: others would read an older value.
                found[position] = version.wanted
        if kind == "convert":
            # What one launch converts, all do: where a value is right as it is, to the layout that it has.
            for position, wanted in self.wanted("unconverted", statement, version).items():
                if position in found:
                    found[position] = wanted | found[position]
        return found

    def brought_apart(self, at: Position | None, version: Version | None) -> Iterator[tuple[Position, list[Wanted]]]:
        """The operands that some contexts load from shared memory as they take them, and others convert to that.

        Or have in registers, where the first are given memory: one text cannot read both. With what each wants.
        """
        converted = self.wanted("convert", at, version)
        stored, kept = self.wanted("store", at, version), self.wanted("unconverted", at, version)
        for position, loaded in self.wanted("load", at, version).items():
            after = converted.get(position, {})
            in_registers = {**kept.get(position, {}), **after}
            if any(context in after and after[context] != term for context, term in loaded.items()):
                yield position, [after, loaded]
            elif position not in stored and not in_registers.keys() <= loaded.keys():
                yield position, [in_registers, loaded]

    def layouts(self) -> Iterator[Wanted]:
        """What each place that spells a layout wants."""
        for wanted in (*self._shared_rings(), *self._layouts()):
            named = {context: term for context, term in wanted.items() if term != IN_RING}
            if named:
                yield named

    def _shared_rings(self) -> Iterator[Wanted]:
        """What each ring of several loads is laid out as: launches may take one load each, and share no context."""
        shared: dict[str, list[Wanted]] = {}
        for position, wanted in self.wanted("ring", None, None).items():
            shared.setdefault(self.rings[position].name, []).append(wanted)
        for several in shared.values():
            joined = {context: term for wanted in several for context, term in wanted.items()}
            if len(several) > 1 and all(wanted.items() <= joined.items() for wanted in several):
                yield joined

    def _layouts(self) -> Iterator[Wanted]:
        for kind in LAYOUT_KINDS:
            yield from self.wanted(kind, None, None).values()
            for statement, versions in self.copied.items():
                for version in versions:
                    yield from self.wanted(kind, statement, version).values()
        for statement, variable in self.after:
            for steps in self.conversions(statement, variable):
                yield {context: target for context, (_, target) in steps.items()}

    def conversions(self, statement: Position, variable: str) -> list[dict[Context, tuple[Term, Term]]]:
        """What stands below a statement, of which layout to which: contexts together that make the same version."""
        versions = [version for group in self.groups if group.name == variable for version in group.versions]

        def place(context: Context, term: Term) -> object:
            found = (at for at, version in enumerate(versions) if version.wanted.get(context) == term)
            return next(found, (context, term))

        made: dict[tuple[object, object], dict[Context, tuple[Term, Term]]] = {}
        for context, source, target in self.after[statement, variable]:
            step = place(context, source), place(context, target)
            made.setdefault(step, {})[context] = source, target
        for (_, at), joined in made.items():
            if isinstance(at, int):
                joined.update((each, (versions[at].wanted[each],) * 2) for each in versions[at].idle)
        return list(made.values())

    @property
    def edited(self) -> bool:
        """Whether any text changes."""
        named = self.ranks or self.indexed or self.tiles or self.views
        return bool(self.touched or named or any(True for _ in self.layouts()))


def collect(
    functions: dict[Body, Function],
    kernel: int,
    launch: int,
    decisions: Decisions,
    body: Callable[[FunctionKey], Body],
) -> None:
    """Add one launch's decisions to `functions`, each to the `body` that the launch has of a function."""
    collector = _Collector(functions, kernel, launch, decisions, body)
    collector.layouts()
    collector.products()
    collector.words()
    collector.variables()


@dataclass(frozen=True)
class _Collector:
    """What `collect` is asked for."""

    functions: dict[Body, Function]
    kernel: int
    launch: int
    decisions: Decisions
    body: Callable[[FunctionKey], Body]

    def layouts(self) -> None:
        """The webs of variables, where layouts stand, and those that variables are read and given in."""
        decisions = self.decisions
        for web in decisions.webs:
            self._of(web.function).webs.append(((self.kernel, self.launch, web.context), web))
        for kind, wanted in (("creation", decisions.creations), ("convert", decisions.converts)):
            for spot, term in wanted.items():
                self._put(kind, spot, spot.site.position, term)
        for spot, term in decisions.unconverted.items():
            if not isinstance(term, Stored):
                self._put("unconverted", spot, spot.site.position, term)
        for (spot, position), (dims, term) in decisions.fills.items():
            self._put("fill", spot, position, term).dims[position] = dims
        for kind, named in (("read", decisions.reads), ("target", decisions.targets)):
            for spot, (name, term) in named.items():
                self._put(kind, spot, spot.site.position, term).variables[spot.site.position] = name
        for spot, statement in decisions.sources.items():
            known = self._at(spot).sources.setdefault(spot.site.position, {})
            known[self.kernel, self.launch, spot.site.context] = statement
        for spot, (missing, rank) in decisions.expansions.items():
            function = self._put("rank", spot, spot.site.position, Root(f"{missing} dimensions"))
            if missing:
                function.ranks[spot.site.position] = missing, rank

    def products(self) -> None:
        """Loads through rings, dots, and what goes to shared memory and comes from there for those."""
        for spot, (term, ring) in self.decisions.staged.items():
            self._put("staged", spot, spot.site.position, term).rings[spot.site.position] = ring
            self._put("ring", spot, spot.site.position, ring.slot)
        for spot, (term, dot) in self.decisions.dots.items():
            products = self._put("dot", spot, spot.site.position, term).dots
            products[spot.site.position] = both_ways(products.get(spot.site.position, dot), dot)
            for kind, position, asked in _asked_of(dot, spot.site.position):
                self._put(kind, spot, position, asked)
        for kind, wanted in (("load", self.decisions.loads), ("store", self.decisions.stores)):
            for spot, term in wanted.items():
                self._put(kind, spot, spot.site.position, term)

    def words(self) -> None:
        """What calls become, whichever layouts they have."""
        decisions = self.decisions
        for spot, kind in decisions.tiles.items():
            self._at(spot).tiles[spot.site.position] = kind
        for spot, order in decisions.views.items():
            self._at(spot).views[spot.site.position] = order
        for site, (name, statement) in decisions.mentions.items():
            mentions = self._of(site.function).mentions
            mentions.setdefault(site.position, (name, set()))[1].add(statement)
        for spot, what in decisions.indexed.items():
            self._at(spot).indexed[spot.site.position] = what
        for spot, element in decisions.shortened.items():
            # What has fewer bits under one launch has more under another: it is converted as it is.
            known = self._at(spot).shortened
            known[spot.site.position] = element if known.get(spot.site.position, element) == element else ""
        for spot, passed in decisions.passed.items():
            self._at(spot).passed[spot.site.position] = passed

    def variables(self) -> None:
        """What stands below the statements that give variables their values."""
        decisions, launch = self.decisions, (self.kernel, self.launch)
        for (key, statement, chain), steps in decisions.after.items():
            made = self._of(key).after
            for name, source, target in steps:
                made.setdefault((statement, name), []).append(((*launch, chain), source, target))
        for key, statement, chain, name, term in decisions.recast:
            self.functions[self.body(key)].recast.add((statement, name, (*launch, chain), term))
        for key, chain, name in sorted(decisions.ranges):
            self.functions[self.body(key)].ranges.setdefault(name, set()).add((*launch, chain))
        for (key, chain, name), slot in decisions.given.items():
            self._of(key).given.setdefault(name, {})[*launch, chain] = slot

    def _of(self, key: FunctionKey) -> Function:
        return self.functions.setdefault(self.body(key), Function())

    def _at(self, spot: Spot) -> Function:
        return self._of(spot.site.function)

    def _put(self, kind: str, spot: Spot, position: Position, term: Term) -> Function:
        function = self._at(spot)
        entry = Entry((self.kernel, self.launch, spot.site.context), spot.clone, term)
        function.slots.setdefault((kind, position), []).append(entry)
        function.statements[position] = spot.site.statement
        return function


def _asked_of(dot: DotWant, position: Position) -> Iterator[tuple[str, Position, Term]]:
    """What a product at a position asks for beside its own layout, where, and what must not differ between launches."""
    # No layouts, but what may differ all the same: a product of another type than its sum stands beside it.
    # Tensor memory is allocated for elements of one type.
    kept_as = dot.site.dtype if dot.memory is not None else ""
    # What one call of a helper gives it to add to, and another does not, one text would leave out.
    begins = dot.site.accumulator is None
    yield "sum", dot.site.call, Root(f"{dot.site.promoted}, {dot.site.is_sum}, {dot.site.start}, {kept_as}, {begins}")
    if dot.site.scaled is not None:
        yield "scaled", position, Root(str(dot.site.scaled))
    if dot.instruction == "wgmma":
        # A number that is None under one launch is one that the instruction does not take.
        yield "imprecise", position, Root(str(dot.site.imprecise))
    if dot.memory is not None:
        yield "memory", position, dot.memory
    if dot.lhs is not None:
        yield "lhs", position, dot.lhs
