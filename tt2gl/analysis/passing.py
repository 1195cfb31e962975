"""What functions hand to the helpers they call: layouts, the number of stages, extents of what is allocated.

A helper has one text for all its callers: each distinct layout that they want becomes a constexpr parameter of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.collected import Body, Conflict, Function
from tt2gl.analysis.facts import Position
from tt2gl.analysis.graph import CallSite
from tt2gl.analysis.naming import reshaped_name
from tt2gl.analysis.terms import BlockScale, Reshaped, Root, Term, base_of, in_words, names_in, root_of, skeleton
from tt2gl.analysis.versions import Context, Wanted
from tt2gl.names import unused
from tt2gl.plan import ENTRY
from tt2gl.stages import STAGES, Stages

Spelled = Callable[[Body, Wanted, Position], str]


@dataclass(frozen=True)
class Call:
    """A call of a helper under one launch, with the bodies that the launch has of both functions."""

    kernel: int
    launch: int
    site: CallSite
    caller: Body
    callee: Body


class Passing:
    """The parameters of helpers, and the arguments for them, under all launches.

    `parameters`: those for layouts, by helper. `staged`: the functions that pipeline loops, or call one that does, and
    what each knows the number of stages by. `borrowed`: the kernel's parameters that helpers need for extents.
    """

    def __init__(
        self,
        analyses: Sequence[KernelAnalysis],
        kernels: Mapping[Body, KernelAnalysis],
        functions: dict[Body, Function],
    ) -> None:
        self._analyses, self._kernels, self._functions = analyses, kernels, functions
        self.parameters: dict[Body, dict[str, Wanted]] = {}
        self._passed: dict[tuple[Body, Position], dict[str, Wanted]] = {}
        self._needless: dict[tuple[Body, Position], dict[str, str | None]] = {}
        self.calls = [
            Call(place, launch, call, analysis.body(call.caller), analysis.body(call.callee))
            for place, analysis in enumerate(analyses)
            for launch, scene in enumerate(analysis.scenes)
            for call in scene.graph.calls
        ]
        self._pass_layouts()
        self.staged = self._staged()
        self.borrowed = self._borrowed()

    def bodies(self, key: Body) -> dict[int, str]:
        """The helpers that a function calls in a text of their own: its name, by the line of the helper's `def`."""
        return {call.callee[1]: call.callee[2] for call in self.calls if call.caller == key and call.callee[2]}

    def layouts(self, key: Body) -> list[Wanted]:
        """The layouts that a function hands on."""
        return [terms for (caller, _), names in self._passed.items() if caller == key for terms in names.values()]

    def arguments(
        self, key: Body, spelled: Spelled, inside: Callable[[Position], bool]
    ) -> dict[Position, tuple[tuple[str, str], ...]]:
        """What a function hands on by its calls at the places `inside`, as source. Raises `Conflict`."""
        passed = {p: names for (caller, p), names in self._passed.items() if caller == key and inside(p)}
        needless = {p: names for (caller, p), names in self._needless.items() if caller == key and inside(p)}
        extents = {p: names for p, names in self._extents(key).items() if inside(p)}
        stages = {p: pair for p, pair in self._stage_arguments(key).items() if inside(p)}
        return {
            position: (
                *extents.get(position, ()),
                *((name, spelled(key, wanted, position)) for name, wanted in passed.get(position, {}).items()),
                *(
                    (name, spelled(key, passed[position][other], position) if other else "None")
                    for name, other in needless.get(position, {}).items()
                ),
                *((stages[position],) if position in stages else ()),
            )
            for position in {**passed, **needless, **stages, **extents}
        }

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
                        passed = self._passed.setdefault((call.caller, site.position), {}).setdefault(name, {})
                        passed[place, launch, site.context] = self._outward(call, inside, wanted.get(inside, others[0]))
                        self._functions.setdefault(call.caller, Function())
        self._agree()
        for call in calls:
            self._note_needless(call)

    def _agree(self) -> None:
        """Have the helpers that one call reaches, of those that a function is given, take the same parameters."""
        reached: dict[tuple[Body, Position], dict[Body, None]] = {}
        for call in self.calls:
            reached.setdefault((call.caller, call.site.position), {})[call.callee] = None
        changed = True
        while changed:
            changed = False
            for callees in reached.values():
                names = dict.fromkeys(name for callee in callees for name in self.parameters[callee])
                for callee in callees:
                    for name in [each for each in names if each not in self.parameters[callee]]:
                        self.parameters[callee][name] = {}
                        self._functions.setdefault(callee, Function())
                        changed = True

    def _note_needless(self, call: Call) -> None:
        """The layouts that a helper needs nowhere that one of its calls leads to, each with one that is given as well.

        What the helper computes ahead of its branches it computes in that one, to no effect.
        """
        place = call.caller, call.site.position
        passed, parameters = self._passed.get(place, {}), self.parameters[call.callee]
        if needless := [name for name in parameters if name not in passed]:
            ranks = {name: self._rank(wanted) for name, wanted in passed.items()}
            self._needless[place] = {
                name: next((other for other in passed if ranks[other] and ranks[other] == self._rank(wanted)), None)
                for name, wanted in parameters.items()
                if name in needless
            }
            self._functions.setdefault(call.caller, Function())

    def _rank(self, wanted: Wanted) -> int:
        """Dimensions of the tiles of an access's layout, and 0 of others."""
        return next(
            (
                each.rank
                for (kernel, *_), term in wanted.items()
                for each in self._analyses[kernel].classes.classes
                if isinstance(term, Root) and each.name == term.name
            ),
            0,
        )

    def _staged(self) -> dict[Body, Stages]:
        """The functions that pipeline loops, or call one that does, and what each knows the number of stages by."""
        found = {key for key, function in self._functions.items() if any(ring.name for ring in function.rings.values())}
        while more := {call.caller for call in self.calls if call.callee in found} - found:
            found |= more
        staged: dict[Body, Stages] = {}
        for key in sorted(found):
            own = self._kernels[key].stages if key in self._kernels else Stages(STAGES, parameter=True)
            if own is not None:
                staged[key] = own
        return staged

    def _borrowed(self) -> dict[Body, frozenset[str]]:
        """The kernel's parameters that helpers need for the extents of what they allocate, and so do their callers."""
        found: dict[Body, frozenset[str]] = {}
        for analysis in self._analyses:
            for scene in analysis.scenes:
                for key, names in scene.graph.borrowed.items():
                    found[analysis.body(key)] = found.get(analysis.body(key), frozenset()) | names
        self._check_known(found)
        changed = True
        while changed:
            changed = False
            for call in self.calls:
                known = found.get(call.caller, frozenset()) | self._words(call).keys()
                missing = found.get(call.callee, frozenset()) - known
                if call.caller not in self._kernels and missing:
                    found[call.caller] = found.get(call.caller, frozenset()) | missing
                    changed = True
        return found

    def _check_known(self, borrowed: Mapping[Body, frozenset[str]]) -> None:
        """Raise `Conflict` where a helper needs parameters of one kernel that another, which calls it too, has not."""
        for callee, names in borrowed.items():
            calls = [call for call in self.calls if call.callee == callee]
            if any(names - self._analyses[call.kernel].scenes[call.launch].graph.parameters for call in calls):
                contexts: list[Context] = [(call.kernel, call.launch, call.site.context) for call in calls]
                raise Conflict(callee, ENTRY, [dict.fromkeys(contexts, Root("extents"))])

    def _words(self, call: Call) -> dict[str, str]:
        """What the caller knows of the kernel's by parameters of its own, with what it calls them."""
        graph = self._analyses[call.kernel].scenes[call.launch].graph
        return graph.words.get((call.caller[:2], call.site.context), {})

    def _outward(self, call: Call, inside: Context, term: Term) -> Term:
        """A layout that a helper wants, in the words of its caller."""
        graph, own = self._analyses[call.kernel].scenes[call.launch].graph, self._words(call)
        known = graph.words.get((call.callee[:2], inside[2]), {})
        return in_words(term, {name: own.get(said, said) for said, name in known.items()})

    def _parametrise(self, key: Body) -> None:
        """One parameter for all places of a helper that always want the same layout, or one made of the same."""
        function = self._functions.get(key, Function())
        groups: list[Wanted] = []
        for wanted in [*function.layouts(), *self.layouts(key)]:
            made_of = self.roots(key, wanted)
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
            analysis = self._analyses[kernel]
            name = "layout" if len(groups) == 1 else analysis.names.get(root_of(term).name, "layout")
            if len(groups) > 1:
                scale = "scale_layout" if isinstance(term, BlockScale) else name
                name = reshaped_name(name) if isinstance(term, Reshaped) else scale
            named[unused(name, {*named, *analysis.taken})] = group
        self.parameters[key] = named

    def roots(self, key: Body, wanted: Wanted) -> Wanted:
        """The layouts that those wanted in a helper are made of, where it can say how; else those wanted.

        It can where all are made of theirs in one way, by extents that are called the same in it as in the kernel.
        """
        ways = {skeleton(term) for term in wanted.values()}
        if len(ways) == 1 and all(self._is_known(key, context, next(iter(ways))) for context in wanted):
            return {context: base_of(term) for context, term in wanted.items()}
        return wanted

    def _is_known(self, key: Body, context: Context, way: Term) -> bool:
        """Whether a helper has the names that are in the extents of how a layout is made, under those names."""
        kernel, launch, chain = context
        words = self._analyses[kernel].scenes[launch].graph.words.get((key[:2], chain), {})
        return all(words.get(name) == name for name in names_in(way))

    def _extents(self, key: Body) -> dict[Position, list[tuple[str, str]]]:
        """The kernel's parameters that a function passes on to its helpers."""
        calls = [call for call in self.calls if call.caller == key]
        return {
            call.site.position: [
                (name, self._words(call).get(name, name)) for name in sorted(self.borrowed[call.callee])
            ]
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
