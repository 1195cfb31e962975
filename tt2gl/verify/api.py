"""`verify`: a file and its port, compiled for every target and launch, compared, and where asked run on the GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tt2gl.convert import convert
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.guesses import guessed_launches, likely_launches
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import Launch, check_launch, launches_for
from tt2gl.lowering.lowered_source import has_block_pointers, without_block_pointers
from tt2gl.results import CompileResult, KernelReport, NamedLayout
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import SourceFile, read_source
from tt2gl.targets import default_target, get_target
from tt2gl.targets.gpu import present_architecture
from tt2gl.verify.comparison import compare
from tt2gl.verify.compile import CompileJob, compile_many
from tt2gl.verify.device import DeviceJob, Participant, device_diagnostics, run_on_device
from tt2gl.verify.layout_views import ViewJob, named_layouts
from tt2gl.verify.options import SimulationOptions

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class _Case:
    """One kernel under one launch for one target. Without a port there is nothing to compile, only a report."""

    report: KernelReport
    line: int = 0
    launch: Launch | None = None
    original: Slice | None = None
    port: Slice | None = None


def verify(
    path: str | Path,
    gluon_path: str | Path | None = None,
    *,
    targets: Sequence[str] = (),
    launches: Sequence[Launch] | None = None,
    root: Path | None = None,
    run: Literal["none", "simulate", "gpu"] = "none",
    simulation: SimulationOptions | None = None,
    timeout: float = 60.0,
    estimate: bool = False,
    guesses_compared: bool = True,
    on_progress: Progress | None = None,
) -> tuple[KernelReport, ...]:
    """Compile the kernels of `path` and their Gluon for `targets`, and say what is worse; `run` both where asked.

    Without `gluon_path`, `path` is converted for each target first; nothing is written. Without `targets`, the one of
    the GPU present, else sm90. Without `launches`, those found in the file. `timeout` is in seconds, a compilation;
    what a simulation may take is in `simulation`; `estimate` asks for cycles (`verify.mca`). Unless `guesses_compared`,
    originals are not compiled under guessed launches, but to blame them for ports that do not compile, nor run. Raises
    DiagnosticError for input that cannot be read, an unknown target, and launches that do not fit.
    """
    names = [get_target(name).name for name in targets] or [default_target().name]
    source = read_source(path)
    if not has_block_pointers():
        # The author's kernels do not compile here; what they are lowered to is Triton too, and does.
        source = without_block_pointers(source)
    cases: list[_Case] = []
    for target in names:
        if gluon_path is None:
            cases += _converted_cases(source, target, launches, root, timeout, compiled=False)
        else:
            cases += _given_cases(source, read_source(gluon_path), target, launches, root)
    ready = [case for case in cases if case.port is not None]
    compiling = _Compiling(timeout, estimate, guesses_compared)
    runs = len(ready) if run != "none" else 0
    progress = _Counter(len(compiling.first(ready)) + runs, on_progress)
    reports = dict(zip(map(id, ready), compiling.reports(ready, progress), strict=True))
    refused = {report.target for report in reports.values() if gluon_path is None and _is_refused(report)}
    if refused:
        # A conversion that compiles what it writes falls back to less, and that is what `convert` would have written.
        again = [
            case
            for target in sorted(refused)
            for case in _converted_cases(source, target, launches, root, timeout, compiled=True)
        ]
        kept = [case for case in cases if case.report.target not in refused]
        cases = sorted([*kept, *again], key=lambda case: names.index(case.report.target))
        more = [case for case in again if case.port is not None]
        reports |= dict(zip(map(id, more), compiling.reports(more, _Counter(0, None)), strict=True))
        ready = [case for case in cases if case.port is not None]
    if run == "gpu":
        here = default_target().name if present_architecture() is not None else None
        for case in ready:
            reports[id(case)] = _run(case, reports[id(case)], here)
            progress.step()
    elif run == "simulate":
        reports |= _simulated(ready, reports, simulation or SimulationOptions(), progress, guesses_compared)
    return tuple(reports.get(id(case), case.report) for case in cases)


def layouts_of(
    path: str | Path,
    gluon_path: str | Path,
    target: str,
    *,
    launches: Sequence[Launch] | None = None,
    root: Path | None = None,
    timeout: float = 60.0,
) -> tuple[NamedLayout, ...]:
    """The layouts that the kernels of a port name, each under its first launch, in the order of the text."""
    cases = _given_cases(read_source(path), read_source(gluon_path), target, launches, root)
    jobs = [
        ViewJob(case.port, case.launch, target)
        for case in cases
        if case.report.launch == 0 and case.port is not None and case.launch is not None
    ]
    return tuple(layout for found in named_layouts(jobs, timeout=timeout) for layout in found)


class _Counter:
    """Counts jobs done, in whatever order they end."""

    def __init__(self, total: int, on_progress: Progress | None) -> None:
        self._done, self._total, self._on_progress = 0, total, on_progress

    def step(self, _index: int = 0) -> None:
        self._done += 1
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


# ----------------------------------------------------------------------------------------------------- the cases


def _launches_of(
    source: SourceFile, kernel: JitFunction, target: str, launches: Sequence[Launch] | None, root: Path | None
) -> tuple[Launch, ...]:
    """The launches of one kernel: those given, else those that the file itself shows."""
    given = launches_for(launches or (), source.path, kernel.name, root)
    for launch in given:
        check_launch(launch, kernel)
    return given or guessed_launches(source, kernel, target, root)[0]


def _converted_cases(
    source: SourceFile,
    target: str,
    launches: Sequence[Launch] | None,
    root: Path | None,
    timeout: float,
    *,
    compiled: bool,
) -> Iterator[_Case]:
    """The file converted for a target; `compiled`: as the conversion, too, compiles it, and what fails is kept."""
    options: dict[str, Any] = {"launches": launches, "root": root, "compile": compiled, "timeout": timeout}
    conversion = convert(source.path, target=target, **options)
    # Sliced as if it lay beside the original: relative imports must lead where they led before.
    port = read_source(source.path.with_name(f"{source.path.stem}_gluon.py"), conversion.text)
    for report in conversion.kernels:
        kernel = source.kernel(report.kernel)
        found = _launches_of(source, kernel, target, launches, root)
        if report.status != "converted" or report.launch >= len(found):
            yield _Case(report, source.author_line(kernel.line))
        else:
            yield _sliced(report, source, port, kernel, found[report.launch], root)


def _given_cases(
    source: SourceFile, port: SourceFile, target: str, launches: Sequence[Launch] | None, root: Path | None
) -> Iterator[_Case]:
    dialects = {function.name: function.dialect for function in port.functions}
    kernels = [kernel for kernel in source.kernels if kernel.dialect == "triton"]
    if not kernels:
        hint = "Give the file that was converted first, and its port after it."
        nothing = Diagnostic("TTG004", Severity.ERROR, str(source.path), 0, 0, "The file has no Triton kernel.", hint)
        raise DiagnosticError(nothing, ExitCode.BAD_SOURCE)
    for kernel in kernels:
        ported = dialects.get(kernel.name) == "gluon"
        found = launches_for(launches or (), source.path, kernel.name, root)
        # Guesses are only made where there is something to compile under them.
        if ported or found:
            found = _launches_of(source, kernel, target, launches, root)
        for index, launch in enumerate(found or likely_launches(source, kernel, target).launches):
            report = KernelReport(str(source.path), kernel.name, target, index, "converted")
            if ported:
                yield _sliced(report, source, port, kernel, launch, root)
            else:
                yield _Case(
                    replace(report, status="kept", diagnostics=(_no_port(kernel, source, port),)),
                    source.author_line(kernel.line),
                )


def _no_port(kernel: JitFunction, source: SourceFile, port: SourceFile) -> Diagnostic:
    message = f"There is no Gluon kernel {kernel.name} in this file."
    hint = f"Convert {source.path} again, or name the file that holds the port."
    return Diagnostic("TTG403", Severity.ERROR, str(port.path), 0, 0, message, hint)


# The launches of a kernel follow each other, and all have its slices.
@functools.lru_cache(maxsize=1)
def _slices(
    source: SourceFile, port: SourceFile, kernel: str, target: str, root: Path | None, passed: tuple[str, ...]
) -> tuple[Slice, Slice]:
    original = slice_kernel(source, kernel, target=target, root=root, passed=passed)
    return original, slice_kernel(port, kernel, target=target, root=root, passed=passed, original=source.path)


def _sliced(
    report: KernelReport,
    source: SourceFile,
    port: SourceFile,
    kernel: JitFunction,
    launch: Launch,
    root: Path | None,
) -> _Case:
    original, sliced = _slices(source, port, kernel.name, report.target, root, launch.passed)
    # A conversion tells these itself.
    told = tuple(dict.fromkeys((*report.diagnostics, *original.diagnostics)))
    return _Case(replace(report, diagnostics=told), source.author_line(kernel.line), launch, original, sliced)


# ------------------------------------------------------------------------------------------ compiling and running


@dataclass(frozen=True)
class _Compiling:
    """How cases are compiled: with originals under guessed launches, too, where those are compared."""

    timeout: float
    estimate: bool
    guesses_compared: bool

    def first(self, cases: Sequence[_Case]) -> list[CompileJob]:
        """What to compile before anything is known: every port, and the originals to compare with."""
        return [job for case in cases for job in (self._original(case), self._port(case)) if job is not None]

    def reports(self, cases: Sequence[_Case], progress: _Counter) -> Iterator[KernelReport]:
        """The report of each case with what compilers made of it; every compilation runs beside the others."""
        results = iter(compile_many(self.first(cases), timeout=self.timeout, on_done=progress.step))
        found = [(next(results) if self._original(case) else None, next(results)) for case in cases]
        alone = [case for case, (triton, gluon) in zip(cases, found, strict=True) if triton is None and not gluon.ok]
        blamed = iter(compile_many([self._job(case, case.original) for case in alone], timeout=self.timeout))
        for case, (triton, gluon) in zip(cases, found, strict=True):
            triton = triton if triton is not None or gluon.ok else next(blamed)
            told = (*case.report.diagnostics, *_findings(case, triton, gluon))
            status = case.report.status if gluon.ok else "failed"
            yield replace(case.report, status=status, triton=triton, gluon=gluon, diagnostics=told)

    def _original(self, case: _Case) -> CompileJob | None:
        guessed = case.launch is not None and case.launch.origin == "guessed"
        return self._job(case, case.original) if self.guesses_compared or not guessed else None

    def _port(self, case: _Case) -> CompileJob:
        return self._job(case, case.port)

    def _job(self, case: _Case, kernel: Slice | None) -> CompileJob:
        assert kernel is not None
        assert case.launch is not None
        return CompileJob(kernel, case.launch, case.report.target, estimate=self.estimate)


def _findings(case: _Case, triton: CompileResult | None, gluon: CompileResult) -> Iterator[Diagnostic]:
    report = case.report
    under = f"{report.kernel} does not compile for {report.target} (launch {report.launch})"
    if triton is not None and not triton.ok:
        message = f"The Triton kernel {under}: {_sentence(triton.error)}"
        hint = "Check the launch, and whether the kernel is meant for this target."
        yield Diagnostic("TTG401", Severity.ERROR, report.file, case.line, 0, message, hint)
    elif not gluon.ok:
        message = f"The Gluon kernel {under}: {_sentence(gluon.error)}"
        hint = "Convert again for this target; if that does not help, please report it."
        yield Diagnostic("TTG402", Severity.ERROR, report.file, case.line, 0, message, hint)
    elif triton is not None and triton.metrics is not None and gluon.metrics is not None:
        where = f" ({report.target}, launch {report.launch})."
        for worse in compare(triton.metrics, gluon.metrics, file=report.file, line=case.line):
            yield replace(worse, message=worse.message.removesuffix(".") + where)


def _is_refused(report: KernelReport) -> bool:
    """Whether a kernel's port does not compile, and the kernel does."""
    return report.triton is not None and report.triton.ok and report.gluon is not None and not report.gluon.ok


def _sentence(error: str | None) -> str:
    return f"{(error or 'no reason given').rstrip('.')}."


def _participants(case: _Case, report: KernelReport) -> tuple[Participant, Participant] | None:
    """Both kernels, ready to run; None where one of them does not compile."""
    compiled = report.gluon is not None and all(each is None or each.ok for each in (report.triton, report.gluon))
    if not compiled or case.launch is None or case.original is None or case.port is None:
        return None
    return Participant(case.original, case.launch), Participant(case.port, case.launch)


def _run(case: _Case, report: KernelReport, here: str | None) -> KernelReport:
    """Run both on the GPU present, where its target (`here`) is the report's and both compile for it."""
    pair = _participants(case, report)
    if pair is None:
        return report
    if here != report.target:
        message = f"The kernel was not run: there is no GPU here that is {report.target}."
        hint = "Leave --run out to compare what both compile to, or see `tt2gl doctor`."
        missing = Diagnostic("TTG413", Severity.WARNING, report.file, case.line, 0, message, hint)
        return replace(report, diagnostics=(*report.diagnostics, missing))
    outcome = run_on_device(DeviceJob(*pair))
    told = device_diagnostics(outcome, report.file, case.line)
    device = outcome.value.result if outcome.value is not None else None
    return replace(report, device=device, diagnostics=(*report.diagnostics, *told))


def _simulated(
    cases: Sequence[_Case],
    reports: Mapping[int, KernelReport],
    options: SimulationOptions,
    progress: _Counter,
    made_up: bool,
) -> dict[int, KernelReport]:
    """The reports of the cases of which both kernels compile, with what their simulation said.

    `made_up`: guessed launches are simulated, too, on arguments that are made up.
    """
    # numpy is imported only where it is needed.
    from tt2gl.verify.simulate import SimulationJob, simulate_many
    from tt2gl.verify.simulation_diagnostics import simulation_diagnostics

    jobs: list[tuple[_Case, SimulationJob]] = []
    for case in cases:
        pair = _participants(case, reports[id(case)])
        if pair is None:
            progress.step()
        else:
            jobs.append((case, SimulationJob(*pair, case.report.target, made_up)))
    runs = simulate_many([job for _, job in jobs], options, on_done=progress.step)
    told: dict[int, KernelReport] = {}
    for (case, _), run in zip(jobs, runs, strict=True):
        report = reports[id(case)]
        found = simulation_diagnostics(run, report.file, report.kernel, case.line)
        told[id(case)] = replace(report, simulate=run.result, diagnostics=(*report.diagnostics, *found))
    return told
