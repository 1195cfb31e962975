"""One file in, one Gluon file out: the stages, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from tt2gl.analysis.facts import without_rings
from tt2gl.analysis.turns_apart import reshaping_helpers
from tt2gl.decision import decide
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.file_plan import file_plan, keep_unpipelined, left_whole
from tt2gl.formatting import fitted
from tt2gl.kernel_state import Calls, Kernel, blame_originals, constants_by_body
from tt2gl.launches import Launch
from tt2gl.lowering.lowered_source import LoweredSource, lowered_source
from tt2gl.observation import (
    Asked,
    explore,
    from_hosts,
    look_at_alignment,
    observed,
    running_ahead_elsewhere,
    worded_elsewhere,
)
from tt2gl.observed_steps import (
    inlined,
    with_arguments_once_more,
    with_copied_truths_as_bytes,
    with_equal_values_once,
    with_first_turns_alone,
    with_names_of_their_own,
    with_quotients_of_constants,
    with_sums_as_products,
    with_turns_apart,
    without_casts_of_products,
    without_likes_of_scalars,
    without_loops_of_one_turn,
)
from tt2gl.pipeline import NotPipelinedError, staged
from tt2gl.pipelining.arms_memory import with_memory_in_arms
from tt2gl.pipelining.conversions_above import with_conversions_above
from tt2gl.pipelining.converted_loads import with_converted_loads
from tt2gl.pipelining.converted_operands import with_converted_operands
from tt2gl.pipelining.early_conversions import with_early_conversions
from tt2gl.pipelining.early_firsts import with_early_firsts
from tt2gl.pipelining.early_operands import with_early_operands
from tt2gl.pipelining.early_reads import with_early_reads
from tt2gl.pipelining.equal_reads import with_equal_reads
from tt2gl.pipelining.invariant_conversions import without_invariant_conversions
from tt2gl.pipelining.invariant_names import without_invariant_names
from tt2gl.pipelining.invariant_tiles import without_invariant_tiles
from tt2gl.pipelining.invariants import without_invariants
from tt2gl.pipelining.late_conversions import with_late_conversions
from tt2gl.pipelining.lone_loops import with_operands_in_lone_loops
from tt2gl.pipelining.masked_reads import with_masked_reads
from tt2gl.pipelining.names_apart import carried_otherwise, with_names_apart
from tt2gl.pipelining.rows_behind_loops import with_rows_behind_loops
from tt2gl.pipelining.shared_operands import with_shared_operands
from tt2gl.pipelining.steps_behind import with_steps_behind
from tt2gl.pipelining.tiles_read_again import with_tiles_read_again
from tt2gl.pipelining.turned_loads import with_turned_loads
from tt2gl.pipelining.turned_reads import with_turned_reads
from tt2gl.pipelining.uniform_offsets import with_uniform_offsets
from tt2gl.results import Conversion
from tt2gl.rewrite.file import rewrite
from tt2gl.rewrite.idle_names import without_idle_names
from tt2gl.rewrite.imports import with_instructions
from tt2gl.rewrite.named_casts import with_named_casts
from tt2gl.rewrite.tile_notes import with_tile_notes
from tt2gl.shared_memory import made_smaller, tell_fewer_stages
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import SourceFile, read_source
from tt2gl.targets import default_target, get_target
from tt2gl.verify.compile import CompileJob, compile_many

RULES = ("buffer_ops", "direct_to_lds", "hoist", "pipeline")
"""Optimising rules by name: each can be turned off."""


def convert(
    path: str | Path,
    *,
    target: str | None = None,
    launches: Sequence[Launch] | None = None,
    root: Path | None = None,
    only: Collection[str] = (),
    without: Collection[str] = (),
    buffer_guard: bool = False,
    compile: bool = True,  # noqa: A002
    timeout: float = 60.0,
    watch: Callable[[LoweredSource, Sequence[Kernel]], None] | None = None,
) -> Conversion:
    """Convert the Triton kernels of a file to Gluon for `target` (default: the GPU present, else sm90).

    `launches` (of any files; default: inferred from the file) say what the kernels are called with; their files are
    relative to `root`. `buffer_guard`: what AMD's buffer operations assume is checked at each launch. With `compile`,
    every converted kernel is compiled to machine code, and one that does not compile is kept. `timeout` is in seconds,
    a kernel and launch. `watch` is told what was decided of the kernels, and of which working file. Raises
    DiagnosticError for a file that cannot be read (TTG001 to TTG003) or has no Triton kernel (TTG004), an unknown
    target or rule, and launches that do not fit.
    """
    rules = (*_chosen_rules(path, only, without), *(["buffer_guard"] if buffer_guard else []))
    asked = Asked(get_target(target) if target else default_target(), launches, root, timeout, "direct_to_lds" in rules)
    author = read_source(path)
    helpers: set[tuple[str, int]] = set()
    precisions: set[str] = set()
    calls = Calls()
    hosts: dict[str, dict[str, int]] = {}
    best: tuple[Conversion, tuple[int, int, int, int], LoweredSource, list[Kernel]] | None = None
    while True:
        known = lowered_source(author, asked.target, root, helpers, precisions, hosts, calls.again)
        kernels = observed(known, asked)
        if not hosts and (hosts := from_hosts(kernels, asked.target)):
            continue
        made, known = _converted(known, kernels, asked, rules, compile, calls)
        # One kept for a helper whose callers differ is tried with that one written out, too, first, and one that fails
        # with those whose turns have other shapes; one kept for some of other files with those brought along.
        converting = {name for kernel in kernels for name in kernel.converting}
        again = {each for kernel in kernels for each in kernel.again}
        differ = _torn(known, kernels) - calls.torn
        tried = (kernel for kernel in kernels if kernel.written_out_in_vain and kernel.torn not in differ)
        in_vain = {kernel.function.name for kernel in tried if kernel.kept is None or kernel.elsewhere <= helpers}
        accessed = {place for kernel in kernels for place in kernel.accessed_elsewhere} | worded_elsewhere(kernels)
        if "pipeline" in rules:
            accessed |= running_ahead_elsewhere(known, kernels)
        converted = sum(kernel.variants is not None for kernel in kernels)
        score = converted, -len(in_vain), -len(accessed), -len(converting) - len(again)
        if best is None or score > best[1]:
            best = made, score, known, kernels
        # Helpers of other files are brought along where kernels are kept for them, or what they do is better said here.
        kept = {place for kernel in kernels if kernel.kept is not None for place in kernel.elsewhere}
        more = (kept | accessed) - helpers
        named = {kernel.precision for kernel in kernels if kernel.kept is not None and kernel.precision} - precisions
        wanted = Calls(calls.plain | in_vain, calls.torn | differ, calls.converting | converting, calls.again | again)
        if not more and not named and wanted == calls:
            if watch is not None:
                watch(best[2], best[3])
            return replace(best[0], path=str(path))
        helpers, precisions, calls = helpers | more, precisions | named, wanted


def _torn(known: LoweredSource, kernels: Sequence[Kernel]) -> set[str]:
    """The helpers that their callers want differently, and those that reshape what failing kernels give them."""
    failing = [seen for kernel in kernels if kernel.kept or kernel.failed for seen in kernel.facts.values()]
    return {kernel.torn for kernel in kernels if kernel.torn} | reshaping_helpers(failing, known.work.path)


def _converted(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, rules: Collection[str], compiled: bool, calls: Calls
) -> tuple[Conversion, LoweredSource]:
    """The conversion of a file whose kernels have been observed, with its working file; they are told."""
    known, kernels[:] = with_quotients_of_constants(known, kernels, asked)
    known, kernels[:] = with_turns_apart(known, kernels, asked, calls.torn)
    known, kernels[:] = without_likes_of_scalars(known, kernels, asked)
    known, kernels[:] = with_sums_as_products(known, kernels, asked)
    known, kernels[:] = without_casts_of_products(known, kernels, asked)
    known, kernels[:] = with_equal_values_once(known, kernels, asked)
    if "pipeline" in rules:
        known, kernels[:] = without_loops_of_one_turn(known, kernels, asked)
        known, kernels[:] = with_first_turns_alone(known, kernels, asked)
        known, kernels[:] = inlined(known, kernels, asked, calls)
        known, kernels[:] = with_arguments_once_more(known, kernels, asked, calls)
        known, kernels[:] = with_names_of_their_own(known, kernels, asked)
        known, kernels[:] = with_copied_truths_as_bytes(known, kernels, asked)
    else:
        for kernel in kernels:
            kernel.facts = {index: without_rings(seen) for index, seen in kernel.facts.items()}
    source, author = known.work, known.source
    explore(kernels, asked)
    look_at_alignment(kernels, asked)
    taken = {function.name for function in source.functions}
    for kernel in kernels:
        decide(kernel, asked.target, taken)
    text = _write(source, kernels, asked, rules, compiled)
    for kernel in kernels:
        tell_fewer_stages(kernel, asked.target)
        _tell_in_the_authors_words(kernel, known)
    stayed = [kernel.function.name for kernel in kernels if kernel.kept is not None]
    converted = any(kernel.variants for kernel in kernels)
    # What was lowered is not the author's own either.
    text = fitted(known.restored(text, stayed), author.text) if converted else author.author_text
    reports = tuple(report for kernel in kernels for report in kernel.reports(asked.target))
    return Conversion(str(author.path), author.author_text, text, reports), known


def _tell_in_the_authors_words(kernel: Kernel, known: LoweredSource) -> None:
    """Have a kernel's diagnostics speak of the author's file, and say why its block pointers could not be lowered."""
    # What no launch reaches of a function that the author does not have is nothing to him.
    told = [each for each in kernel.diagnostics if each.code != "TTG330" or not known.is_added(each)]
    told = [*kernel.guesses, *(known.told(diagnostic) for diagnostic in told)]
    kernel.diagnostics = [known.source.told(diagnostic) for diagnostic in told]
    kernel.failed = {index: known.source.told(known.told(each)) for index, each in kernel.failed.items()}
    if kernel.kept is not None:
        reached = [name for _, name in kernel.slice.functions] if kernel.slice is not None else []
        reason = known.reason([kernel.function.name, *reached])
        kept = reason if reason is not None and reason.code == kernel.kept.code else known.told(kernel.kept)
        kernel.kept = known.source.told(kept)


def _chosen_rules(path: str | Path, only: Collection[str], without: Collection[str]) -> tuple[str, ...]:
    for name in (*only, *without):
        if name not in RULES:
            message = f"There is no rule {name!r} (there are: {', '.join(RULES)})."
            diagnostic = Diagnostic("TTG011", Severity.ERROR, str(path), 0, 0, message, "Name a rule that exists.")
            raise DiagnosticError(diagnostic, ExitCode.USAGE)
    return tuple(rule for rule in RULES if (rule in only or not only) and rule not in without)


def _write(source: SourceFile, kernels: Sequence[Kernel], asked: Asked, rules: Collection[str], compiled: bool) -> str:
    """The converted file; a kernel that cannot be written, or does not compile, is kept, and the rest written anew."""
    apart: dict[str, set[str]] = {}
    while True:
        plan = file_plan(source, kernels, asked.target, rules)
        if plan is None:
            continue
        if not any(kernel.variants for kernel in kernels):
            return source.text
        try:
            names = {function.line: function.name for function in source.functions}
            functions = {each.name or names[each.line] for each in plan.functions}
            made = with_memory_in_arms(rewrite(source, plan), functions)
            made = with_shared_operands(with_masked_reads(made, functions), functions)
            if asked.target.backend == "cuda":
                made = with_early_firsts(made, functions)
            elif "hoist" in rules:
                made = without_invariant_names(made, functions)
            made, parted = staged(made, source, plan)
            if "hoist" in rules:
                made = without_invariant_tiles(with_steps_behind(with_instructions(made), functions), functions)
                columns = asked.target.backend == "cuda"
                made = without_invariants(with_early_conversions(made, functions), functions, columns=columns)
                if asked.target.backend == "cuda":
                    made = with_turned_loads(with_converted_loads(made, functions), functions)
                made = with_rows_behind_loops(with_late_conversions(made, functions), functions)
                made = with_early_operands(made, functions)
                if asked.target.backend == "cuda":
                    made = with_converted_operands(made, functions)
                else:
                    made = without_invariant_conversions(made, functions)
            made = with_tiles_read_again(made, functions)
            if asked.target.backend == "hip":
                made = with_equal_reads(with_early_reads(with_turned_reads(made, functions), functions), functions)
                made = with_conversions_above(made, functions)
                made = with_operands_in_lone_loops(made, constants_by_body(kernels))
                entries = {each.name or names[each.line] for each in plan.functions if each.is_kernel}
                made = with_uniform_offsets(made, entries, source.text)
            made = with_names_apart(with_instructions(made), apart)
            made = without_idle_names(with_named_casts(made, source.text), functions, source.text)
            text = fitted(with_tile_notes(made, functions), source.text)
        except NotPipelinedError as error:
            keep_unpipelined(kernels, error)
            continue
        if not compiled or not _keep_failures(source, text, kernels, asked, apart):
            for kernel in kernels:
                kernel.diagnostics += left_whole(kernel, parted)
            return text


def _keep_failures(
    source: SourceFile, text: str, kernels: Sequence[Kernel], asked: Asked, apart: dict[str, set[str]]
) -> bool:
    """Compile what was converted; keep what fails, unless it may be made smaller, or names of it told apart.

    Whether there is more to be done.
    """
    port = read_source(source.path, text)
    converted = [kernel for kernel in kernels if kernel.variants is not None]
    jobs: list[tuple[Kernel, int]] = [(kernel, index) for kernel in converted for index in kernel.facts]
    slices = {
        kernel.function.name: slice_kernel(
            port, kernel.function.name, target=asked.target.name, root=asked.root, passed=kernel.passed
        )
        for kernel in converted
    }
    results = compile_many(
        [CompileJob(slices[kernel.function.name], kernel.launches[index], asked.target.name) for kernel, index in jobs],
        timeout=asked.timeout,
    )
    for (kernel, index), result in zip(jobs, results, strict=True):
        kernel.compiled[index] = result
    carried = {carried_otherwise(result.error, text) for result in results if result.error is not None}
    told = [each for each in carried if each is not None and each[1] not in apart.get(each[0], ())]
    for function, name in told:
        apart.setdefault(function, set()).add(name)
    if told:
        return True
    smaller = [kernel for kernel in converted if made_smaller(kernel, kernel.compiled, asked.target)]
    blame_originals([kernel for kernel in converted if kernel not in smaller], asked.target, asked.timeout)
    for kernel in converted:
        failed = [(i, result) for i, result in kernel.compiled.items() if not result.ok and i not in kernel.failed]
        if failed and kernel.kept is None and kernel not in smaller:
            index, result = failed[0]
            message = f"Its Gluon does not compile under launch {index}: {(result.error or '').rstrip('.')}."
            hint = "Please report it: this is a gap of tt2gl."
            if result.metrics is not None:
                hint = "It was tried with as few stages as can be; a smaller block may fit."
            kernel.keep("TTG402", message, hint)
    return bool(smaller) or any(kernel.kept is not None for kernel in converted)
