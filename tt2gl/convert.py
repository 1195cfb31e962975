"""One file in, one Gluon file out: the stages, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from tt2gl.analysis.builder import Unsupported
from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.coverage import unreached, variants
from tt2gl.analysis.dot_formulas import NoFormulaError
from tt2gl.analysis.facts import LaunchFacts, without_rings
from tt2gl.analysis.groups import alike, grouped, misaligned, traits
from tt2gl.analysis.helper_loads import calls_in_between, calls_of
from tt2gl.analysis.kernel import observe_job, parsed
from tt2gl.analysis.naming import listed
from tt2gl.analysis.planner import KernelAnalysis
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.file_plan import file_plan, keep_conflict, keep_unpipelined, left_as_they_are, same_file
from tt2gl.formatting import fitted
from tt2gl.infer.launches import infer_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.kernel_state import Calls, Kernel, blame_originals
from tt2gl.launches import Launch, check_launch, launches_for
from tt2gl.lowering.lowered_source import LoweredSource, lowered_source, with_inlined
from tt2gl.pipeline import NotPipelinedError, staged
from tt2gl.results import Conversion
from tt2gl.rewrite.file import rewrite
from tt2gl.rewrite.imports import with_instructions
from tt2gl.shared_memory import made_smaller, tell_fewer_stages
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import SourceFile, read_source
from tt2gl.targets import Target, default_target, get_target
from tt2gl.variants import Undecided, Variants, analysed
from tt2gl.verify.compile import CompileJob, compile_many

RULES = ("hoist", "pipeline")
"""Optimising rules by name: each can be turned off."""


def convert(
    path: str | Path,
    *,
    target: str | None = None,
    launches: Sequence[Launch] | None = None,
    root: Path | None = None,
    only: Collection[str] = (),
    without: Collection[str] = (),
    compile: bool = True,  # noqa: A002
    timeout: float = 60.0,
    watch: Callable[[LoweredSource, Sequence[Kernel]], None] | None = None,
) -> Conversion:
    """Convert the Triton kernels of a file to Gluon for `target` (default: the GPU present, else sm90).

    `launches` (of any files; default: inferred from the file) say what the kernels are called with; their files are
    relative to `root`. With `compile`, every converted kernel is compiled to machine code, and one that does not
    compile is kept. `timeout` is in seconds, a kernel and launch. `watch` is told what was decided of the kernels, and
    of which working file. Raises DiagnosticError for a file that cannot be
    read (TTG001 to TTG003) or has no Triton kernel (TTG004), an unknown target or rule, and launches that do not fit.
    """
    chosen = get_target(target) if target else default_target()
    rules = _chosen_rules(path, only, without)
    author = read_source(path)
    helpers: set[tuple[str, int]] = set()
    calls = Calls()
    best: tuple[Conversion, tuple[int, int], LoweredSource, list[Kernel]] | None = None
    while True:
        known = lowered_source(author, chosen, root, helpers)
        kernels = _observed(known, chosen, launches, root, timeout)
        made, known = _converted(known, kernels, chosen, rules, launches, root, compile, timeout, calls)
        in_vain = {kernel.function.name for kernel in kernels if kernel.written_out_in_vain}
        score = sum(kernel.variants is not None for kernel in kernels), -len(in_vain)
        if best is None or score > best[1]:
            best = made, score, known, kernels
        # Helpers of other files are brought along where kernels are kept for them.
        more = {place for kernel in kernels if kernel.kept is not None for place in kernel.elsewhere} - helpers
        asked = Calls(calls.plain | in_vain, calls.torn | {kernel.torn for kernel in kernels if kernel.torn})
        if not more and asked == calls:
            if watch is not None:
                watch(best[2], best[3])
            return replace(best[0], path=str(path))
        helpers, calls = helpers | more, asked


def _converted(
    known: LoweredSource,
    kernels: list[Kernel],
    target: Target,
    rules: Collection[str],
    launches: Sequence[Launch] | None,
    root: Path | None,
    compiled: bool,
    timeout: float,
    calls: Calls,
) -> tuple[Conversion, LoweredSource]:
    """The conversion of a file whose kernels have been observed, with its working file; they are told."""
    if "pipeline" in rules:
        known, kernels[:] = _inlined(known, kernels, target, launches, root, timeout, calls)
    else:
        for kernel in kernels:
            kernel.facts = {index: without_rings(seen) for index, seen in kernel.facts.items()}
    source, author = known.work, known.source
    _explore(kernels, target, timeout)
    taken = {function.name for function in source.functions}
    for kernel in kernels:
        _analyse(kernel, target, taken)
    text = _write(source, kernels, target, rules, root, compiled, timeout)
    for kernel in kernels:
        tell_fewer_stages(kernel, target)
        _tell_in_the_authors_words(kernel, known)
    stayed = [kernel.function.name for kernel in kernels if kernel.kept is not None]
    text = known.restored(text, stayed) if any(kernel.variants for kernel in kernels) else author.text
    reports = tuple(report for kernel in kernels for report in kernel.reports(target))
    return Conversion(str(author.path), author.text, text, reports), known


def _tell_in_the_authors_words(kernel: Kernel, known: LoweredSource) -> None:
    """Have a kernel's diagnostics speak of the author's file, and say why its block pointers could not be lowered."""
    # What no launch reaches of a function that the author does not have is nothing to him.
    told = [each for each in kernel.diagnostics if each.code != "TTG330" or not known.is_added(each)]
    kernel.diagnostics = [known.told(diagnostic) for diagnostic in told]
    kernel.failed = {index: known.told(diagnostic) for index, diagnostic in kernel.failed.items()}
    if kernel.kept is not None:
        reached = [name for _, name in kernel.slice.functions] if kernel.slice is not None else []
        reason = known.reason([kernel.function.name, *reached])
        kernel.kept = reason if reason is not None and reason.code == kernel.kept.code else known.told(kernel.kept)


def _chosen_rules(path: str | Path, only: Collection[str], without: Collection[str]) -> tuple[str, ...]:
    for name in (*only, *without):
        if name not in RULES:
            message = f"There is no rule {name!r} (there are: {', '.join(RULES)})."
            diagnostic = Diagnostic("TTG011", Severity.ERROR, str(path), 0, 0, message, "Name a rule that exists.")
            raise DiagnosticError(diagnostic, ExitCode.USAGE)
    return tuple(rule for rule in RULES if (rule in only or not only) and rule not in without)


def _no_kernel(source: SourceFile) -> DiagnosticError:
    gluon = any(function.dialect == "gluon" for function in source.functions)
    message = "The file's kernels are Gluon already." if gluon else "The file has no Triton kernel."
    hint = "Give a file with functions that a `@triton.jit` decorates."
    return DiagnosticError(
        Diagnostic("TTG004", Severity.ERROR, str(source.path), 0, 0, message, hint), ExitCode.BAD_SOURCE
    )


def _find_launches(kernel: Kernel, source: SourceFile, launches: Sequence[Launch] | None, root: Path | None) -> None:
    if launches is not None:
        kernel.launches = launches_for(launches, source.path, kernel.function.name, root)
        for launch in kernel.launches:
            check_launch(launch, kernel.function)
    if not kernel.launches:
        kernel.launches, found = infer_launches(source, kernel.function)
        kernel.diagnostics.extend(found)
    if not kernel.launches:
        kernel.keep("TTG220", "No launch of this kernel is known.", "Give its launches with --launches.")


def _slice(kernel: Kernel, source: SourceFile, target: Target, root: Path | None) -> None:
    try:
        kernel.slice = slice_kernel(source, kernel.function.name, target=target.name, root=root)
    except DiagnosticError as error:
        kernel.kept = kernel.kept or error.diagnostic
        return
    kernel.diagnostics.extend(kernel.slice.diagnostics)


def _observed(
    known: LoweredSource, target: Target, launches: Sequence[Launch] | None, root: Path | None, timeout: float
) -> list[Kernel]:
    """The kernels of a file with their launches, slices and facts."""
    # A helper that is written out wherever it was called is no kernel for that.
    names = {function.name for function in known.source.kernels}
    triton = [function for function in known.work.functions if function.dialect == "triton"]
    kernels = [Kernel(function) for function in triton if function.name in names]
    if not kernels:
        raise _no_kernel(known.source)
    for kernel in kernels:
        _find_launches(kernel, known.work, launches, root)
        _slice(kernel, known.work, target, root)
    _observe(kernels, target, timeout)
    return kernels


def _inlined(
    known: LoweredSource,
    kernels: list[Kernel],
    target: Target,
    launches: Sequence[Launch] | None,
    root: Path | None,
    timeout: float,
    calls: Calls,
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with helpers written out whose loads run ahead of a loop that calls them, and its kernels.

    A call at a time of those that lead to a load, as only what compiles tells where the next one is.
    """
    while True:
        asked = {
            kernel.function.name: calls_in_between(list(kernel.facts.values()), parsed(kernel.slice), known.work.path)
            for kernel in kernels
            if kernel.slice is not None and kernel.function.name not in calls.plain
        }
        ahead = set().union(*asked.values())
        facts = [seen for kernel in kernels for seen in kernel.facts.values()]
        torn = calls_of(calls.torn, facts, known.work.path)
        step = with_inlined(known, ahead, torn) if ahead | torn else None
        if step is None:
            return known, kernels
        again = _observed(step, target, launches, root, timeout)
        if any(new.facts.keys() != old.facts.keys() for new, old in zip(again, kernels, strict=True)):
            return known, kernels
        for new, old in zip(again, kernels, strict=True):
            new.written_out = old.written_out or bool(asked.get(new.function.name))
        known, kernels = step, again


def _observe(kernels: Sequence[Kernel], target: Target, timeout: float) -> None:
    """Facts of all launches of all kernels, side by side, each in a child process."""
    jobs = [
        (kernel, index)
        for kernel in kernels
        if kernel.slice is not None and kernel.kept is None
        for index in range(len(kernel.launches))
    ]
    preload()
    arguments = [(kernel.slice, kernel.launches[index], target.name) for kernel, index in jobs]
    outcomes = map_isolated(observe_job, arguments, timeout=timeout)
    for (kernel, index), outcome in zip(jobs, outcomes, strict=True):
        if outcome.value is not None:
            kernel.facts[index] = outcome.value
            continue
        how = {"crash": "aborts the compiler", "timeout": f"hangs the compiler (over {timeout:g} s)"}
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


def _explore(kernels: Sequence[Kernel], target: Target, timeout: float) -> None:
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
    outcomes = map_isolated(
        observe_job, [(kernel.slice, launch, target.name) for kernel, _, launch in jobs], timeout=timeout
    )
    for (kernel, facts, launch), outcome in zip(jobs, outcomes, strict=True):
        if outcome.value is not None and not facts:
            kernel.witnesses.append((launch, outcome.value))
        elif outcome.value is not None and all(alike(traits(outcome.value), traits(one)) for one in facts):
            kernel.turned.append((launch, outcome.value))


def _analyse(kernel: Kernel, target: Target, taken: set[str]) -> None:
    """Decide layouts, with what turned flags showed where that can be decided too."""
    if kernel.kept is not None or kernel.slice is None:
        return
    launches = [kernel.launches[index] for index in kernel.facts]
    facts, name = list(kernel.facts.values()), kernel.function.name
    more = [launch for launch, _ in kernel.turned], [seen for _, seen in kernel.turned]
    try:
        found = _attempt(kernel, [*launches, *more[0]], [*facts, *more[1]], target, taken) if kernel.turned else None
        if found is None or len(found.analyses) > 1:
            plain = analysed(kernel.slice, name, launches, facts, target, taken, kernel.witnesses)
            if found is None or len(plain.analyses) < len(found.analyses):
                # A flag that nobody sets is no reason for another body, let alone to keep the kernel.
                found = plain
                kernel.turned.clear()
    except Exception as error:  # noqa: BLE001 - one kernel that analysis cannot do is no reason to stop the others
        _keep_for(kernel, error)
        return
    kernel.variants = found
    for body in found.analyses:
        taken.update(body.bodies.values())
        _tell(kernel, body)


def _attempt(
    kernel: Kernel, launches: Sequence[Launch], facts: Sequence[LaunchFacts], target: Target, taken: set[str]
) -> Variants | None:
    """The kernel analysed, None where that cannot be done under one of the launches."""
    assert kernel.slice is not None
    try:
        return analysed(kernel.slice, kernel.function.name, launches, facts, target, taken, kernel.witnesses)
    except Exception:  # noqa: BLE001 - whatever it is, it may be due to launches that nobody gave
        return None


def _keep_for(kernel: Kernel, error: Exception) -> None:
    """Keep a kernel for what analysis raised."""
    hint = "The kernel stays Triton; see the page of this code."
    match error:
        case Unsupported():
            file, line, column = error.site
            file = "" if same_file(file, kernel.function) else file
            kernel.keep(error.code, f"It uses {error.what}.", hint, line, column, file)
        case Conflict():
            keep_conflict(kernel, error)
        case Undecided():
            groups = [f"{label or 'one'} under launches {listed([str(i) for i in at])}" for label, at in error.groups]
            message = f"Its launches want different bodies, which no parameter tells apart: {'; '.join(groups)}."
            kernel.keep("TTG310", message, "The kernel stays Triton; convert for some of the launches only.")
        case NoFormulaError():
            kernel.keep("TTG302", f"Its matrix products need layouts that are not written yet: {error}.", hint)
        case _:
            message = f"Internal error: {type(error).__name__}: {' '.join(str(error).split())}."
            kernel.keep("TTG900", message, "This is a bug in tt2gl: please report it, with the file and its launches.")


def _tell(kernel: Kernel, body: KernelAnalysis) -> None:
    """What there is to say of one body of a kernel."""
    where = f" in {body.bodies[body.function]}" if body.bodies else ""
    for layout in body.classes.classes:
        if not layout.exact:
            served = " and ".join(name for name in layout.pointers if name) or "a tile"
            at = (str(kernel.function.path), kernel.function.line, 0)
            message = f"No formula gives Triton's layout for the access to {served} under every launch{where}."
            hint = "Look at its width in `tt2gl verify`; a literal layout may serve some launches better."
            kernel.diagnostics.append(Diagnostic("TTG320", Severity.WARNING, *at, message, hint))
    kernel.diagnostics += [told for told in left_as_they_are(kernel, body) if told not in kernel.diagnostics]
    for (file, _), place in body.unverified.items():
        at = (file if not same_file(file, kernel.function) else str(kernel.function.path), *place[:2])
        message = f"No launch reaches this code{where}: it is converted unverified, with tensors made in `AutoLayout`."
        hint = "Give a launch that takes this branch with --launches."
        kernel.diagnostics.append(Diagnostic("TTG330", Severity.NOTE, *at, message, hint))


def _write(
    source: SourceFile,
    kernels: Sequence[Kernel],
    target: Target,
    rules: Collection[str],
    root: Path | None,
    compiled: bool,
    timeout: float,
) -> str:
    """The converted file; a kernel that cannot be written, or does not compile, is kept, and the rest written anew."""
    while True:
        plan = file_plan(source, kernels, target, rules)
        if plan is None:
            continue
        if not any(kernel.variants for kernel in kernels):
            return source.text
        try:
            text = fitted(with_instructions(staged(rewrite(source, plan), source, plan)), source.text)
        except NotPipelinedError as error:
            keep_unpipelined(kernels, error)
            continue
        if not compiled or not _keep_failures(source, text, kernels, target, root, timeout):
            return text


def _keep_failures(
    source: SourceFile, text: str, kernels: Sequence[Kernel], target: Target, root: Path | None, timeout: float
) -> bool:
    """Compile what was converted; keep what fails, unless it may be made smaller. Whether there is more to be done."""
    port = read_source(source.path, text)
    converted = [kernel for kernel in kernels if kernel.variants is not None]
    jobs: list[tuple[Kernel, int]] = [(kernel, index) for kernel in converted for index in kernel.facts]
    slices = {
        kernel.function.name: slice_kernel(port, kernel.function.name, target=target.name, root=root)
        for kernel in converted
    }
    results = compile_many(
        [CompileJob(slices[kernel.function.name], kernel.launches[index], target.name) for kernel, index in jobs],
        timeout=timeout,
    )
    for (kernel, index), result in zip(jobs, results, strict=True):
        kernel.compiled[index] = result
    smaller = [kernel for kernel in converted if made_smaller(kernel, kernel.compiled, target)]
    blame_originals([kernel for kernel in converted if kernel not in smaller], target, timeout)
    for kernel in converted:
        failed = [(i, result) for i, result in kernel.compiled.items() if not result.ok and i not in kernel.failed]
        if failed and kernel not in smaller:
            index, result = failed[0]
            message = f"Its Gluon does not compile under launch {index}: {(result.error or '').rstrip('.')}."
            hint = "Please report it: this is a gap of tt2gl."
            if result.metrics is not None:
                hint = "It was tried with as few stages as can be; a smaller block may fit."
            kernel.keep("TTG402", message, hint)
    return bool(smaller) or any(kernel.kept is not None for kernel in converted)
