"""Which launches of a kernel one text can serve: those whose dots and loads Triton carries out alike.

A dot is alike under two launches where its instruction is, and where its operands lie; a load where both give it a
ring of buffers laid out for the same reader, or both give it none. What only some launches reach keeps none apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.facts import CallChain, DotFact, Instruction, LaunchFacts

Traits = dict[CallChain, str]
"""How each dot and each load is carried out, by its place."""

Place = TypeVar("Place")

_PLAIN = ""
"""How a load is carried out that goes through no ring."""

_ORDER: tuple[Instruction, ...] = ("tcgen05_scaled", "tcgen05", "wgmma", "mma_v2", "fma")


def traits(facts: LaunchFacts) -> Traits:
    """How a launch's dots and loads are carried out."""
    found = {chain: _PLAIN for chain, access in facts.accesses.items() if "load" in access.operation}
    found.update((chain, ring.layout.name) for chain, ring in facts.lowered.rings.items())
    found.update((chain, _how(dot)) for chain, dot in facts.lowered.dots.items())
    return found


def _how(dot: DotFact) -> str:
    places = ("memory" if operand.in_memory else "registers" for operand in (dot.a, dot.b))
    return " ".join((dot.instruction, *places))


def alike(one: Mapping[Place, str], other: Mapping[Place, str]) -> bool:
    """Whether what both have is carried out in the same way."""
    return all(one[chain] == other[chain] for chain in one.keys() & other.keys())


def grouped(facts: Sequence[LaunchFacts]) -> list[list[int]]:
    """Launches by index, in groups that one text can serve; the fastest instructions first."""
    made: list[tuple[Traits, list[int]]] = []
    for index, launch in enumerate(facts):
        own = traits(launch)
        known = next((group for group in made if alike(group[0], own)), None)
        if known is None:
            made.append((own, [index]))
        else:
            known[0].update(own)
            known[1].append(index)
    made.sort(key=lambda group: (_rank(facts[group[1][0]]), sum(how == _PLAIN for how in group[0].values())))
    return [indices for _, indices in made]


def _rank(facts: LaunchFacts) -> int:
    return min((_ORDER.index(dot.instruction) for dot in facts.lowered.dots.values()), default=len(_ORDER))


def parted(conflict: Conflict, count: int) -> list[list[int]]:
    """The launches of one kernel (`count` of them) by the layouts they want where these conflict.

    One group where each wants the same, so that it is a helper's callers that differ. A launch that does not reach the
    place goes with the first.
    """
    wants: dict[int, set[tuple[object, ...]]] = {}
    for place, wanted in enumerate(conflict.wanted):
        for (_, launch, chain), term in wanted.items():
            wants.setdefault(launch, set()).add((place, chain, term))
    made: dict[frozenset[tuple[object, ...]], list[int]] = {}
    for launch in sorted(wants):
        made.setdefault(frozenset(wants[launch]), []).append(launch)
    groups = list(made.values()) or [[]]
    groups[0] = sorted({*groups[0], *(launch for launch in range(count) if launch not in wants)})
    return groups


def labels(facts: Sequence[LaunchFacts], groups: Sequence[Sequence[int]]) -> list[str]:
    """What tells the groups apart, in a word: their instructions, whether loads run ahead, else a number."""
    said = [_instructions(facts[index] for index in group) for group in groups]
    if len(set(said)) == 1 and len(groups) > 1:
        said = [""] * len(groups)
    ahead = ["pipelined" if any(facts[index].lowered.rings for index in group) else "plain" for group in groups]
    made: list[str] = []
    for place, name in enumerate(said):
        if said.count(name) > 1:
            alone = [ahead[other] for other, known in enumerate(said) if known == name]
            name = "_".join(part for part in (name, ahead[place] if len(set(alone)) > 1 else "") if part)
        made.append(name or "variant")
    return [_numbered(made, place) for place in range(len(made))]


def _instructions(facts: Iterable[LaunchFacts]) -> str:
    found = {dot.instruction for launch in facts for dot in launch.lowered.dots.values()}
    return "_".join(instruction for instruction in _ORDER if instruction in found)


def _numbered(names: Sequence[str], place: int) -> str:
    before = names[:place].count(names[place])
    return f"{names[place]}_{before + 1}" if before or names[place] == "variant" else names[place]
