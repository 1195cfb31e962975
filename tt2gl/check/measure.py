"""The kernels of a file as they are now, compiled: the costly half of `check`, which an unchanged file is spared."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tt2gl.check.lowering import Lowering, Measured, Spot, Spots
from tt2gl.check.places import locate
from tt2gl.diagnostics import Diagnostic, DiagnosticError, Severity, shown
from tt2gl.guesses import guessed_launches
from tt2gl.jit_functions import JitFunction
from tt2gl.launch_file import encode
from tt2gl.launches import Launch, TensorArg, check_launch, launches_for
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, names_of
from tt2gl.source import SourceFile, read_source
from tt2gl.targets import get_target
from tt2gl.verify.compile import CompiledKernel, CompileJob, compile_outcomes, compile_result, tensor_bytes

TEXTS = ("ttgir", "ptx", "amdgcn")


@dataclass(frozen=True)
class Work:
    """One file to be measured for `targets`. `launches` are those given for it (of any files, relative to `root`).

    For a port, `original` is the file that it was made of: what is launched there is launched here.
    """

    file: str
    path: Path
    targets: tuple[str, ...]
    launches: tuple[Launch, ...] = ()
    root: Path | None = None
    original: Path | None = None


Trouble = tuple[str, Diagnostic]
"""The file that is not, or not wholly, measured, and why: what is wrong may be in another."""


@dataclass(frozen=True)
class _Job:
    work: Work
    kernel: JitFunction
    index: int
    label: str
    compile: CompileJob


Known = MutableMapping[str, Lowering]
"""Lowerings of kernels compiled before, by `_identity`: what this run compiles is added."""


def label(launch: Launch) -> str:
    """A launch in a line, as far as it changes what is compiled: types or values by position, then options.

    `:16` is a multiple of 16, as in Triton's own signatures; `:S` a tensor below 2 GiB, which counts on AMD.
    """
    words = []
    for name, kind in launch.signature.items():
        if kind == "constexpr":
            words.append(json.dumps(encode(launch.constexprs.get(name))))
            continue
        tensor = (launch.args or {}).get(name)
        small = isinstance(tensor, TensorArg) and tensor_bytes(tensor) < 2**31
        words.append(kind + ":16" * (name in launch.divisible_by_16) + ":S" * small)
    options = [f"{name}={json.dumps(encode(value))}" for name, value in launch.options.to_dict().items()]
    return f"{', '.join(words)}; {', '.join(options)}"


def measure(
    works: Sequence[Work],
    known: Known,
    *,
    home: Path,
    timeout: float = 60.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Measured], list[Trouble]]:
    """Compile the kernels of files, and say what came of it; files of the source are told relative to `home`.

    A file that cannot be read, or a kernel that cannot be cut out of it, is trouble.
    """
    jobs: list[_Job] = []
    troubles: list[Trouble] = []
    for work in works:
        diagnostics: list[Diagnostic] = []
        try:
            jobs.extend(_jobs(work, diagnostics))
        except DiagnosticError as error:
            diagnostics.append(error.diagnostic)
        troubles.extend((work.file, diagnostic) for diagnostic in diagnostics)
    identities = [_identity(job) for job in jobs]
    fresh = [place for place, identity in enumerate(identities) if identity not in known]
    note = None if on_progress is None else functools.partial(_count, on_progress, len(fresh), [0])
    outcomes = compile_outcomes([jobs[place].compile for place in fresh], timeout=timeout, on_done=note)
    found: dict[int, Measured] = {}
    for place, outcome in zip(fresh, outcomes, strict=True):
        job = jobs[place]
        if outcome.kind == "timeout":
            troubles.append((job.work.file, _late(job, timeout)))
            continue
        result = compile_result(outcome, job.compile.target)
        found[place] = _measured(job, outcome.value, home) if result.ok else _failed(job, result.error or "", home)
        known[identities[place]] = found[place].lowering
    for place in sorted(set(range(len(jobs))) - set(fresh)):
        # The one used last comes last: a cache keeps so many.
        identity = identities[place]
        known[identity] = known.pop(identity)
        found[place] = _measured_before(jobs[place], known[identity])
    return [found[place] for place in sorted(found)], troubles


def _late(job: _Job, timeout: float) -> Diagnostic:
    message = f"{job.kernel.name} takes the compiler over {timeout:g} s for {job.compile.target}, launch {job.index}."
    hint = "Allow more with --timeout."
    return Diagnostic("TTG401", Severity.WARNING, str(job.kernel.path), job.kernel.line, 0, message, hint)


def _count(on_progress: Callable[[int, int], None], total: int, done: list[int], _index: int) -> None:
    done[0] += 1
    on_progress(done[0], total)


def _jobs(work: Work, diagnostics: list[Diagnostic]) -> Iterator[_Job]:
    source = read_source(work.path)
    for kernel in source.kernels:
        for target in work.targets:
            try:
                sliced = slice_kernel(source, kernel.name, target=target, root=work.root)
                labelled = {label(launch): launch for launch in _launches(work, source, kernel, target)}
            except DiagnosticError as error:
                diagnostics.append(error.diagnostic)
                continue
            if not labelled:
                diagnostics.append(_unlaunched(kernel))
            for index, (text, launch) in enumerate(labelled.items()):
                yield _Job(work, kernel, index, text, CompileJob(sliced, launch, target, texts=TEXTS))


def _launches(work: Work, source: SourceFile, kernel: JitFunction, target: str) -> Sequence[Launch]:
    """Those given for the file or, of a port, for its original; else those that the file, or the original, shows."""
    for path in filter(None, (work.path, work.original)):
        given = launches_for(work.launches, path, kernel.name, work.root)
        for launch in given:
            check_launch(launch, kernel)
        if given:
            return given
    if work.original is not None:
        original = read_source(work.original)
        if any(function.name == kernel.name for function in original.functions):
            return guessed_launches(original, original.kernel(kernel.name), target, work.root)[0]
    return guessed_launches(source, kernel, target, work.root)[0]


def _unlaunched(kernel: JitFunction) -> Diagnostic:
    message = f"No launch of {kernel.name} is known, so it is not held."
    hint = "Give its launches with --launches."
    return Diagnostic("TTG220", Severity.WARNING, str(kernel.path), kernel.line, kernel.column, message, hint)


def _measured(job: _Job, compiled: CompiledKernel | None, home: Path) -> Measured:
    assert compiled is not None
    modules = {name: _relative(path, home) for name, path in names_of(job.compile.slice).items()}
    located = locate(compiled.asm, modules)
    metrics = compiled.metrics
    lowering = Lowering(
        True,
        located.loads,
        located.stores,
        metrics.mma,
        {tile: max(depths) for tile, depths in metrics.rings.items()},
        len(located.spots.products),
        sum(metrics.step_mma.values()),
        located.scalar_products,
        metrics.convert_layouts,
        metrics.shared_bytes,
        metrics.registers or 0,
        metrics.spills or 0,
    )
    target = job.compile.target
    return Measured(
        job.work.file, job.kernel.name, job.kernel.line, target, job.index, job.label, lowering, located.spots
    )


def _failed(job: _Job, error: str, home: Path) -> Measured:
    target = job.compile.target
    place = re.match(r"(?P<file>.+?):(?P<line>\d+)(?::\d+)?: (?P<said>.*)", error, re.DOTALL)
    faults: tuple[Spot, ...] = ()
    if place is not None:
        # Of the path the message has what is shown of one.
        known = {shown(module.path): module.path for module in job.compile.slice.modules}
        path = known.get(place["file"], Path(place["file"]))
        faults = ((str(_relative(path, home)), int(place["line"])),)
        error = place["said"]
    return Measured(
        job.work.file,
        job.kernel.name,
        job.kernel.line,
        target,
        job.index,
        job.label,
        Lowering(False),
        Spots(faults=faults),
        error,
    )


def _measured_before(job: _Job, lowering: Lowering) -> Measured:
    target = job.compile.target
    return Measured(job.work.file, job.kernel.name, job.kernel.line, target, job.index, job.label, lowering)


def _relative(path: Path, home: Path) -> Path:
    absolute = path.absolute()
    return absolute.relative_to(home) if absolute.is_relative_to(home) else absolute


def _identity(job: _Job) -> str:
    """What tells kernels apart that may compile to something else: not comments, not where they stand."""
    compiled = job.compile
    digest = hashlib.sha256()
    for part in (compiled.target, get_target(compiled.target).name, job.label, compiled.slice.kernel):
        digest.update(f"{part}\0".encode())
    digest.update(repr(compiled.slice.aligned).encode())
    for text in _texts(compiled.slice):
        digest.update(f"\0{text}".encode())
    return digest.hexdigest()


def _texts(sliced: Slice) -> Iterator[str]:
    """The modules of a slice, without positions and with names that do not depend on their text."""
    names: Mapping[str, str] = {module.name: f"module{index}" for index, module in enumerate(sliced.modules)}
    for module in sliced.modules:
        text = module.text
        for name, plain in names.items():
            text = text.replace(name, plain)
        yield ast.dump(ast.parse(text))
