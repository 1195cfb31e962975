"""Joins what propagation decided under each launch into one plan of source edits.

A kernel has one text for all its launches: a place must get one layout whichever launch reaches it. A helper has
one text for all its callers: each distinct layout that its callers want becomes a constexpr parameter of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tt2gl.analysis.choices import conditional
from tt2gl.analysis.collected import Body, Conflict, Context, Function, Labels, Version, Wanted, collect
from tt2gl.analysis.facts import Position
from tt2gl.analysis.graph import CallSite, FunctionKey
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.naming import class_names, listed, unused
from tt2gl.analysis.propagation import Decisions, DotWant
from tt2gl.analysis.staging import Refusal
from tt2gl.analysis.terms import IN_RING, Cut, Operand, Pair, Stored, Term, Turned, renamed, rendered, root_of, skeleton
from tt2gl.plan import ENTRY, STAGES, Conversion, Declaration, Dot, Edits, FunctionPlan, Ring, Stages, Store


@dataclass
class KernelAnalysis:
    """Launches of one kernel, analysed. `taken` are names that its layouts must not shadow.

    `label`: what tells these launches from others of the kernel, where it has several bodies. `bodies`: the functions
    of which they have a text of their own, and its name.
    """

    function: FunctionKey
    name: str
    scenes: Sequence[Scene]
    classes: Classes
    decisions: Sequence[Decisions]
    taken: frozenset[str]
    names: dict[str, str] = field(default_factory=dict)
    stages: Stages | None = None
    refused: tuple[Refusal, ...] = ()
    wide: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    unreached: dict[FunctionKey, list[Position]] = field(default_factory=dict)
    unverified: dict[FunctionKey, Position] = field(default_factory=dict)
    label: str = ""
    bodies: dict[FunctionKey, str] = field(default_factory=dict)

    @property
    def tiles_in_rings(self) -> bool:
        """Whether some ring is of tiles that a descriptor says."""
        return any(want.tile and want.name for made in self.decisions for _, want in made.staged.values())

    def body(self, key: FunctionKey) -> Body:
        """The text that these launches have of a function: one of their own, by its name in `bodies`, or everyone's."""
        return (*key, self.bodies.get(key, ""))


@dataclass(frozen=True)
class _Call:
    """A call of a helper under one launch, with the bodies that the launch has of both functions."""

    kernel: int
    launch: int
    site: CallSite
    caller: Body
    callee: Body


class Planner:
    """Makes the plans of the functions that the analysed kernels are made of."""

    def __init__(self, analyses: Sequence[KernelAnalysis]) -> None:
        self.analyses = analyses
        self.kernels = {analysis.body(analysis.function): analysis for analysis in analyses}
        self.functions: dict[Body, Function] = {key: Function() for key in self.kernels}
        self.parameters: dict[Body, dict[str, Wanted]] = {}
        self.choices: dict[Body, dict[str, tuple[dict[int, str], str]]] = {}
        self.operands: dict[Body, dict[str, str]] = {}
        self.passed: dict[tuple[Body, Position], dict[str, Wanted]] = {}
        for place, analysis in enumerate(analyses):
            analysis.names = class_names(analysis.classes, analysis.taken)
            for launch, decisions in enumerate(analysis.decisions):
                collect(self.functions, place, launch, decisions, analysis.body)
            for scene in analysis.scenes:
                for key in scene.graph.touched:
                    self.functions.setdefault(analysis.body(key), Function()).touched = True
        self.calls = [
            _Call(place, launch, call, analysis.body(call.caller), analysis.body(call.callee))
            for place, analysis in enumerate(analyses)
            for launch, scene in enumerate(analysis.scenes)
            for call in scene.graph.calls
        ]
        self._pass_layouts()
        self.staged = self._staged()
        self.borrowed = self._borrowed()

    def plans(self) -> list[FunctionPlan]:
        """Plans of every function that changes. Raises `Conflict`."""
        return [
            self._plan(key, function)
            for key, function in self.functions.items()
            if key in self.kernels or function.edited or self.parameters.get(key) or key in self.staged
        ]

    def _pass_layouts(self) -> None:
        """Give every edited helper its parameters, innermost first, and its callers what they must pass."""
        calls = sorted(self.calls, key=lambda call: -len(call.site.context))
        for callee in dict.fromkeys(call.callee for call in calls):
            self._parametrise(callee)
            for call in calls:
                if call.callee != callee:
                    continue
                place, launch, site = call.kernel, call.launch, call.site
                inside: Context = (place, launch, ((call.caller[0], *site.position[:2]), *site.context))
                for name, wanted in self.parameters[callee].items():
                    # A call that takes another branch than the one with this layout is given it all the same.
                    others = [term for context, term in wanted.items() if context[:2] == (place, launch)]
                    if others:
                        passed = self.passed.setdefault((call.caller, site.position), {}).setdefault(name, {})
                        passed[place, launch, site.context] = wanted.get(inside, others[0])
                        self.functions.setdefault(call.caller, Function())

    def _staged(self) -> dict[Body, Stages]:
        """The functions that pipeline loops, or call one that does, and what each knows the number of stages by."""
        found = {key for key, function in self.functions.items() if any(ring.name for ring in function.rings.values())}
        while more := {call.caller for call in self.calls if call.callee in found} - found:
            found |= more
        staged: dict[Body, Stages] = {}
        for key in found:
            own = self.kernels[key].stages if key in self.kernels else Stages(STAGES, parameter=True)
            if own is not None:
                staged[key] = own
        return staged

    def _borrowed(self) -> dict[Body, frozenset[str]]:
        """The kernel's parameters that helpers need for the extents of what they allocate, and so do their callers."""
        found: dict[Body, frozenset[str]] = {}
        for analysis in self.analyses:
            for scene in analysis.scenes:
                for key, names in scene.graph.borrowed.items():
                    found[analysis.body(key)] = found.get(analysis.body(key), frozenset()) | names
        changed = True
        while changed:
            changed = False
            for call in self.calls:
                missing = found.get(call.callee, frozenset()) - found.get(call.caller, frozenset())
                if call.caller not in self.kernels and missing:
                    found[call.caller] = found.get(call.caller, frozenset()) | missing
                    changed = True
        return found

    def _extents(self, key: Body) -> dict[Position, list[tuple[str, str]]]:
        """The kernel's parameters that a function passes on to its helpers."""
        calls = [call for call in self.calls if call.caller == key]
        return {
            call.site.position: [(name, name) for name in sorted(self.borrowed[call.callee])]
            for call in calls
            if self.borrowed.get(call.callee)
        }

    def _stage_arguments(self, key: Body) -> dict[Position, tuple[str, str]]:
        """The number of stages, as a function passes it on to the helpers that pipeline loops."""
        own = self.staged.get(key)
        if own is None:
            return {}
        calls = [call for call in self.calls if call.caller == key and call.callee in self.staged]
        return {call.site.position: (STAGES, own.used) for call in calls}

    def _parametrise(self, key: Body) -> None:
        """One parameter for all places of a helper that always want the same layout, or one made of the same."""
        function = self.functions.get(key, Function())
        passed = [terms for (caller, _), names in self.passed.items() if caller == key for terms in names.values()]
        groups: list[Wanted] = []
        for wanted in [*function.layouts(), *passed]:
            made_of = _roots(wanted)
            for group in groups:
                alike = made_of.keys() & group.keys() or set(made_of.values()) <= set(group.values())
                if alike and all(group.get(context, term) == term for context, term in made_of.items()):
                    group.update(made_of)
                    break
            else:
                groups.append(dict(made_of))
        named: dict[str, Wanted] = {}
        for group in groups:
            (kernel, *_), term = next(iter(group.items()))
            analysis = self.analyses[kernel]
            name = "layout" if len(groups) == 1 else analysis.names.get(root_of(term).name, "layout")
            named[unused(name, {*named, *analysis.taken})] = group
        self.parameters[key] = named

    def _spelled(self, key: Body, wanted: Wanted, position: Position) -> str:
        """The one text for what all contexts want at a place. Raises `Conflict` where there is none.

        A kernel says it by its layouts' names, by a name of its own where it depends on a flag; a helper by the
        parameter that brings it.
        """
        if IN_RING in wanted.values():
            if any(term != IN_RING for term in wanted.values()):
                raise Conflict(key, position, [wanted])
            return ""
        if key not in self.kernels:
            made_of = _roots(wanted)
            for name, group in self.parameters.get(key, {}).items():
                if all(group.get(context) == term for context, term in made_of.items()):
                    term = next(iter(wanted.values()))
                    return name if made_of == wanted else rendered(renamed(term, {root_of(term).name: name}))
            raise Conflict(key, position, [wanted])
        analysis = self.kernels[key]
        said = {context[1]: rendered(renamed(term, analysis.names)) for context, term in wanted.items()}
        if len(set(said.values())) == 1:
            text, term = next(iter(said.values())), next(iter(wanted.values()))
            return self._with_names(analysis, text, term)
        return self._choice(analysis, said, position, wanted)

    def _told_apart(self, key: Body, wanted: Wanted, position: Position) -> str:
        """What tells a version of a variable from others: its layout.

        In a helper an argument, and what is computed of it in that layout, comes in one that is not spelled.
        """
        try:
            return self._spelled(key, wanted, position)
        except Conflict:
            if position != ENTRY and key in self.kernels:
                raise
            return "as it comes"

    def _with_names(self, analysis: KernelAnalysis, text: str, term: Term) -> str:
        """A layout's source, with a name for what it has of a dot's operand or transposition."""
        inner = term
        while isinstance(inner, Cut | Pair):
            inner = inner.parent
        if not isinstance(inner, Operand | Turned):
            return text
        said = rendered(renamed(inner, analysis.names))
        return text.replace(said, self._derived(analysis, said, inner))

    def _derived(self, analysis: KernelAnalysis, text: str, term: Operand | Turned) -> str:
        """The name of a layout of a dot's operand or transposition: `rhs_layout`, or `acc_rhs_layout` of several."""
        known = self.operands.setdefault(analysis.body(analysis.function), {})
        if text not in known:
            side = ("lhs", "rhs")[term.index] if isinstance(term, Operand) else "turned"
            whole = analysis.names[term.parent.name].removesuffix("_layout")
            name = f"{side}_layout" if whole == "mma" else f"{whole}_{side}_layout"
            known[text] = unused(name, {*analysis.taken, *analysis.names.values(), *known.values()})
        return known[text]

    def _choice(self, analysis: KernelAnalysis, said: dict[int, str], position: Position, wanted: Wanted) -> str:
        """A name for a layout that depends on a flag: the known one that agrees, or a new one."""
        body = analysis.body(analysis.function)
        known = self.choices.setdefault(body, {})
        for name, (others, _) in known.items():
            together = {**others, **said}
            shared = others.keys() & said.keys()
            if len(shared) > 1 and all(others[i] == said[i] for i in shared):
                source = conditional(together, [scene.launch for scene in analysis.scenes])
                if source is not None:
                    known[name] = (together, source)
                    return name
        source = conditional(said, [scene.launch for scene in analysis.scenes])
        if source is None:
            raise Conflict(body, position, [wanted])
        taken = {*analysis.taken, *analysis.names.values(), *known}
        name = unused("chosen_layout", taken)
        known[name] = (said, source)
        return name

    def _plan(self, key: Body, function: Function) -> FunctionPlan:
        labels = Labels(key, function, lambda wanted, position: self._told_apart(key, wanted, position))
        conversions: dict[Position, list[Conversion]] = {}
        for (statement, variable), steps in function.after.items():
            made = conversions.setdefault(statement, [])
            if statement == ENTRY and variable in function.given:
                # Some callers have it in shared memory already.
                raise Conflict(key, ENTRY, [function.given[variable], {context: term for context, _, term in steps}])
            for context, source, target in steps:
                layout = self._spelled(key, {context: target}, statement)
                into = labels.label(variable, context, target)
                dims, in_place = (target.dims, target.in_place) if isinstance(target, Stored) else (None, True)
                step = Conversion(into, labels.label(variable, context, source), layout, dims, in_place)
                if step not in made:
                    made.append(step)
        everywhere, copies = self._edits(key, function, labels)
        return FunctionPlan(
            path=key[0],
            line=key[1],
            name=key[2],
            calls={call.callee[1]: call.callee[2] for call in self.calls if call.caller == key and call.callee[2]},
            is_kernel=key in self.kernels,
            host_tiles=self._host_tiles(key),
            parameters=(*sorted(self.borrowed.get(key, ())), *self.parameters.get(key, {})),
            declarations=self._declarations(key, function),
            edits=everywhere,
            copies=copies,
            conversions={statement: tuple(steps) for statement, steps in conversions.items()},
            rings=self._rings(key, function),
            stages=self.staged.get(key),
            wide=frozenset(n for analysis in self.analyses for n in analysis.wide.get(key[:2], ())),
        )

    def _host_tiles(self, key: Body) -> bool:
        """Whether the host gives a kernel tensor descriptors."""
        scenes = self.kernels[key].scenes if key in self.kernels else ()
        return any(kind.startswith("tensordesc") for scene in scenes for kind in scene.launch.signature.values())

    def _rings(self, key: Body, function: Function) -> tuple[Ring, ...]:
        """The rings of a function's loads, by name: one for the loads of one variable."""
        made: dict[str, Ring] = {}
        for (kind, position), entries in function.slots.items():
            if kind == "ring":
                slot = {entry.context: entry.term for entry in entries}
                want = function.rings[position]
                layout = self._spelled(key, slot, position)
                made.setdefault(want.name, Ring(want.name, want.dtype, _dims(slot), layout, want.in_memory, want.tile))
        return tuple(ring for ring in made.values() if ring.name)

    def _edits(self, key: Body, function: Function, labels: Labels) -> tuple[Edits, dict[Position, tuple[Edits, ...]]]:
        """Edits of the statements that stand once, and of each copy of the others."""

        def edits(statement: Position | None, version: Version | None) -> Edits:
            def spelled(kind: str) -> dict[Position, str]:
                found = function.wanted(kind, statement, version)
                return {position: self._spelled(key, wanted, position) for position, wanted in found.items()}

            def labelled(kind: str) -> dict[Position, str]:
                return {
                    position: name
                    for position, wanted in function.wanted(kind, statement, version).items()
                    if (name := labels.common(function.variables[position], wanted, position))
                }

            out_of_reach = self._out_of_reach(key) if statement is None else {}

            def inside_of(position: Position) -> bool:
                return statement is None or _within(position, statement)

            passed = {p: names for (caller, p), names in self.passed.items() if caller == key and inside_of(p)}
            memory, lhs = spelled("memory"), spelled("lhs")
            for position, wanted in function.wanted("scaled", statement, version).items():
                if len(set(wanted.values())) > 1:
                    raise Conflict(key, position, [wanted])
            extents = {p: names for p, names in self._extents(key).items() if inside_of(p)}
            stages = {p: pair for p, pair in self._stage_arguments(key).items() if inside_of(p)}
            return Edits(
                creations={**out_of_reach, **spelled("creation")},
                converts=spelled("convert"),
                expansions={p: rank for p, rank in function.ranks.items() if inside_of(p)},
                indexed={p: what for p, what in function.indexed.items() if inside_of(p)},
                fills={p: (function.dims[p], layout) for p, layout in spelled("fill").items()},
                staged={p: (function.rings[p].name, layout) for p, layout in spelled("staged").items()},
                tiles={p: kind for p, kind in function.tiles.items() if inside_of(p)},
                views={p: order for p, order in function.views.items() if inside_of(p)},
                loads=spelled("load"),
                stores={
                    p: Store(self._spelled(key, wanted, p), _dims(wanted))
                    for p, wanted in function.wanted("store", statement, version).items()
                },
                dots={
                    p: _dot(function.dots[p], layout, memory.get(p), lhs.get(p)) for p, layout in spelled("dot").items()
                },
                reads=labelled("read"),
                targets=labelled("target"),
                arguments={
                    position: (
                        *extents.get(position, ()),
                        *(
                            (name, self._spelled(key, wanted, position))
                            for name, wanted in passed.get(position, {}).items()
                        ),
                        *((stages[position],) if position in stages else ()),
                    )
                    for position in {**passed, **stages, **extents}
                },
            )

        copies = {s: tuple(edits(s, version) for version in each) for s, each in function.copied().items()}
        return edits(None, None), copies

    def _out_of_reach(self, key: Body) -> dict[Position, str]:
        """Creating calls that no launch of any kernel reaches: the compiler is left to infer their layout."""
        places = [
            set(analysis.unreached.get(key[:2], ())) for analysis in self.analyses if self._reaches(analysis, key)
        ]
        return dict.fromkeys(set.intersection(*places), "gl.AutoLayout()") if places else {}

    @staticmethod
    def _reaches(analysis: KernelAnalysis, key: Body) -> bool:
        functions = (f for scene in analysis.scenes for f in scene.facts.functions.values())
        return any(analysis.body((function.path, function.line)) == key for function in functions)

    def _declarations(self, key: Body, function: Function) -> tuple[Declaration, ...]:
        """The layouts that a kernel's text mentions, its helpers' arguments included."""
        analysis = self.kernels.get(key)
        if analysis is None:
            return ()
        passed = [terms for (caller, _), names in self.passed.items() if caller == key for terms in names.values()]
        used = {root_of(term).name for wanted in [*function.layouts(), *passed] for term in wanted.values()}
        made: list[Declaration] = []
        for layout in analysis.classes.classes:
            if layout.name in used:
                served = [pointer for pointer in layout.pointers if pointer]
                comment = f"coalesced access to {listed(served)}" if served else ""
                made.append(Declaration(analysis.names[layout.name], layout.source, comment))
        made.extend(Declaration(name, source, "") for source, name in self.operands.get(key, {}).items())
        choices = self.choices.get(key, {})
        made.extend(Declaration(name, source, "") for name, (_, source) in choices.items())
        return (*made, *(analysis.stages.declared if analysis.stages is not None else ()))


def _roots(wanted: Wanted) -> Wanted:
    """The layouts that those wanted are made of, where all are made of theirs in one way; else as they are."""
    if len({skeleton(term) for term in wanted.values()}) == 1:
        return {context: root_of(term) for context, term in wanted.items()}
    return wanted


def _dims(wanted: Wanted) -> tuple[str, ...]:
    """The extents of what is put into shared memory."""
    return next(term.dims for term in wanted.values() if isinstance(term, Stored))


def _dot(want: DotWant, layout: str, memory: str | None, lhs: str | None) -> Dot:
    """A dot as the plan has it; its layouts in tensor memory, where it lies there, as source."""
    site = want.site
    return Dot(
        site.call,
        site.a,
        site.b,
        site.accumulator,
        want.instruction,
        layout,
        want.dims,
        site.dtype,
        site.precision,
        site.imprecise,
        site.is_sum,
        want.name,
        memory,
        Store(lhs, want.lhs.dims) if lhs is not None and want.lhs is not None else None,
        site.scaled,
        site.promoted,
    )


def _within(inner: Position, outer: Position) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]
