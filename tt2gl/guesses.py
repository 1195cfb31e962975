"""Launches that a file alone shows, with guessed types that compile, where others than the likeliest do.

Triton's frontend is the judge of a guess: a pointer to what is shifted is one to integers, and products of fp16 do not
add up to int32. Where the likeliest types do not compile, those of one parameter after the other, then of all that have
one, are changed, and flags turned, as long as that leads further into the kernel.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tt2gl.compiler import backend_for, build_ir, options_for, source_for
from tt2gl.diagnostics import Diagnostic, DiagnosticError
from tt2gl.failures import CompileError, explain
from tt2gl.infer.launches import Inferred, infer_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import Launch
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.source import SourceFile
from tt2gl.targets import get_target

_OTHERS: Mapping[str, tuple[str, ...]] = {
    "*fp16": ("*fp32", "*i8", "*i32"),
    "*bf16": ("*fp32", "*i8", "*i32"),
    "*fp32": ("*fp16", "*i32"),
    "*i1": ("*i32", "*fp32"),
    "*i8": ("*i32", "*fp32"),
    "*i32": ("*fp32", "*i64"),
    "*i64": ("*fp32", "*i32"),
    "i32": ("fp32", "*fp32"),
    "fp32": ("i32", "*fp32"),
}
"""What a guessed type may be instead, the likeliest first."""

_ROUNDS = 3
_SECONDS = 20.0


# A conversion asks again each time it has lowered the file further, and verifying for each launch.
@functools.lru_cache(maxsize=128)
def likely_launches(source: SourceFile, function: JitFunction) -> Inferred:
    """The launches that a file shows of a kernel, whether they compile or not."""
    return infer_launches(source, function)


@functools.lru_cache(maxsize=128)
def guessed_launches(
    source: SourceFile, function: JitFunction, target: str, root: Path | None
) -> tuple[tuple[Launch, ...], tuple[Diagnostic, ...]]:
    """The launches that a file shows of a kernel, and notes on what was guessed of them."""
    inferred = likely_launches(source, function)
    if not inferred.types:
        return inferred.launches, inferred.notes
    try:
        kernel = slice_kernel(source, function.name, target=target, root=root)
    except DiagnosticError:
        return inferred.launches, inferred.notes
    preload()
    types: Mapping[str, str | bool] = inferred.types
    (furthest,) = _compiled(kernel, [inferred.launches[0]], target)
    for _ in range(_ROUNDS):
        if furthest is None:
            break
        tried = [{**types, **changed} for changed in _changes(types)]
        launches = [infer_launches(source, function, limit=1, types=one).launches[0] for one in tried]
        reached = _compiled(kernel, launches, target)
        if None in reached:
            best = reached.index(None)
        else:
            best = max(range(len(reached)), key=lambda place: (reached[place] or 0, -place))
            if (reached[best] or 0) <= furthest:
                return inferred.launches, inferred.notes
        types, furthest = tried[best], reached[best]
    if types is inferred.types or furthest is not None:
        return inferred.launches, inferred.notes
    found = infer_launches(source, function, types=types)
    return found.launches, found.notes


def _changes(types: Mapping[str, str | bool]) -> Iterator[Mapping[str, str | bool]]:
    """Other types for one parameter, or a flag turned, then other types for all that have the same."""
    for name, kind in types.items():
        if isinstance(kind, bool):
            yield {name: not kind}
            continue
        for other in _OTHERS.get(kind, ()):
            yield {name: other}
    for kind, others in _OTHERS.items():
        alike = [name for name, own in types.items() if own == kind]
        if len(alike) > 1:
            yield from (dict.fromkeys(alike, other) for other in others)


def _compiled(kernel: Slice, launches: list[Launch], target: str) -> list[int | None]:
    """For each launch None if Triton's frontend takes the kernel under it, else the line that it came to, or 0."""
    jobs = [(kernel, launch, target) for launch in launches]
    outcomes = map_isolated(frontend_job, jobs, timeout=_SECONDS, family=lambda *job: job[2])
    return [None if outcome.ok else _line(outcome.error) for outcome in outcomes]


def _line(error: str) -> int:
    place = re.match(r"(?:CompileError: )?[^\s:]+:(\d+):\d+: ", error)
    return int(place[1]) if place else 0


def frontend_job(kernel: Slice, launch: Launch, target: str) -> bool:
    """Whether Triton's frontend takes a kernel under a launch; for a child process."""
    with tempfile.TemporaryDirectory(prefix="guess-") as directory:
        try:
            fn = load_slice(kernel, Path(directory))
            backend, gpu = backend_for(get_target(target))
            build_ir(source_for(fn, launch), backend, gpu, options_for(backend, launch))
        except Exception as error:
            raise CompileError(explain(error, kernel)) from error
    return True
