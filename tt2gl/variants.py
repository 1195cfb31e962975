"""Kernels of which one text cannot serve every launch: a body for each group of launches, and a choice between them.

Triton compiles a kernel anew for each launch, and carries its dots and loads out as fits the launch: by wgmma or by
`mma.sync`, ahead of their use or not. A text says one of these. So launches are grouped (`analysis.groups`), each group
is analysed and written by itself, and the kernel calls the body that a condition (`analysis.conditions`) names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.conditions import Case, Decision, decided, renamed, tellings
from tt2gl.analysis.facts import LaunchFacts, without_halves, without_lookups, without_parts
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.groups import alike, fitting, grouped, labels, parted, traits
from tt2gl.analysis.kernel import analyse
from tt2gl.analysis.planner import Planner
from tt2gl.launches import Launch
from tt2gl.names import unused
from tt2gl.plan import Dispatch
from tt2gl.slicing.slices import Slice
from tt2gl.stages import Stages
from tt2gl.targets import Target

_MOST_PARTS = 3
"""Bodies that launches of one group are given where they want different layouts at one place."""


Witnesses = Sequence[tuple[Launch, LaunchFacts]]
"""Launches that nobody asked for, seen to learn what tells groups apart."""


class Undecided(Exception):
    """Nothing that a kernel knows when it is compiled tells its groups of launches apart; `groups` by their labels."""

    def __init__(self, groups: Sequence[tuple[str, Sequence[int]]]) -> None:
        super().__init__(", ".join(label for label, _ in groups))
        self.groups = groups


@dataclass(frozen=True)
class Variants:
    """A kernel's launches, analysed: all together, or in groups that `decision` tells apart."""

    analyses: tuple[KernelAnalysis, ...]
    decision: Decision | None = None

    def dispatch(self) -> Dispatch | None:
        """What the kernel itself becomes where it has several bodies."""
        if self.decision is None:
            return None
        asked = {a.bodies[a.function]: a.stages for a in self.analyses if a.stages is not None and a.stages.parameter}
        passed = {name: (stages.source,) for name, stages in asked.items()}
        return Dispatch(
            self.analyses[0].function[1],
            self.decision.choice,
            passed,
            self.decision.flags,
            self._stages(asked.values()),
        )

    def _stages(self, asked: Collection[Stages]) -> Stages | None:
        """The number of stages as the kernel is told it for its bodies: its launches' own, or the one they have."""
        if not asked:
            return None
        launches = [scene.launch for analysis in self.analyses for scene in analysis.scenes]
        values = {launch.options.num_stages for launch in launches}
        known = next(iter(asked))
        return replace(known, asked=len(values) > 1, default=known.default if len(values) > 1 else values.pop())


def analysed(
    kernel: Slice,
    name: str,
    launches: Sequence[Launch],
    facts: Sequence[LaunchFacts],
    target: Target,
    taken: Set[str],
    witnesses: Witnesses = (),
) -> Variants:
    """A kernel's launches analysed, in as few groups as can be; bodies have names that are not in `taken`.

    Raises `Unsupported`, `Conflict` and `Undecided`.
    """
    groups = grouped(facts)
    most, made = len(groups) + _MOST_PARTS - 1, list[tuple[list[int], KernelAnalysis]]()
    while groups:
        group = groups.pop(0)
        analysis = analyse(kernel, name, [launches[i] for i in group], [facts[i] for i in group], target)
        try:
            Planner([analysis]).plans()
        except Conflict as conflict:
            parts = parted(conflict, len(group))
            if len(parts) == 1 or len(parts) + len(groups) + len(made) > most:
                raise
            groups = [[group[i] for i in part] for part in parts] + groups
        else:
            made.append((group, analysis))
    if len(made) == 1:
        return Variants((made[0][1],))
    try:
        return _told_apart(made, name, launches, facts, taken, witnesses)
    except Undecided:
        # Where nothing says which launches have warps of their own for parts of a loop, or do halves of two iterations
        # in a turn, none does; and all look up where tiles are by loads to registers.
        for less in (without_parts, without_halves, without_lookups):
            whole = [*map(less, facts)]
            if whole != [*facts]:
                return analysed(kernel, name, launches, whole, target, taken, witnesses)
        raise


def _told_apart(
    made: Sequence[tuple[list[int], KernelAnalysis]],
    name: str,
    launches: Sequence[Launch],
    facts: Sequence[LaunchFacts],
    taken: Set[str],
    witnesses: Witnesses,
) -> Variants:
    """The groups with names, and the choice between them."""
    asks = any(analysis.stages is not None and analysis.stages.parameter for _, analysis in made)
    groups = {str(place): group for place, (group, _) in enumerate(made)}
    wanted = {index: place for place, group in groups.items() for index in group}
    cases = [Case(launches[i], facts[i], wanted[i], asks) for i in sorted(wanted)]
    more: list[Case] = []
    for launch, seen in witnesses:
        served = fitting({place: [facts[i] for i in group] for place, group in groups.items()}, seen)
        if served is not None:
            more.append(Case(launch, seen, served, asks))
    found = decided([*cases, *more]) or decided(cases)
    said = labels(facts, list(groups.values()))
    if found is None:
        raise Undecided([(label, group) for label, group in zip(said, groups.values(), strict=True)])
    words = tellings(found.choice)
    bodies: dict[str, str] = {}
    for place, (label, (_, analysis)) in enumerate(zip(said, made, strict=True)):
        alone = said.count(label) == 1
        analysis.label = label if alone else "_".join(part for part in (label, words[str(place)]) if part) or "variant"
        body = unused(f"{name}_{analysis.label}", {*taken, *bodies.values()})
        analysis.bodies[analysis.function] = bodies[str(place)] = body
    return Variants(tuple(analysis for _, analysis in made), Decision(renamed(found.choice, bodies), found.flags))


def give_bodies(
    analyses: Sequence[KernelAnalysis], names: Mapping[FunctionKey, str], apart: Collection[FunctionKey]
) -> None:
    """Give helpers several bodies where launches or kernels carry them out in different ways; those of `apart` anyway.

    `names`: the functions of the file. A helper that calls one with several bodies has several too.
    """
    kernels = {analysis.function for analysis in analyses}
    for analysis in analyses:
        analysis.bodies = {key: body for key, body in analysis.bodies.items() if key in kernels}
    taken = set(names.values()) | {body for analysis in analyses for body in analysis.bodies.values()}
    own_traits = [_traits(analysis) for analysis in analyses]
    for helper in _innermost_first(analyses):
        if helper in kernels or helper not in names:
            continue
        groups: list[tuple[dict[object, str], list[int]]] = []
        for place, analysis in enumerate(analyses):
            if helper not in own_traits[place]:
                continue
            own = {**_unstaged(analysis, helper), **own_traits[place][helper], **_called(analysis, helper)}
            known = next((group for group in groups if helper not in apart and alike(group[0], own)), None)
            if known is None:
                groups.append((own, [place]))
            else:
                known[0].update(own)
                known[1].append(place)
        if len(groups) > 1:
            for _, members in groups:
                label = analyses[members[0]].label or f"for_{analyses[members[0]].name}"
                body = unused(f"{names[helper]}_{label}", taken)
                taken.add(body)
                for place in members:
                    analyses[place].bodies[helper] = body


def _traits(analysis: KernelAnalysis) -> dict[FunctionKey, dict[object, str]]:
    """How each function's own dots and loads are carried out, by place. Raises `Conflict` where callers differ."""
    found: dict[FunctionKey, dict[object, str]] = {}
    for scene in analysis.scenes:
        for function in scene.facts.functions.values():
            found.setdefault((function.path, function.line), {})
        known = traits(scene.facts)
        for node in scene.graph.nodes:
            if (node.kind == "dot" or node.staged) and node.chain in known:
                own = found.setdefault(node.site.function, {})
                if own.setdefault(node.chain[0], known[node.chain]) != known[node.chain]:
                    raise Conflict(analysis.body(node.site.function), node.site.position, [])
    return found


def _unstaged(analysis: KernelAnalysis, helper: FunctionKey) -> dict[object, str]:
    """The loads of a helper that no launch of an analysis copies ahead, which has no rings or number of stages then."""
    loads = [
        node
        for scene in analysis.scenes
        for node in scene.graph.nodes
        if node.kind == "load" and node.site.function == helper
    ]
    ahead = {node.chain[0] for node in loads if node.staged}
    return {node.chain[0]: "where it is read" for node in loads if node.chain[0] not in ahead}


def _called(analysis: KernelAnalysis, caller: FunctionKey) -> dict[object, str]:
    """The bodies of helpers that a function calls, under the launches of an analysis."""
    calls = (call for scene in analysis.scenes for call in scene.graph.calls if call.caller == caller)
    return {call.callee: analysis.bodies.get(call.callee, "") for call in calls}


def _innermost_first(analyses: Sequence[KernelAnalysis]) -> Iterator[FunctionKey]:
    calls = [call for analysis in analyses for scene in analysis.scenes for call in scene.graph.calls]
    yield from dict.fromkeys(call.callee for call in sorted(calls, key=lambda call: -len(call.context)))
