"""Joins what propagation decided under each launch into one plan of source edits.

A kernel has one text for all its launches: a place must get one layout whichever launch reaches it. A helper has
one text for all its callers: each distinct layout that its callers want becomes a constexpr parameter of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tt2gl.amd_shared_layouts import TURNED_TILE
from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.collected import Body, Conflict, Function, collect
from tt2gl.analysis.copies import copies_are_defined
from tt2gl.analysis.decisions import DotWant, said_by_itself
from tt2gl.analysis.facts import ConstFact, Position, TensorFact
from tt2gl.analysis.labels import Labels
from tt2gl.analysis.naming import access_comment, class_names
from tt2gl.analysis.passing import Passing
from tt2gl.analysis.spelling import Spelling
from tt2gl.analysis.terms import Root, Stored, is_inferred, root_of
from tt2gl.analysis.versions import Context, Version, Wanted
from tt2gl.plan import ENTRY, Conversion, Dot, Edits, FunctionPlan, Ring, Store
from tt2gl.stages import Declaration

_NUMBER = Root("a number")
"""What is wanted of an expression that has no layout, as it is a number where others have a tensor."""


class Planner:
    """Makes the plans of the functions that the analysed kernels are made of."""

    def __init__(self, analyses: Sequence[KernelAnalysis]) -> None:
        self.analyses = analyses
        self.kernels = {analysis.body(analysis.function): analysis for analysis in analyses}
        self.functions: dict[Body, Function] = {key: Function() for key in self.kernels}
        for place, analysis in enumerate(analyses):
            analysis.names = class_names(analysis.classes, analysis.taken)
            own = self.functions[analysis.body(analysis.function)]
            own.rows.update((place, Root(row.name)) for row in analysis.classes.classes if row.extent)
            for function in analysis.bodies:
                self.functions.setdefault(analysis.body(function), Function())
            for launch, decisions in enumerate(analysis.decisions):
                collect(self.functions, place, launch, decisions, analysis.body)
            for scene in analysis.scenes:
                for key in sorted(scene.graph.touched):
                    self.functions.setdefault(analysis.body(key), Function()).touched = True
                for name, site in sorted(scene.graph.constants, key=lambda each: (each[1].position, each[0])):
                    known = self.functions.setdefault(analysis.body(site.function), Function())
                    known.constants[site.statement] = name, site.position
        self.passing = Passing(analyses, self.kernels, self.functions)
        self.spelling = Spelling(self.kernels, self.passing)

    def plans(self) -> list[FunctionPlan]:
        """Plans of every function that changes. Raises `Conflict`."""
        return [
            self._plan(key, function)
            for key, function in self.functions.items()
            if key in self.kernels or self._differs(key, function)
        ]

    def _differs(self, key: Body, function: Function) -> bool:
        """Whether a helper's text does: one that has several bodies has them all, those as the author wrote it too."""
        return bool(key[2] or function.edited or self.passing.parameters.get(key) or key in self.passing.staged)

    def _plan(self, key: Body, function: Function) -> FunctionPlan:
        labels = Labels(key, function, lambda wanted, position: self.spelling.told_apart(key, wanted, position))
        copies_are_defined(key, function, labels)
        conversions: dict[Position, list[Conversion]] = {}
        for (statement, variable), steps in function.after.items():
            made = conversions.setdefault(statement, [])
            if statement == ENTRY and variable in function.given:
                # Some callers have it in shared memory already.
                raise Conflict(key, ENTRY, [function.given[variable], {context: term for context, _, term in steps}])
            for joined in function.conversions(statement, variable):
                wanted = {context: target for context, (_, target) in joined.items()}
                layout = self.spelling.spelled(key, wanted, statement)
                context, (source, target) = next(iter(joined.items()))
                into = labels.label(variable, context, target)
                dims = self._dims(key, wanted, statement) if isinstance(target, Stored) else None
                # What one launch's product reads in place is fenced, whatever others do.
                in_place = any(not isinstance(each, Stored) or each.in_place for each in wanted.values())
                narrow = target.narrow if isinstance(target, Stored) else ""
                counts = statement == ENTRY and joined.keys() <= function.ranges.get(variable, set())
                made_of, loads = labels.label(variable, context, source), isinstance(source, Stored)
                recast = any((statement, variable, *each) in function.recast for each in wanted.items())
                step = Conversion(into, made_of, layout, dims, in_place, counts, narrow, loads, recast)
                if step not in made:
                    made.append(step)
        everywhere, copies = self._edits(key, function, labels)
        rings = self._rings(key, function)
        # Last: what is spelled may get its name there.
        declarations = self._declarations(key, function)
        return FunctionPlan(
            path=key[0],
            line=key[1],
            name=key[2],
            calls=self.passing.bodies(key),
            is_kernel=key in self.kernels,
            host_tiles=self._host_tiles(key),
            host_parts=self.kernels[key].scenes[0].launch.parted if key in self.kernels else (),
            parameters=(*sorted(self.passing.borrowed.get(key, ())), *self.passing.parameters.get(key, {})),
            declarations=declarations,
            edits=everywhere,
            copies=copies,
            conversions={statement: tuple(steps) for statement, steps in conversions.items()},
            rings=rings,
            stages=self.passing.staged.get(key),
            wide=frozenset(n for analysis in self.analyses for n in analysis.wide.get(key[:2], ())),
            flattened=self._flattened(key),
            partitioned=self._partitioned(key),
            flags=self._flags(key, declarations),
        )

    def _flags(self, key: Body, declarations: Sequence[Declaration]) -> dict[str, tuple[str, ...]]:
        """What a kernel's layouts ask of a launch."""
        flags = self.kernels[key].classes.flags if key in self.kernels else {}
        said = {name for each in declarations for name in re.findall(r"\w+", each.source)}
        return {flag: names for flag, names in flags.items() if flag in said}

    def _flattened(self, key: Body) -> frozenset[str]:
        """The variables of a function's loops that each of its launches flattens."""
        own = [analysis.flattened for analysis in self.analyses if analysis.body(key[:2]) == key]
        said = [flattened[key[:2]] for flattened in own if key[:2] in flattened]
        return frozenset.intersection(*said) if said else frozenset()

    def _partitioned(self, key: Body) -> frozenset[tuple[int, int]]:
        """Where the loops of a kernel start that have warps of their own under each of its launches.

        One that writes what it loads has none: nothing would make its copies wait for that.
        """
        scenes = self.kernels[key].scenes if key in self.kernels else ()
        known = [scene.facts.lowered for scene in scenes]
        # Of two products, warps of their own scale the sum, as many again: 32 is all that a block has.
        warps = max((scene.launch.options.num_warps for scene in scenes), default=0)
        chained = any(len(each.dots) > 1 for each in known)
        if not all(each.may_be_parted for each in known) or chained and warps > 8:
            return frozenset()
        own = [{(line, column) for path, line, column in each.specialised if path == key[0]} for each in known]
        rereading = [analysis.rereading.get(key[:2], frozenset()) for analysis in self.analyses]
        return frozenset(set.intersection(*own)).difference(*rereading) if own else frozenset()

    def _host_tiles(self, key: Body) -> bool:
        """Whether the host gives a kernel tensor descriptors."""
        scenes = self.kernels[key].scenes if key in self.kernels else ()
        return any(kind.startswith("tensordesc") for scene in scenes for kind in scene.launch.signature.values())

    def _dims(self, key: Body, wanted: Wanted, position: Position) -> tuple[str, ...]:
        """The extents of what is put into shared memory; a helper has one text for them."""
        if key in self.kernels:
            return self.spelling.extents(key, wanted, position)
        found = [term.dims for term in wanted.values() if isinstance(term, Stored)]
        return next(filter(said_by_itself, found), found[0])

    def _rings(self, key: Body, function: Function) -> tuple[Ring, ...]:
        """The rings of a function's loads, by name: one for the loads of one variable, in whatever arms they stand."""
        found: dict[str, tuple[Position, dict[Context, Any]]] = {}
        for (kind, position), entries in function.slots.items():
            if kind == "ring" and (name := function.rings[position].name):
                _, slot = found.setdefault(name, (position, {}))
                for entry in entries:
                    slot.setdefault(entry.context, entry.term)
        made: list[Ring] = []
        for name, (position, slot) in found.items():
            want = function.rings[position]
            layout = self.spelling.spelled(key, slot, position)
            filled = (want.tile, want.registers, want.stored, want.direct, want.ends_at_once, want.held)
            known = (want.looked_up, want.scalar, want.late, want.located, want.split)
            dims = self.spelling.extents(key, slot, position)
            made.append(Ring(name, want.dtype, dims, layout, want.in_memory, *filled, *known))
        return tuple(made)

    def _edits(self, key: Body, function: Function, labels: Labels) -> tuple[Edits, dict[Position, tuple[Edits, ...]]]:
        """Edits of the statements that stand once, and of each copy of the others."""

        def edits(statement: Position | None, version: Version | None) -> Edits:
            def spelled(kind: str) -> dict[Position, str]:
                found = function.wanted(kind, statement, version)
                return {position: self.spelling.spelled(key, wanted, position) for position, wanted in found.items()}

            def labelled(kind: str) -> dict[Position, str]:
                return {
                    position: name
                    for position, wanted in function.wanted(kind, statement, version).items()
                    if (name := labels.read_at(position, function, wanted))
                }

            out_of_reach = self._out_of_reach(key) if statement is None else {}

            def inside_of(position: Position) -> bool:
                return statement is None or _within(position, statement)

            mentions = {
                position: name
                for position, mentioned in function.mentions.items()
                if inside_of(position) and (name := labels.mentioned(*mentioned, function, position))
            }
            memory, lhs = spelled("memory"), spelled("lhs")
            converts = spelled("convert")
            self._hold_together(key, function, statement, version)
            return Edits(
                creations={**out_of_reach, **spelled("creation")},
                converts=converts,
                expansions={p: rank for p, rank in function.ranks.items() if inside_of(p)},
                indexed={p: what for p, what in function.indexed.items() if inside_of(p)},
                fills={p: (function.dims[p], layout) for p, layout in spelled("fill").items()},
                staged={p: (function.rings[p].name, layout) for p, layout in spelled("staged").items()},
                zeroed=frozenset(p for p in spelled("staged") if not function.rings[p].registers),
                tiles={p: kind for p, kind in function.tiles.items() if inside_of(p)},
                shortened={p: element for p, element in function.shortened.items() if element and inside_of(p)},
                passed={p: (each.order, each.banks) for p, each in function.passed.items() if inside_of(p)},
                views={p: order for p, order in function.views.items() if inside_of(p)},
                loads=spelled("load"),
                widened=_widened(function.wanted("read", statement, version)),
                stores={
                    p: self._store(key, wanted, p) for p, wanted in function.wanted("store", statement, version).items()
                },
                dots={
                    p: _dot(function.dots[p], layout, memory.get(p), lhs.get(p)) for p, layout in spelled("dot").items()
                },
                reads={**mentions, **labelled("read")},
                targets=labelled("target"),
                arguments=self.passing.arguments(key, self.spelling.spelled, inside_of),
                mover=next((scene.facts.mover for analysis in self.analyses for scene in analysis.scenes), ""),
            )

        copies = {s: tuple(edits(s, version) for version in each) for s, each in function.copied.items()}
        constants = _of_constants(function, labels)
        return edits(None, None), {**constants, **copies}

    def _store(self, key: Body, wanted: Wanted, position: Position) -> Store:
        """A value that is put into shared memory, of which the launches may want other layouts."""
        layout, dims = self.spelling.spelled(key, wanted, position), self._dims(key, wanted, position)
        in_place = any(isinstance(each, Stored) and each.in_place for each in wanted.values())
        return Store(layout, dims, _through(wanted), in_place=in_place)

    def _hold_together(
        self, key: Body, function: Function, statement: Position | None, version: Version | None
    ) -> None:
        """Raises `Conflict` where launches want of an expression what no layout can say for all of them."""
        for kind in ("sum", "scaled", "imprecise", "rank"):
            for position, wanted in function.wanted(kind, statement, version).items():
                if len(set(wanted.values())) > 1:
                    raise Conflict(key, position, [wanted])
        converts = function.wanted("convert", statement, version)
        for position, wanted in converts.items():
            if any(is_inferred(term) for term in wanted.values()):
                # Nothing can be converted to what the compiler infers: a helper's caller has it come as others want it.
                raise Conflict(key, position, [wanted])
        tensors = {**converts, **function.wanted("rank", statement, version)}
        for position in (p for p in (*converts, *function.ranks) if p in tensors):
            if numbers := self._numbers(key, position):
                raise Conflict(key, position, [{**tensors[position], **dict.fromkeys(numbers, _NUMBER)}])
        for position, apart in function.brought_apart(statement, version):
            raise Conflict(key, position, apart)

    def _out_of_reach(self, key: Body) -> dict[Position, str]:
        """Creating calls that no launch of any kernel reaches: the compiler is left to infer their layout."""
        places = [
            set(analysis.unreached.get(key[:2], ())) for analysis in self.analyses if self._reaches(analysis, key)
        ]
        return dict.fromkeys(set.intersection(*places), "gl.AutoLayout()") if places else {}

    def _numbers(self, key: Body, position: Position) -> list[Context]:
        """The contexts in which an expression is a number of the compilation, and no tensor that has a layout."""
        found: list[Context] = []
        for place, analysis in enumerate(self.analyses):
            for launch, scene in enumerate(analysis.scenes):
                for name, function in scene.facts.functions.items():
                    if analysis.body((function.path, function.line)) == key:
                        fact = function.expressions.get(position)
                        constant = isinstance(fact, ConstFact) and not isinstance(fact.value, str)
                        if constant or (isinstance(fact, TensorFact) and not fact.shape):
                            found.append((place, launch, ((name, 0, 0),)))
        return found

    @staticmethod
    def _reaches(analysis: KernelAnalysis, key: Body) -> bool:
        functions = (f for scene in analysis.scenes for f in scene.facts.functions.values())
        return any(analysis.body((function.path, function.line)) == key for function in functions)

    def _declarations(self, key: Body, function: Function) -> tuple[Declaration, ...]:
        """The layouts that a kernel's text mentions, its helpers' arguments included."""
        analysis = self.kernels.get(key)
        if analysis is None:
            return ()
        mentioned = [*function.layouts(), *self.passing.layouts(key)]
        used = {root_of(term).name for wanted in mentioned for term in wanted.values()}
        made: list[Declaration] = []
        for layout in analysis.classes.classes:
            if layout.name in used:
                made.append(Declaration(analysis.names[layout.name], layout.source, access_comment(layout)))
        made.extend(self.spelling.declared(key))
        return (*made, *(analysis.stages.declared if analysis.stages is not None else ()))


def _of_constants(function: Function, labels: Labels) -> dict[Position, tuple[Edits, ...]]:
    """Copies of statements that give constants, or parameters: a mask that is None, say, in each of its layouts."""
    made: dict[Position, tuple[Edits, ...]] = {}
    for statement, (variable, target) in function.constants.items():
        named = [Edits(targets={target: name}) for name in labels.others(variable)]
        if named:
            made[statement] = Edits(), *named
    return made


def _widened(reads: Mapping[Position, Wanted]) -> frozenset[Position]:
    """The reads of what is stored in fewer bits than it has."""
    narrow = {
        position: [isinstance(term, Stored) and term.narrow for term in wanted.values()]
        for position, wanted in reads.items()
    }
    return frozenset(position for position, found in narrow.items() if any(found))


def _through(wanted: Wanted) -> str:
    """The function that a value goes through on its way to shared memory; empty where there is none."""
    turned = any(term.turned for term in wanted.values() if isinstance(term, Stored))
    return TURNED_TILE if turned else ""


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
        site.summed,
        site.chip,
        site.asked,
        site.start,
    )


def _within(inner: Position, outer: Position) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]
