"""What is known of a file's kernels before anything is decided: launches, slices, and what Triton says of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tt2gl.analysis.alternatives import LessAligned, less_aligned, with_aligning
from tt2gl.analysis.coverage import unreached, variants
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.groups import alike, grouped, misaligned, traits
from tt2gl.analysis.helper_loads import (
    calls_in_between,
    calls_of_lasting_operands,
    calls_of_products,
    helpers_elsewhere,
)
from tt2gl.analysis.kernel import observe_accesses_job, observe_job, parsed
from tt2gl.children import Outcome
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.file_plan import same_file
from tt2gl.guesses import guessed_launches, likely_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.jit_functions import JitFunction
from tt2gl.kernel_state import Kernel
from tt2gl.launches import Launch, check_launch, descriptor_ranks, launches_for, parted
from tt2gl.lowering.asked_types import made_for_types
from tt2gl.lowering.lowered_source import (
    LoweredSource,
)
from tt2gl.lowering.reorderings import in_any_order
from tt2gl.lowering.type_tests import branching_on_types
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import SourceFile
from tt2gl.targets import Target, mover


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
