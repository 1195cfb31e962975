"""Launches that a file alone shows, with guessed types that compile, where others than the likeliest do.

Triton's frontend is the judge of a guess: a pointer to what is shifted is one to integers, and products of fp16 do not
add up to int32. Where the likeliest types do not compile, those of one parameter after the other, then of all that have
one, are changed, and flags turned and sizes changed, as long as that leads further into the kernel.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tt2gl.children import Outcome
from tt2gl.compiler import backend_for, build_ir, build_machine_code, has_assembly, options_for, source_for
from tt2gl.diagnostics import Diagnostic, DiagnosticError
from tt2gl.failures import progress
from tt2gl.infer.launches import Choice, Inferred, infer_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import DtypeValue, Launch
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.source import SourceFile
from tt2gl.targets import get_target
from tt2gl.trees import python_tree

_OTHERS: Mapping[str, tuple[str, ...]] = {
    "*fp16": ("*fp32", "*i8", "*i32"),
    "*bf16": ("*fp32", "*i8", "*i32"),
    "*fp32": ("*fp16", "*i32"),
    "*i1": ("*i32", "*fp32"),
    "*i8": ("*i32", "*fp32"),
    "*i32": ("*fp32", "*i64", "*fp16", "i32"),
    "*i64": ("*fp32", "*i32", "*fp16"),
    "i32": ("fp32", "*fp32"),
    "fp32": ("i32", "*fp32"),
}
"""What a guessed type may be instead, the likeliest first."""

_DTYPES = ("fp32", "fp16", "i32", "i64", "bf16", "i8")
_SIZES = (16, 32, 64, 128, 1, 2, 4, 8)
_RARER = ("*i64", "*bf16", "*u8", "*i8", "*fp8e4nv", "*u32")
"""What a guessed dtype, size or pointer may be instead."""

_OVERLAPPING = re.compile(r"(^|_)pdl(_|$)", re.I)
"""What a flag is called that has a kernel start while the one before it ends: programmatic dependent launch."""

_SPECIALIZING = re.compile(r"warp_?spec", re.I)
"""What a flag is called that has Triton hand a loop's work out among warps."""

_ROUNDS = 6
_SECONDS = 20.0

# How far Triton's frontend came in a kernel: the line, then that of the helper called there. None: all the way.
_Reached = tuple[int, ...] | None


# A conversion asks again each time it has lowered the file further, and verifying for each launch.
@functools.lru_cache(maxsize=128)
def likely_launches(source: SourceFile, function: JitFunction, target: str) -> Inferred:
    """The launches that a file shows of a kernel, whether they compile or not."""
    return _inferred(source, function, target, _decided(function, target))


def _inferred(source: SourceFile, function: JitFunction, target: str, choices: Mapping[str, Choice]) -> Inferred:
    """The launches of a kernel by some choices; with descriptors that may be missing where hardware takes those."""
    return infer_launches(source, function, choices=choices, described=get_target(target).has_tma)


def _decided(function: JitFunction, target: str) -> Mapping[str, Choice]:
    """Flags that a target decides: kernels overlap on NVIDIA's GPUs since sm90, loops have warps apart on Blackwell."""
    gpu = get_target(target)
    absent = [each for each, has in ((_OVERLAPPING, gpu.has_tma), (_SPECIALIZING, gpu.specializes_warps)) if not has]
    flags = [parameter.name for parameter in function.parameters if parameter.is_constexpr]
    return {name: False for name in flags if any(each.search(name) for each in absent)}


@functools.lru_cache(maxsize=128)
def guessed_launches(
    source: SourceFile, function: JitFunction, target: str, root: Path | None
) -> tuple[tuple[Launch, ...], tuple[Diagnostic, ...]]:
    """The launches that a file shows of a kernel, and notes on what was guessed of them."""
    inferred = likely_launches(source, function, target)
    if not inferred.choices:
        return inferred.launches, inferred.notes
    try:
        kernel = slice_kernel(source, function.name, target=target, root=root)
    except DiagnosticError:
        return inferred.launches, inferred.notes
    preload()
    choices: Mapping[str, Choice] = inferred.choices
    (first,) = _tried(kernel, [inferred.launches[0]], target)
    if not first.ok:  # it hangs or aborts the compiler, or is none: other types would only take as long
        return inferred.launches, inferred.notes
    furthest = first.value
    for _ in range(_ROUNDS):
        if furthest is None:
            break
        for changes in (_other_types, _rarer_ones):
            tried = [{**choices, **changed} for changed in changes(choices)]
            launches = [infer_launches(source, function, limit=1, choices=one).launches[0] for one in tried]
            outcomes = _tried(kernel, launches, target, until=_all_the_way)
            reached = [outcome.value if outcome.ok else () for outcome in outcomes]
            best = _furthest(reached, furthest)
            if best is not None:
                choices, furthest = tried[best], reached[best]
                break
        else:
            break
    if furthest is not None:
        return inferred.launches, inferred.notes
    found = inferred if choices is inferred.choices else _inferred(source, function, target, choices)
    return _that_compile(kernel, found, target)


def _that_compile(kernel: Slice, inferred: Inferred, target: str) -> tuple[tuple[Launch, ...], tuple[Diagnostic, ...]]:
    """The first launch, which compiles, with those of the others that do.

    Flags that do not go together are guesses, and so is one that leads to assembly of another vendor.
    """
    first, *others = inferred.launches
    outcomes = _tried(kernel, others, target, assembled=True) if others else []
    fitting = [launch for launch, outcome in zip(others, outcomes, strict=True) if _all_the_way(outcome)]
    refused = len(others) - len(fitting)
    if not refused:
        return inferred.launches, inferred.notes
    told = f" Left out: {refused} more, which Triton refuses."
    return (first, *fitting), tuple(replace(note, message=note.message + told) for note in inferred.notes)


def _furthest(reached: list[_Reached], before: tuple[int, ...]) -> int | None:
    """The first of those that came furthest, None where none came further than `before`."""
    for place, lines in enumerate(reached):
        if lines is None:
            return place
    best = max((lines for lines in reached if lines is not None), default=before)
    return reached.index(best) if best > before else None


def _other_types(choices: Mapping[str, Choice]) -> Iterator[Mapping[str, Choice]]:
    """Other types for one parameter, or a flag turned, then other types for all that have the same."""
    for name, choice in choices.items():
        match choice:
            case bool():
                yield {name: not choice}
            case DtypeValue(own):
                yield from ({name: DtypeValue(other)} for other in _DTYPES if other != own)
            case str():
                yield from ({name: other} for other in _OTHERS.get(choice, ()))
    for kind, others in _OTHERS.items():
        alike = [name for name, own in choices.items() if own == kind]
        if len(alike) > 1:
            yield from (dict.fromkeys(alike, other) for other in others)


def _rarer_ones(choices: Mapping[str, Choice]) -> Iterator[Mapping[str, Choice]]:
    """Another value for one number, or a rarer type for one pointer."""
    for name, choice in choices.items():
        if type(choice) is int:
            yield from ({name: other} for other in _SIZES if other != choice)
        elif isinstance(choice, str) and choice.startswith("*"):
            yield from ({name: other} for other in _RARER if other not in (choice, *_OTHERS.get(choice, ())))


def _tried(
    kernel: Slice,
    launches: list[Launch],
    target: str,
    *,
    assembled: bool = False,
    until: Callable[[Outcome[_Reached]], bool] | None = None,
) -> list[Outcome[_Reached]]:
    """How far Triton's frontend comes in the kernel under each launch, or each to the first that `until` holds for.

    See `frontend_job`.
    """
    jobs = [(kernel, launch, target, assembled) for launch in launches]
    return map_isolated(frontend_job, jobs, timeout=_SECONDS, family=lambda *job: job[2], until=until)


def _all_the_way(outcome: Outcome[_Reached]) -> bool:
    return outcome.ok and outcome.value is None


def frontend_job(kernel: Slice, launch: Launch, target: str, assembled: bool = False) -> _Reached:
    """How far Triton's frontend comes in a kernel under a launch; for a child process.

    `assembled`: inline assembly is compiled to machine code, as the frontend knows nothing of it.
    """
    fn = _loaded(kernel)
    try:
        backend, gpu = backend_for(get_target(target))
        source, options = source_for(fn, launch), options_for(backend, launch)
        module = build_ir(source, backend, gpu, options)
        if assembled and has_assembly(module):
            build_machine_code(source, backend, gpu, options)
    except NameError:  # of what reading could not follow: whatever the types
        raise
    except Exception as error:  # noqa: BLE001 - whatever the compiler raises, the guess led no further
        return progress(error, kernel)
    return None


# A child is asked for one kernel under hundreds of launches: reading it takes longer than most of these.
@functools.lru_cache(maxsize=1)
def _loaded(kernel: Slice) -> Any:
    from triton.runtime.jit import JITFunction

    # Triton parses a function whenever it compiles it; what comes of it is only read.
    setattr(JITFunction, "parse", lambda function: python_tree(function._src))  # noqa: B010
    return load_slice(kernel, Path(tempfile.mkdtemp(prefix="guess-")))
