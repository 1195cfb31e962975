"""Which launches of a kernel one text can serve: those whose dots and loads Triton carries out alike.

A dot is alike under two launches where its instruction is, and where its operands lie; a load where both give it a
ring of buffers laid out for the same reader, or both give it none. What says where such loads read is copied to shared
memory an iteration before under both, or under none. An access has as many dimensions under both. What only some
launches reach keeps none apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.facts import CallChain, DotFact, Instruction, LaunchFacts, RingFact
from tt2gl.launches import Launch

Traits = dict[CallChain, str]
"""How each dot and each load is carried out, by its place."""

Place = TypeVar("Place")

_WARPS: CallChain = (("", 0, 0),)
"""The place of what is said of all warps: whether parts of a loop have some of their own (where a port can have it)."""

_LOOKUP: CallChain = (("", 1, 0),)
"""The place, before that of a tile's load, of how it is known where that reads."""

_RANK: CallChain = (("", 2, 0),)
"""The place, before that of an access, of how many dimensions it has."""

_PLAIN = ""
"""How a load is carried out that goes through no ring."""

_HELD, _OPERAND = "held ", "operand"
"""How one is whose tiles wait in registers, and one whose tile comes as a product takes it."""

_ORDER: tuple[Instruction, ...] = (
    "tcgen05_scaled",
    "tcgen05",
    "wgmma",
    "mma_v2_scaled",
    "mma_v2",
    "mfma_scaled",
    "wmma_scaled",
    "mfma_f8f6f4",
    "mfma",
    "mfma_tf32",
    "wmma",
    "fma",
)


def traits(facts: LaunchFacts) -> Traits:
    """How a launch's dots and loads are carried out, and by which warps."""
    found = {chain: _PLAIN for chain, access in facts.accesses.items() if "load" in access.operation}
    found.update({chain: _HELD for chain in facts.lowered.held if chain in found})
    for chain in sorted(facts.lowered.operands & found.keys()):
        found[chain] += _OPERAND
    found.update((chain, _laid_out(ring)) for chain, ring in facts.lowered.rings.items() if not ring.looked_up)
    found.update((chain, _how(dot)) for chain, dot in facts.lowered.dots.items())
    # A launch may have no stage for what says where its tiles are: it is said of the tiles, which both have.
    rings = facts.lowered.rings
    copied = any(ring.is_lookup for ring in rings.values())
    for chain, ring in rings.items():
        if ring.registers:
            found[_LOOKUP + chain] = "looked up then" if ring.located else "looked up before"
        elif not ring.looked_up and not ring.direct:
            found[_LOOKUP + chain] = "looked up before" if copied else "looked up then"
    found.update((_RANK + chain, f"{len(access.shape)}d") for chain, access in facts.accesses.items())
    if facts.lowered.may_be_parted:
        found[_WARPS] = "apart" if facts.lowered.specialised else "together"
    return found


def _laid_out(ring: RingFact) -> str:
    """The kind of a ring's layout, and for one that is loaded from which of its dimensions is the fastest."""
    order = ring.layout.get("order")
    if ring.registers:
        return f"registers {ring.layout.name} {order}{' split' if ring.split else ''}"
    if ring.direct:
        fastest = order[0] if order else [bool(step) for step in ring.layout.get("offset")[0]].index(True)
        return f"direct {ring.layout.name} {getattr(ring.copied, 'name', '')} {fastest}"
    if order:
        return f"{ring.layout.name} {order[0]}"
    return str(ring.layout.name) if ring.in_place else f"{ring.layout.name} loaded"


def _in_lds(facts: LaunchFacts) -> Traits:
    """How tiles come to AMD's rings, one after the other: loads of other places may share them."""
    rings = facts.lowered.rings
    said = ", ".join(_laid_out(rings[at]) for at in sorted(rings) if rings[at].direct or rings[at].registers)
    return {(): said} if said else {}


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
        own = {**traits(launch), **_in_lds(launch)}
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


def misaligned(launches: Sequence[Launch], facts: Sequence[LaunchFacts]) -> list[Launch]:
    """Launches with one argument less that is a multiple of 16, where that may be why loads run ahead or do not.

    Made of the first launch of each group whose dots another group carries out alike, but not its loads.
    """
    groups = grouped(facts)
    made: list[Launch] = []
    for group in groups:
        first = facts[group[0]]
        others = [index for other in groups if other is not group for index in other]
        rivals = [index for index in others if alike(_dots(first), _dots(facts[index]))]
        known = launches[group[0]]
        lacking = {n for index in rivals for n in known.divisible_by_16 if n not in launches[index].divisible_by_16}
        if first.lowered.rings:
            for name in sorted(n for n in lacking if known.signature[n][:1] in "iu"):
                left = tuple(other for other in known.divisible_by_16 if other != name)
                made.append(replace(known, divisible_by_16=left, args=None))
    return made


def _dots(facts: LaunchFacts) -> Traits:
    return {chain: _how(dot) for chain, dot in facts.lowered.dots.items()}


def fitting(bodies: Mapping[str, Sequence[LaunchFacts]], launch: LaunchFacts) -> str | None:
    """Of bodies, by the launches they are made for, the one that serves another best; None where none does.

    No load may run ahead in it that cannot, and as many as may should.
    """
    own = traits(launch)
    best: tuple[int, str | None] = (-1, None)
    for name, served in bodies.items():
        known = {chain: how for facts in served for chain, how in traits(facts).items()}
        differ = [how for chain, how in known.items() if own.get(chain, how) != how]
        if all(how == _PLAIN for how in differ):
            ahead = len(launch.lowered.rings) - len(differ)
            best = max(best, (ahead, name), key=lambda entry: entry[0])
    return best[1]


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
    """What the groups are, in a word: their instructions, or whether loads run ahead, where these tell any apart."""
    members = [[facts[index] for index in group] for group in groups]
    said = [_instructions(group) for group in members]
    ahead = _ahead(members)
    if len(set(said)) == 1 and len(groups) > 1:
        said = [""] * len(groups)
    made: list[str] = []
    for place, name in enumerate(said):
        alone = {ahead[other] for other, known in enumerate(said) if known == name}
        parts = (name, ahead[place] if len(alone) > 1 else "")
        made.append("_".join(part for part in parts if part))
    return made


def _ahead(groups: Sequence[Sequence[LaunchFacts]]) -> list[str]:
    """Whether loads run ahead in each group: all of those that do in any, some, or none."""
    rings = {
        at for group in groups for launch in group for at, ring in launch.lowered.rings.items() if not ring.looked_up
    }
    made: list[str] = []
    for group in groups:
        reached = {how != _PLAIN for launch in group for chain, how in traits(launch).items() if chain in rings}
        made.append("plain" if True not in reached else "partly_pipelined" if False in reached else "pipelined")
    return made


def _instructions(facts: Iterable[LaunchFacts]) -> str:
    found = {dot.instruction for launch in facts for dot in launch.lowered.dots.values()}
    return "_".join(instruction for instruction in _ORDER if instruction in found)
