"""What is known of a file's kernels before anything is decided: launches, slices, and what Triton says of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from tt2gl.analysis.alternatives import LessAligned, less_aligned, with_aligning
from tt2gl.analysis.cast_products import cast_products
from tt2gl.analysis.constant_quotients import constant_quotients
from tt2gl.analysis.copied_truths import copied_truths
from tt2gl.analysis.coverage import unreached, variants
from tt2gl.analysis.equal_values import equal_values
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.first_turns import first_turns
from tt2gl.analysis.groups import alike, grouped, misaligned, traits
from tt2gl.analysis.helper_loads import (
    calls_in_between,
    calls_of,
    calls_of_lasting_operands,
    calls_of_products,
    helpers_elsewhere,
)
from tt2gl.analysis.kernel import observe_accesses_job, observe_job, parsed
from tt2gl.analysis.names_again import names_again
from tt2gl.analysis.single_turns import single_turns
from tt2gl.analysis.summed_products import summed_products
from tt2gl.analysis.turns_apart import turns_apart
from tt2gl.children import Outcome
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.file_plan import same_file
from tt2gl.guesses import guessed_launches, likely_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.jit_functions import JitFunction
from tt2gl.kernel_state import Calls, Kernel
from tt2gl.launches import Launch, check_launch, descriptor_ranks, launches_for, parted
from tt2gl.lowering.asked_types import made_for_types
from tt2gl.lowering.lowered_source import (
    LoweredSource,
    with_bare_products,
    with_bytes_loaded,
    with_equal_values,
    with_first_turns,
    with_inlined,
    with_loops_written_out,
    with_other_names,
    with_products_of_sums,
    with_quotients_written_out,
    with_single_turns,
)
from tt2gl.lowering.reorderings import in_any_order
from tt2gl.lowering.type_tests import branching_on_types
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import SourceFile
from tt2gl.targets import Target, mover, precision_of_sums

_Place = TypeVar("_Place")
_Found = Callable[[Collection[LaunchFacts], Mapping[str, ast.Module], Path], set[_Place]]
_Step = Callable[[LoweredSource, Collection[_Place]], LoweredSource | None]


@dataclass(frozen=True)
class Asked:
    """What a conversion is asked for: `launches` None to infer them, `root` what their files are relative to.

    `timeout` is in seconds, a kernel and launch. `direct_to_lds`: whether the rule of that name is on. `seen`: what has
    been observed of slices under launches: a file is observed after each step, and most of its kernels stay.
    """

    target: Target
    launches: Sequence[Launch] | None
    root: Path | None
    timeout: float
    direct_to_lds: bool = True
    seen: dict[tuple[Slice | None, str], Outcome[LaunchFacts]] = field(default_factory=dict, compare=False, repr=False)

    def observe(self, jobs: Sequence[tuple[Slice | None, Launch]]) -> list[Outcome[LaunchFacts]]:
        """What `observe_job` says of kernels under launches, side by side, each in a child process."""
        # By what launches are written as: constants may be equal, and of other types.
        asked = {(kernel, repr(launch)): (kernel, launch) for kernel, launch in jobs}
        new = [key for key in asked if key not in self.seen]
        arguments = [(*asked[key], self.target.name, self.direct_to_lds) for key in new]
        outcomes = map_isolated(observe_job, arguments, timeout=self.timeout, family=_family)
        self.seen.update(zip(new, outcomes, strict=True))
        return [self.seen[kernel, repr(launch)] for kernel, launch in jobs]


def observed(known: LoweredSource, asked: Asked) -> list[Kernel]:
    """The kernels of a file with their launches, slices and facts."""
    # A helper that is written out wherever it was called is no kernel for that.
    names = {function.name for function in known.source.kernels}
    triton = [function for function in known.work.functions if function.dialect == "triton"]
    kernels = [Kernel(function) for function in triton if function.name in names]
    if not kernels:
        raise _no_kernel(known.source)
    for kernel in kernels:
        _find_launches(kernel, known, asked)
        if kernel.function.name in known.parted:
            kernel.launches = tuple(parted(launch, descriptor_ranks(kernel.launches)) for launch in kernel.launches)
        _slice(kernel, known.work, asked)
    _observe(kernels, asked)
    _observe([kernel for kernel in kernels if _guessed_anew(kernel, known.source, asked)], asked)
    return kernels


def from_hosts(kernels: Sequence[Kernel], target: Target) -> dict[str, dict[str, int]]:
    """The tensor descriptors that the host gives kernels on a target where nothing copies tiles: by kernel, ranks."""
    given = {} if mover(target) else {kernel.function.name: descriptor_ranks(kernel.launches) for kernel in kernels}
    return {name: ranks for name, ranks in given.items() if ranks}


def worded_elsewhere(kernels: Sequence[Kernel]) -> frozenset[tuple[str, int]]:
    """The helpers in other files that Gluon has other words for: by file and line.

    They make a number a tensor, which may be for its type alone, branch on types that others ask for, or reshape in any
    order.
    """
    seen = {
        (function.path, function.line)
        for kernel in kernels
        for facts in kernel.facts.values()
        for function in facts.functions.values()
        if not same_file(function.path, kernel.function)
    }
    return made_for_types(seen) | branching_on_types(seen) | in_any_order(seen)


def running_ahead_elsewhere(known: LoweredSource, kernels: Sequence[Kernel]) -> set[tuple[str, int]]:
    """The helpers in other files that would be written out in this one, by file and line."""
    found: set[tuple[str, int]] = set()
    for kernel in kernels:
        if kernel.slice is not None:
            facts, trees, path = list(kernel.facts.values()), parsed(kernel.slice), known.work.path
            seen = facts, trees, path
            places = calls_in_between(*seen) | calls_of_products(*seen) | calls_of_lasting_operands(*seen)
            found |= helpers_elsewhere(facts, places, path)
    return found


def with_quotients_of_constants(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file whose loops count to constants where Triton has quotients of constants as scalars, and its kernels."""
    return _as_long_as(known, kernels, asked, constant_quotients, with_quotients_written_out)


def without_loops_of_one_turn(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file without inner loops that run once, whose loads run ahead of the loop around, and its kernels."""
    return _as_long_as(known, kernels, asked, single_turns, with_single_turns)


def with_turns_apart(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, torn: Collection[str]
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with the loops written out whose turns the compiler writes out with other shapes, and its kernels.

    Of helpers that compute with other shapes in each turn those tell that are `torn`.
    """
    return _as_long_as(known, kernels, asked, partial(turns_apart, torn=torn), with_loops_written_out)


def without_casts_of_products(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file without casts of products that are added to something, which change nothing, and its kernels."""
    return _as_long_as(known, kernels, asked, cast_products, with_bare_products)


def with_sums_as_products(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with those sums as matrix products that Triton's compiler makes such of, and its kernels."""
    step = partial(with_products_of_sums, precision=precision_of_sums(asked.target))
    return _as_long_as(known, kernels, asked, summed_products, step)


def with_first_turns_alone(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with first turns apart whose loads alone are copied ahead, or whose alone are not, and its kernels."""
    return _as_long_as(known, kernels, asked, first_turns, with_first_turns)


def with_names_of_their_own(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file whose tiles that are copied ahead have no name of what was there before their loop, and its kernels."""
    return _as_long_as(known, kernels, asked, names_again, with_other_names)


def with_equal_values_once(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file without loads and products that make what a name has already, and its kernels.

    What holds under conditions is taken from launches that are known alone: sizes are often guessed to be equal.
    """
    guessed = {each.function.name for each in kernels if any(one.origin == "guessed" for one in each.launches)}
    return _as_long_as(known, kernels, asked, partial(equal_values, guessed=guessed), with_equal_values)


def with_copied_truths_as_bytes(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with truth values that Triton copies ahead loaded as the bytes that it copies, and its kernels."""
    return _as_long_as(known, kernels, asked, copied_truths, with_bytes_loaded)


def _as_long_as(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, found: _Found[_Place], step: _Step[_Place]
) -> tuple[LoweredSource, list[Kernel]]:
    """The file after a step as often as there are places for it, by what is observed of its kernels, and these."""
    while True:
        seen = [(list(kernel.facts.values()), parsed(kernel.slice)) for kernel in kernels if kernel.slice is not None]
        places = set[_Place]().union(*(found(facts, trees, known.work.path) for facts, trees in seen))
        made = step(known, places) if places else None
        if made is None:
            return known, kernels
        again = observed(made, asked)
        if any(new.facts.keys() != old.facts.keys() for new, old in zip(again, kernels, strict=True)):
            return known, kernels
        known, kernels = made, again


def inlined(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, calls: Calls
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with helpers written out whose loads run ahead of a loop that calls them, or multiply, and its kernels.

    A call at a time of those that lead to a load, as only what compiles tells where the next one is.
    """
    while True:
        asking = [
            (kernel.function.name, (list(kernel.facts.values()), parsed(kernel.slice), known.work.path))
            for kernel in kernels
            if kernel.slice is not None and kernel.function.name not in calls.plain
        ]
        wanted = {name: calls_in_between(*seen) for name, seen in asking}
        multiplied = {name: calls_of_products(*seen) for name, seen in asking}
        lasting = {name: calls_of_lasting_operands(*seen) for name, seen in asking}
        ahead, products = set().union(*wanted.values()), set().union(*multiplied.values(), *lasting.values())
        facts = [seen for kernel in kernels for seen in kernel.facts.values()]
        torn = calls_of(calls.torn, facts, known.work.path)
        remade = calls_of(calls.converting, facts, known.work.path)
        own = str(known.work.path.absolute())
        reached = {one.line for seen in facts for one in seen.functions.values() if one.path == own}
        asked_for = ahead | torn | products | remade
        step = with_inlined(known, ahead, torn, reached, products, remade) if asked_for else None
        if step is None:
            return known, kernels
        again = observed(step, asked)
        if any(new.facts.keys() != old.facts.keys() for new, old in zip(again, kernels, strict=True)):
            return known, kernels
        for new, old in zip(again, kernels, strict=True):
            name = new.function.name
            new.written_out = old.written_out or bool(wanted.get(name)) or bool(multiplied.get(name))
            new.multiplied_here = old.multiplied_here or bool(lasting.get(name))
        known, kernels = step, again


def explore(kernels: Sequence[Kernel], asked: Asked) -> None:
    """Facts of branches that no launch takes, by turning the flags that they ask; what fails is left out.

    Launches that one text cannot serve are explored apart, as each text has those branches.
    """
    jobs: list[tuple[Kernel, list[LaunchFacts], Launch]] = []
    for kernel in kernels:
        if kernel.kept is None and kernel.slice is not None:
            trees, every = parsed(kernel.slice), list(kernel.facts.values())
            for group in grouped(every):
                known = [kernel.launches[list(kernel.facts)[place]] for place in group]
                facts = [every[place] for place in group]
                found = variants(known, unreached(trees, facts), trees)
                jobs.extend((kernel, facts, launch) for launch in found if launch not in known)
            every_launch = [kernel.launches[index] for index in kernel.facts]
            jobs.extend((kernel, [], launch) for launch in misaligned(every_launch, every))
    outcomes = asked.observe([(kernel.slice, launch) for kernel, _, launch in jobs])
    for (kernel, facts, launch), outcome in zip(jobs, outcomes, strict=True):
        if outcome.value is not None and not facts:
            kernel.witnesses.append((launch, outcome.value))
        elif outcome.value is not None and all(alike(traits(outcome.value), traits(one)) for one in facts):
            kernel.turned.append((launch, outcome.value))


def look_at_alignment(kernels: Sequence[Kernel], asked: Asked) -> None:
    """Which arguments have to be aligned for the accesses of kernels of which some launches have narrower ones."""
    jobs: list[tuple[Kernel, LessAligned]] = []
    for kernel in kernels:
        if kernel.kept is None and kernel.slice is not None:
            known = {index: kernel.launches[index] for index in kernel.facts}
            jobs += [(kernel, less) for less in less_aligned(known, kernel.facts)]
    arguments = [(kernel.slice, less.launch, asked.target.name) for kernel, less in jobs]
    outcomes = map_isolated(observe_accesses_job, arguments, timeout=asked.timeout, family=_family)
    for kernel in kernels:
        own = [(less, out.value) for (each, less), out in zip(jobs, outcomes, strict=True) if each is kernel]
        if own:
            kernel.facts = with_aligning(
                kernel.facts, [(less, accesses) for less, accesses in own if accesses is not None]
            )


def _find_launches(kernel: Kernel, known: LoweredSource, asked: Asked) -> None:
    source, author = known.source, _author(kernel, known.source)
    if asked.launches is not None:
        kernel.launches = launches_for(asked.launches, source.path, kernel.function.name, asked.root)
        for launch in kernel.launches:
            check_launch(launch, author)
    if not kernel.launches:
        kernel.launches, kernel.guesses, _ = likely_launches(source, author, asked.target.name)
        if any(launch.origin == "guessed" for launch in kernel.launches) and known.work.text != source.text:
            # What was lowered may take types that the author's own text does not.
            kernel.launches, kernel.guesses = guessed_launches(source, author, asked.target.name, asked.root)
    if not kernel.launches:
        kernel.keep("TTG220", "No launch of this kernel is known.", "Give its launches with --launches.")


def _author(kernel: Kernel, source: SourceFile) -> JitFunction:
    """The kernel in the author's text, which says more of its parameters than its lowered one."""
    same = [function for function in source.kernels if function.name == kernel.function.name]
    return next((function for function in same if function.line == kernel.function.line), same[0])


def _guessed_anew(kernel: Kernel, source: SourceFile, asked: Asked) -> bool:
    """Whether a kernel that does not compile under some guess has other ones; then nothing is known of it."""
    if not any(kernel.launches[index].origin == "guessed" for index in kernel.failed):
        return False
    launches, guesses = guessed_launches(source, _author(kernel, source), asked.target.name, asked.root)
    if launches == kernel.launches:
        return False
    kernel.launches, kernel.guesses, kernel.kept = launches, guesses, None
    kernel.facts.clear()
    kernel.failed.clear()
    return True


def _slice(kernel: Kernel, source: SourceFile, asked: Asked) -> None:
    try:
        kernel.slice = slice_kernel(
            source, kernel.function.name, target=asked.target.name, root=asked.root, passed=kernel.passed
        )
    except DiagnosticError as error:
        kernel.kept = kernel.kept or error.diagnostic
        return
    kernel.diagnostics.extend(kernel.slice.diagnostics)


def _observe(kernels: Sequence[Kernel], asked: Asked) -> None:
    """Facts of all launches of all kernels."""
    jobs = [
        (kernel, index)
        for kernel in kernels
        if kernel.slice is not None and kernel.kept is None
        for index in range(len(kernel.launches))
    ]
    preload()
    outcomes = asked.observe([(kernel.slice, kernel.launches[index]) for kernel, index in jobs])
    for (kernel, index), outcome in zip(jobs, outcomes, strict=True):
        if outcome.value is not None:
            kernel.facts[index] = outcome.value
            continue
        how = {"crash": "aborts the compiler", "timeout": f"hangs the compiler (over {asked.timeout:g} s)"}
        what = how.get(outcome.kind, "does not compile as it is")
        said = outcome.error.removeprefix("CompileError: ").rstrip(".")
        message = f"Under launch {index} the kernel {what}: {said}."
        where = (str(kernel.function.path), kernel.function.line, 0)
        hint = "See whether the launch fits the kernel and the target."
        kernel.failed[index] = Diagnostic("TTG401", Severity.WARNING, *where, message, hint)
    for kernel in kernels:
        if kernel.kept is None and not kernel.facts:
            first = next(iter(kernel.failed.values()))
            kernel.kept = first


def _family(_kernel: Slice | None, _launch: Launch, *settings: object) -> Hashable:
    """One child may observe launches for one target, and under the same rules."""
    return settings


_KERNEL_IN_TEXT = re.compile(r"@triton\.jit\s*\n\s*def ")


def _no_kernel(source: SourceFile) -> DiagnosticError:
    gluon = any(function.dialect == "gluon" for function in source.functions)
    message = "The file's kernels are Gluon already." if gluon else "The file has no Triton kernel."
    hint = "Give a file with functions that a `@triton.jit` decorates."
    constants = (node for node in ast.walk(ast.parse(source.text)) if isinstance(node, ast.Constant))
    if any(_KERNEL_IN_TEXT.search(str(constant.value)) for constant in constants):
        message = "The file has no Triton kernel, but strings with kernels, as what TorchInductor writes for a model."
        hint = "Put each kernel into a file of its own; TorchInductor keeps one such of each in its cache."
    return DiagnosticError(
        Diagnostic("TTG004", Severity.ERROR, str(source.path), 0, 0, message, hint), ExitCode.BAD_SOURCE
    )
