"""Layouts of accesses that launches want in two ways, in one formula: what tells those apart when a kernel is compiled.

Where a stride is 1, or a flag is set, says which way an access is as wide as it can be; so does whether arguments are
multiples of 16, which no kernel can ask. Of which arguments, Triton is asked: an access on which one has a bearing is
narrower without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from tt2gl.analysis.conditions import Case, flag_tests
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
    """Two formulas in one; `flag`: what it asks of the launch, and the arguments that are multiples of 16 then."""

    source: str
    flag: tuple[str, tuple[str, ...]] | None = None


def alternative(ways: Sequence[Way], cases: Mapping[int, Case], aligning: Sequence[str]) -> Alternative | None:
    """Two of the `ways` that are right for all launches together, and a condition that is right for each.

    `aligning`: the arguments whose alignment has a bearing on the access.
    """
    tests = [(test.source, dict(zip(cases, test.holds, strict=True))) for test in flag_tests(list(cases.values()))]
    for one, other in permutations(ways, 2):
        yes, no = one.exact - other.exact, other.exact - one.exact
        if not yes or not no or one.exact | other.exact != cases.keys():
            continue
        for source, holds in tests:
            if all(holds[index] is True for index in yes) and all(holds[index] is False for index in no):
                return Alternative(one.unless(source, other))
        multiples = {index: set(case.launch.divisible_by_16) for index, case in cases.items()}
        asked = tuple(
            name
            for name in aligning
            if all(name in multiples[index] for index in yes) and all(_is_number(case, name) for case in cases.values())
        )
        if asked and not any(multiples[index] >= set(asked) for index in no):
            flag = "_".join(("ALIGNED", *asked))
            return Alternative(one.unless(flag, other), (flag, asked))
    return None


def _is_number(case: Case, name: str) -> bool:
    """Whether an argument is an integer, which its launch may know to be 1, and not left out."""
    kind = case.launch.signature.get(name, "")
    return kind[:1] in ("i", "u") or isinstance(case.launch.constexprs.get(name), int)


@dataclass(frozen=True)
class LessAligned:
    """A launch without one integer that is a multiple of 16, `name`; `index`: of the launch that has it."""

    index: int
    name: str
    launch: Launch


def less_aligned(launches: Mapping[int, Launch], facts: Mapping[int, LaunchFacts]) -> list[LessAligned]:
    """Launches of a kernel with products that show on which integers the width of its accesses depends.

    Made of the most aligned launches under which accesses are wider than under others, which lack these integers.
    """
    if not any(seen.lowered.dots for seen in facts.values()):
        return []
    made: dict[tuple[int, str], LessAligned] = {}
    done: set[CallChain] = set()
    for index in sorted(facts, key=lambda index: -len(launches[index].divisible_by_16)):
        known = launches[index]
        for other, seen in facts.items():
            narrow = set(_narrower(facts[index].accesses, seen.accesses)) - done
            lacking = [n for n in known.divisible_by_16 if n not in launches[other].divisible_by_16]
            for name in lacking if narrow else ():
                if known.signature.get(name, "")[:1] in ("i", "u"):
                    left = tuple(each for each in known.divisible_by_16 if each != name)
                    made[index, name] = LessAligned(index, name, replace(known, divisible_by_16=left, args=None))
        done |= {chain for seen in facts.values() for chain in _narrower(facts[index].accesses, seen.accesses)}
    return list(made.values())


def _narrower(known: Mapping[CallChain, Access], seen: Mapping[CallChain, Access]) -> list[CallChain]:
    """The accesses of which a thread takes fewer elements at once than it does in what is `known`."""
    both = [(chain, access, seen[chain]) for chain, access in known.items() if chain in seen]
    return [chain for chain, one, other in both if _at_once(other) < _at_once(one)]


def _at_once(access: Access) -> int:
    return access.size_per_thread[access.order[0]]


def with_aligning(
    facts: Mapping[int, LaunchFacts], seen: Sequence[tuple[LessAligned, Mapping[CallChain, Access]]]
) -> dict[int, LaunchFacts]:
    """The facts of a kernel's launches with what was `seen` of its accesses under less aligned ones."""
    aligning: dict[CallChain, dict[str, None]] = {}
    for less, accesses in seen:
        for chain in _narrower(facts[less.index].accesses, accesses):
            aligning.setdefault(chain, {})[less.name] = None
    told = {chain: tuple(names) for chain, names in aligning.items()}
    return {index: replace(each, aligning=told) for index, each in facts.items()}
