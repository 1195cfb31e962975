"""Layouts of accesses that launches want in two ways, in one formula: what tells those apart when a kernel is compiled.

Where a stride is 1, or a flag is set, says which way an access is as wide as it can be; so does whether arguments are
multiples of 16, which no kernel can ask. Of which arguments, Triton is asked: an access on which one has a bearing is
narrower without it, or without it and all others that it may have its width from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from tt2gl.analysis.conditions import Case, flag_tests, pairs
from tt2gl.analysis.facts import Access, CallChain, LaunchFacts
from tt2gl.launches import Launch


@dataclass(frozen=True)
class Way:
    """A formula, `width` in the middle of it, and the launches that it is right for."""

    before: str
    width: str
    after: str
    exact: frozenset[int]

    @property
    def source(self) -> str:
        """The formula."""
        return f"{self.before}{self.width}{self.after}"

    def unless(self, test: str, other: Way) -> str:
        """This formula where a condition holds, else the `other`."""
        if (self.before, self.after) == (other.before, other.after):
            return f"{self.before}{self.width} if {test} else {other.width}{self.after}"
        return f"{self.source} if {test} else {other.source}"


@dataclass(frozen=True)
class Alternative:
    """Two formulas in one; `flags`: what it asks of launches, each with the arguments that are multiples of 16 then."""

    source: str
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def alternative(
    ways: Sequence[Way], cases: Mapping[int, Case], aligning: Sequence[tuple[str, ...]]
) -> Alternative | None:
    """Two of the `ways` that are right for all launches together, and a condition that is right for each.

    `aligning`: sets of arguments, of any of which the alignment makes the access as wide as it can be.
    """
    single = list(flag_tests(list(cases.values())))
    tests = [(test.source, dict(zip(cases, test.holds, strict=True))) for test in (*single, *pairs(single))]
    for one, other in permutations(ways, 2):
        yes, no = one.exact - other.exact, other.exact - one.exact
        if not yes or not no or one.exact | other.exact != cases.keys():
            continue
        for source, holds in tests:
            if all(holds[index] is True for index in yes) and all(holds[index] is False for index in no):
                return Alternative(one.unless(source, other))
        if asked := _asked(cases, yes, no, aligning):
            flags = {"_".join(("ALIGNED", *names)): names for names in asked}
            return Alternative(one.unless(" or ".join(flags), other), flags)
    return None


def _asked(
    cases: Mapping[int, Case], yes: Collection[int], no: Collection[int], aligning: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """The sets of arguments to ask for, of which one is aligned under some launches and none under others, if it is so.

    Of a set that stands alone only what all those launches have.
    """
    multiples = {index: set(case.launch.divisible_by_16) for index, case in cases.items()}
    numbers = [[name for name in names if all(_is_number(case, name) for case in cases.values())] for names in aligning]
    if len(numbers) == 1:
        numbers = [[name for name in numbers[0] if all(name in multiples[index] for index in yes)]]
    asked = [tuple(names) for names in numbers if names]
    wide = {index for index in (*yes, *no) if any(multiples[index].issuperset(names) for names in asked)}
    return asked if wide == set(yes) else []


def _is_number(case: Case, name: str) -> bool:
    """Whether an argument is an integer, which its launch may know to be 1, and not left out."""
    kind = case.launch.signature.get(name, "")
    return kind[:1] in ("i", "u") or isinstance(case.launch.constexprs.get(name), int)


@dataclass(frozen=True)
class LessAligned:
    """A launch of which some integers are no longer multiples of 16: `gone` of those that another launch lacks.

    `kept`: the others of those. `index`: of the launch that has them all.
    """

    index: int
    gone: frozenset[str]
    kept: frozenset[str]
    launch: Launch


def less_aligned(launches: Mapping[int, Launch], facts: Mapping[int, LaunchFacts]) -> list[LessAligned]:
    """Launches that show on which integers the width of a kernel's accesses depends.

    Made of the most aligned launches under which accesses are wider than under others, which lack these integers:
    without one of them, with one alone, and without any.
    """
    made: dict[tuple[int, frozenset[str]], LessAligned] = {}
    done: set[CallChain] = set()
    for index in sorted(facts, key=lambda index: -len(launches[index].divisible_by_16)):
        for other, seen in facts.items():
            lacking = frozenset(_integers(launches[index])) - set(launches[other].divisible_by_16)
            if not lacking or done.issuperset(_narrower(facts[index].accesses, seen.accesses)):
                continue
            ones = [frozenset((name,)) for name in _integers(launches[index]) if name in lacking]
            for gone in filter(None, (*ones, *(lacking - one for one in ones), lacking)):
                less = LessAligned(index, gone, lacking - gone, _without(launches[index], gone))
                made.setdefault((index, gone), less)
        done |= {chain for seen in facts.values() for chain in _narrower(facts[index].accesses, seen.accesses)}
    return list(made.values())


def _without(launch: Launch, gone: Collection[str]) -> Launch:
    left = tuple(name for name in launch.divisible_by_16 if name not in gone)
    return replace(launch, divisible_by_16=left, args=None)


def _integers(launch: Launch) -> list[str]:
    """The integers that are multiples of 16."""
    return [name for name in launch.divisible_by_16 if launch.signature.get(name, "")[:1] in ("i", "u")]


def _narrower(known: Mapping[CallChain, Access], seen: Mapping[CallChain, Access]) -> list[CallChain]:
    """The accesses of which a thread takes fewer elements at once than it does in what is `known`."""
    both = [(chain, access, seen[chain]) for chain, access in known.items() if chain in seen]
    return [chain for chain, one, other in both if _at_once(other) < _at_once(one)]


def _at_once(access: Access) -> int:
    return access.size_per_thread[access.order[0]]


def with_aligning(
    facts: Mapping[int, LaunchFacts], seen: Sequence[tuple[LessAligned, Mapping[CallChain, Access]]]
) -> dict[int, LaunchFacts]:
    """The facts of a kernel's launches with what was `seen` of its accesses under less aligned ones.

    An access needs all integers without any of which it is narrower. Where there is none, another access that is read
    together with it lends it its width (Triton's pass Coalesce), and each of those with which it is wide is enough.
    """
    needed: defaultdict[CallChain, set[str]] = defaultdict(set)
    enough: defaultdict[CallChain, set[str]] = defaultdict(set)
    narrow = {less: set(_narrower(facts[less.index].accesses, accesses)) for less, accesses in seen}
    bare = {chain for less, chains in narrow.items() if not less.kept for chain in chains}
    for less, chains in narrow.items():
        for chain in sorted(chains) if len(less.gone) == 1 else ():
            needed[chain] |= less.gone
        for chain in sorted(bare - chains) if len(less.kept) == 1 else ():
            enough[chain] |= less.kept
    names = list(dict.fromkeys(name for less in narrow for name in less.launch.signature))
    told: dict[CallChain, tuple[tuple[str, ...], ...]] = {}
    told |= {chain: tuple((name,) for name in names if name in any_of) for chain, any_of in enough.items()}
    told |= {chain: (tuple(name for name in names if name in all_of),) for chain, all_of in needed.items()}
    return {index: replace(each, aligning=told) for index, each in facts.items()}
