"""What tells groups of launches apart when a kernel is compiled: conditions as source, held against every launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any

from tt2gl.analysis.facts import DotFact, LaunchFacts
from tt2gl.analysis.operations import gluon_dtype
from tt2gl.launches import Launch
from tt2gl.names import unused
from tt2gl.plan import Choice
from tt2gl.stages import STAGES

_WGMMA_ROWS = 64
_WGMMA_RULE = "wgmma takes whole warpgroups and 64 rows at least"
_ALIGNED = "ALIGNED"
_ALIGNED_COMMENT = "copies run ahead where they can be wide"
_MOST_NAMED = 4
"""Groups of values that a condition may list one by one."""


@dataclass(frozen=True)
class Case:
    """One launch, and the name of the function that it is to reach. `asks_stages`: `NUM_STAGES` is its own number."""

    launch: Launch
    facts: LaunchFacts
    wanted: str
    asks_stages: bool = False


@dataclass(frozen=True)
class _Test:
    """A condition, and whether it holds under each launch; None where it cannot be asked.

    `multiples`: the arguments of a flag that holds where all are multiples of 16, which has no name yet.
    """

    source: str
    holds: tuple[bool | None, ...]
    comment: str = ""
    multiples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """A choice between functions; `flags`: the arguments that are multiples of 16 where a flag that it asks holds."""

    choice: Choice
    flags: Mapping[str, tuple[str, ...]]


def decided(cases: Sequence[Case]) -> Decision | None:
    """A choice that takes every launch to its function; None where nothing that the kernel is told tells them apart."""
    flags: dict[str, tuple[str, ...]] = {}
    found = _Search(cases, flags).choice(range(len(cases)))
    return Decision(found, flags) if isinstance(found, Choice) else None


def renamed(choice: Choice | str, names: Mapping[str, str]) -> Any:
    """The same choice between functions of other names."""
    if isinstance(choice, str):
        return names[choice]
    return replace(choice, then=renamed(choice.then, names), otherwise=renamed(choice.otherwise, names))


def tellings(choice: Choice) -> dict[str, str]:
    """What the last condition on the way to each function says of it, in a word that can be part of a name."""
    found: dict[str, str] = {}
    for holds, side in ((True, choice.then), (False, choice.otherwise)):
        found.update({side: _word(choice.condition, holds)} if isinstance(side, str) else tellings(side))
    return found


_WORDS = (
    (r"(\w+)", "{}", "no_{}"),
    (r"(\w+) is None", "without_{}", "with_{}"),
    (r"isinstance\((\w+), int\)", "{}_is_1", "any_{}"),
    (r"(?:gl\.)?(\w+)(?:\(\))? >= (\d+)", "{}_from_{}", "{}_below_{}"),
    (r'(?:gl\.)?(\w+)(?:\(\))? == "?(\w+)"?', "{}_{}", "{}_not_{}"),
    (r"(\w+)\.dtype\.element_ty == gl\.(\w+)", "{}_{}", "{}_not_{}"),
)


def _word(condition: str, holds: bool) -> str:
    for pattern, yes, no in _WORDS:
        if said := re.fullmatch(pattern, condition):
            return (yes if holds else no).format(*said.groups()).lower()
    return ""


class _Search:
    """Finds a choice; flags that it asks get their names in `flags`."""

    def __init__(self, cases: Sequence[Case], flags: dict[str, tuple[str, ...]]) -> None:
        self.cases, self.flags = cases, flags
        self.first = [*_rules(cases), *_lookups(cases), *flag_tests(cases)]
        self.last = [*_alignments(cases), *_thresholds(cases)]
        self.dtypes = list(_dtypes(cases))

    def choice(self, at: Sequence[int]) -> Choice | str | None:
        """A choice for some of the launches: the function itself where there is but one."""
        functions = list(dict.fromkeys(self.cases[index].wanted for index in at))
        if len(functions) == 1:
            return functions[0]
        # The type of the elements is why an instruction is taken, and hardly ever why a load runs ahead.
        between = self.dtypes if self._mixed(at) else []
        tests = [*self.first, *between, *self.last, *(self.dtypes if not between else [])]
        for test in chain(tests, pairs(tests), _listed(self.cases, at)):
            if not self._tells(test, at):
                continue
            then = self.choice([index for index in at if test.holds[index]])
            otherwise = self.choice([index for index in at if not test.holds[index]])
            if then is not None and otherwise is not None:
                return Choice(self._source(test), then, otherwise, test.comment)
        return None

    def _tells(self, test: _Test, at: Sequence[int]) -> bool:
        """Whether a test holds for some functions, and for others does not."""
        if any(test.holds[index] is None for index in at):
            return False
        if test.multiples and self._mixed(at):
            # Alignment decides how loads are carried out, and no more.
            return False
        yes = {self.cases[index].wanted for index in at if test.holds[index]}
        no = {self.cases[index].wanted for index in at if not test.holds[index]}
        return bool(yes and no and not yes & no)

    def _mixed(self, at: Sequence[int]) -> bool:
        """Whether launches take different instructions."""
        return len({frozenset(dot.instruction for dot in _dots(self.cases[index])) for index in at}) > 1

    def _source(self, test: _Test) -> str:
        if not test.multiples:
            return test.source
        known = next((flag for flag, arguments in self.flags.items() if arguments == test.multiples), None)
        flag = known or unused(_ALIGNED, {*_names(self.cases), *self.flags})
        self.flags[flag] = test.multiples
        return flag


def _rules(cases: Sequence[Case]) -> Iterator[_Test]:
    """What the instructions themselves ask for, with the extents in the author's words."""
    if not any(dot.instruction == "wgmma" for case in cases for dot in _dots(case)):
        return
    warps = [case.launch.options.num_warps % 4 == 0 for case in cases]
    for name in _constants(cases):
        values = [case.launch.constexprs[name] for case in cases]
        rows = [{dot.a.shape[-2] for dot in _dots(case)} for case in cases]
        if all(value in extents or not extents for value, extents in zip(values, rows, strict=True)):
            enough = tuple(whole and value >= _WGMMA_ROWS for whole, value in zip(warps, values, strict=True))
            yield _Test(f"gl.num_warps() % 4 == 0 and {name} >= {_WGMMA_ROWS}", enough, _WGMMA_RULE)
    yield _Test("gl.num_warps() % 4 == 0", tuple(warps), "wgmma takes whole warpgroups")


def _lookups(cases: Sequence[Case]) -> Iterator[_Test]:
    """Stages enough for what says where tiles are, where Triton copies that ahead under some launches."""
    copied = any(ring.is_lookup for case in cases for ring in case.facts.lowered.rings.values())
    if copied and all(case.asks_stages for case in cases):
        holds = tuple(case.launch.options.num_stages > 2 for case in cases)
        yield _Test(f"{STAGES} >= 3", holds, "what says where tiles are has a stage, too")


def _dots(case: Case) -> list[DotFact]:
    return list(case.facts.lowered.dots.values())


def flag_tests(cases: Sequence[Case]) -> Iterator[_Test]:
    """Truth, presence and words."""
    launches = [case.launch for case in cases]
    for name in _names(cases):
        values = [launch.constexprs.get(name) for launch in launches]
        known = [name in launch.constexprs for launch in launches]
        kinds = [launch.signature.get(name, "") for launch in launches]
        if all(known) and all(isinstance(value, bool) for value in values):
            yield _Test(name, tuple(bool(value) for value in values))
        elif any(here and value is None for here, value in zip(known, values, strict=True)):
            absent = (here and value is None for here, value in zip(known, values, strict=True))
            yield _Test(f"{name} is None", tuple(absent))
        if all(isinstance(value, str) for value in values):
            for word in dict.fromkeys(values):
                yield _Test(f"{name} == {_spelled(word)}", tuple(value == word for value in values))
        # An integer that is 1 is known when a kernel is compiled; others are not.
        if any(kind[:1] in "iu" and kind for kind in kinds) and any(value == 1 for value in values):
            yield _Test(f"isinstance({name}, int)", tuple(known), f"{name} is 1")


def _dtypes(cases: Sequence[Case]) -> Iterator[_Test]:
    """What pointers point to, and what descriptors' tiles are of."""
    for name in _names(cases):
        kinds = [case.launch.signature.get(name, "") for case in cases]
        if all(kind.startswith("*") for kind in kinds):
            pointees = [gluon_dtype(kind.removeprefix("*").removeprefix("k")) for kind in kinds]
            for dtype in dict.fromkeys(pointees):
                same = tuple(other == dtype for other in pointees)
                yield _Test(f"{name}.dtype.element_ty == gl.{dtype}", same)
        if all(kind.startswith("tensordesc<") for kind in kinds):
            elements = [kind.removeprefix("tensordesc<").partition("[")[0] for kind in kinds]
            for element in dict.fromkeys(elements):
                same = tuple(other == element for other in elements)
                yield _Test(f"{name}.dtype == gl.{gluon_dtype(element)}", same)


def _alignments(cases: Sequence[Case]) -> Iterator[_Test]:
    """Integers that are multiples of 16 under all launches of a function: rows that start where wide copies may.

    No kernel can ask that, so that each launch has to tell it.
    """
    for wanted in dict.fromkeys(case.wanted for case in cases):
        own = [set(case.launch.divisible_by_16) for case in cases if case.wanted == wanted]
        integers = {
            name
            for name in set.intersection(*own)
            if all(case.launch.signature.get(name, "constexpr")[:1] in "iuc" for case in cases)
        }
        names = tuple(
            name
            for name in _names(cases)
            if name in integers and any(name not in case.launch.divisible_by_16 for case in cases)
        )
        if names:
            holds = tuple(set(names) <= set(case.launch.divisible_by_16) for case in cases)
            yield _Test("", holds, _ALIGNED_COMMENT, names)


def _thresholds(cases: Sequence[Case]) -> Iterator[_Test]:
    """Numbers: those that are 0 in some launch first, as they switch something off."""
    numbers = {name: [case.launch.constexprs[name] for case in cases] for name in _constants(cases)}
    for name in sorted(numbers, key=lambda name: 0 not in numbers[name]):
        yield from _compared(name, numbers[name])
    yield from _compared("gl.num_warps()", [case.launch.options.num_warps for case in cases])
    if all(case.asks_stages for case in cases):
        yield from _compared(STAGES, [case.launch.options.num_stages for case in cases])


def _compared(name: str, values: Sequence[int]) -> Iterator[_Test]:
    every = sorted(set(values))
    for bound in every[1:]:
        yield _Test(f"{name} >= {bound}", tuple(value >= bound for value in values))
    for one in every[1:-1]:
        yield _Test(f"{name} == {one}", tuple(value == one for value in values))


def pairs(tests: Sequence[_Test]) -> Iterator[_Test]:
    """Two conditions at once; of two flags one without the other, too, and either."""
    plain = [test for test in tests if not test.multiples]
    twos = [(plain[one], plain[two]) for one, two in sorted(combinations(range(len(plain)), 2), key=sum)]
    for first, second in twos:
        both = (None if a is None or b is None else a and b for a, b in zip(first.holds, second.holds, strict=True))
        yield _Test(f"{first.source} and {second.source}", tuple(both), first.comment or second.comment)
    for first, second in twos:
        if first.source.isidentifier() and second.source.isidentifier():
            held = list(zip(first.holds, second.holds, strict=True))
            yield _Test(f"{first.source} and not {second.source}", tuple(bool(a and not b) for a, b in held))
            yield _Test(f"{second.source} and not {first.source}", tuple(bool(b and not a) for a, b in held))
            yield _Test(f"{first.source} or {second.source}", tuple(bool(a or b) for a, b in held))


def _listed(cases: Sequence[Case], at: Sequence[int]) -> Iterator[_Test]:
    """The exact values of one function's launches, of the parameters that differ between any."""
    known = [*_constants(cases), *_words(cases)]
    names = [name for name in known if len({cases[index].launch.constexprs[name] for index in at}) > 1]
    warps = {cases[index].launch.options.num_warps for index in at}

    def values(case: Case) -> tuple[tuple[str, Any], ...]:
        own = tuple((name, case.launch.constexprs[name]) for name in names)
        return (*own, ("gl.num_warps()", case.launch.options.num_warps)) if len(warps) > 1 else own

    for wanted in dict.fromkeys(cases[index].wanted for index in at):
        here = list(dict.fromkeys(values(cases[index]) for index in at if cases[index].wanted == wanted))
        if len(here) <= _MOST_NAMED and all(here):
            source = " or ".join(" and ".join(f"{name} == {_spelled(value)}" for name, value in each) for each in here)
            yield _Test(source, tuple(values(case) in here for case in cases))


def _names(cases: Sequence[Case]) -> list[str]:
    return list(dict.fromkeys(name for case in cases for name in case.launch.signature))


def _constants(cases: Sequence[Case]) -> list[str]:
    """Parameters that are integers known when a kernel is compiled, under every launch."""

    def is_number(values: Mapping[str, object], name: str) -> bool:
        return isinstance(values.get(name), int) and not isinstance(values.get(name), bool)

    return [name for name in _names(cases) if all(is_number(case.launch.constexprs, name) for case in cases)]


def _words(cases: Sequence[Case]) -> list[str]:
    """Parameters that are words, under every launch."""
    return [name for name in _names(cases) if all(isinstance(case.launch.constexprs.get(name), str) for case in cases)]


def _spelled(value: object) -> str:
    """A number or a word as source."""
    return f'"{value}"' if isinstance(value, str) else str(value)
