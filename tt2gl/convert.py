"""One file in, one Gluon file out: the stages, in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tt2gl.analysis.builder import Unsupported
from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.coverage import unreached, variants
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.hoisting import hoisted
from tt2gl.analysis.kernel import analyse, observe_job, parsed
from tt2gl.analysis.planner import KernelAnalysis, Planner
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.infer.launches import infer_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import Launch, check_launch, launches_for
from tt2gl.layouts import PAIRED_SOURCE, coalesced_source
from tt2gl.matrix_layouts import (
    BATCHED_MMA_V2_SOURCE,
    CHAINED_WGMMA_SOURCE,
    MMA_V2_SOURCE,
    WGMMA_SOURCE,
    fma_source,
)
from tt2gl.pipeline import staged
from tt2gl.plan import FilePlan, FunctionPlan, KeptFunction
from tt2gl.results import CompileResult, Conversion, KernelReport
from tt2gl.rewrite.file import KEPT, rewrite
from tt2gl.rewrite.imports import with_instructions
from tt2gl.rewrite.index_reductions import combine_sources, helper_source
from tt2gl.rewrite.tiles import LOAD_TILE_SOURCE, STORE_TILE_SOURCE
from tt2gl.shared_layouts import SWIZZLED_SOURCE
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import SourceFile, read_source
from tt2gl.targets import Target, default_target, get_target
from tt2gl.tensor_memory_layouts import LOADED_FOR_ROWS_SOURCE, LOADED_SOURCE, TENSOR_MEMORY_SOURCE
from tt2gl.verify.compile import CompileJob, compile_many

RULES = ("hoist",)
"""Optimising rules by name: each can be turned off."""


@dataclass
class _Kernel:
    """One kernel on its way through the stages."""

    function: JitFunction
    slice: Slice | None = None
    launches: tuple[Launch, ...] = ()
    facts: dict[int, LaunchFacts] = field(default_factory=dict)
    variants: list[tuple[Launch, LaunchFacts]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failed: dict[int, Diagnostic] = field(default_factory=dict)
    analysis: KernelAnalysis | None = None
    kept: Diagnostic | None = None
    compiled: dict[int, CompileResult] = field(default_factory=dict)
    rules: tuple[str, ...] = ()

    def keep(self, code: str, message: str, hint: str, line: int = 0, column: int = 0, file: str = "") -> None:
        """Leave the kernel as it is, and say why."""
        where = (file or str(self.function.path), line or self.function.line, column)
        self.kept = Diagnostic(code, Severity.WARNING, *where, message, hint)
        self.analysis = None


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
) -> Conversion:
    """Convert the Triton kernels of a file to Gluon for `target` (default: the GPU present, else sm90).

    `launches` (of any files; default: inferred from the file) say what the kernels are called with; their files are
    relative to `root`. With `compile`, every converted kernel is compiled to machine code, and one that does not
    compile is kept. `timeout` is in seconds, a kernel and launch. Raises DiagnosticError for a file that cannot be
    read (TTG001 to TTG003) or has no Triton kernel (TTG004), an unknown target or rule, and launches that do not fit.
    """
    chosen = get_target(target) if target else default_target()
    rules = _chosen_rules(path, only, without)
    source = read_source(path)
    kernels = [_Kernel(function) for function in source.kernels if function.dialect == "triton"]
    if not kernels:
        raise _no_kernel(source)
    for kernel in kernels:
        _find_launches(kernel, source, launches, root)
        _slice(kernel, source, chosen, root)
    _observe(kernels, chosen, timeout)
    _explore(kernels, chosen, timeout)
    for kernel in kernels:
        _analyse(kernel, chosen)
    text = _write(source, kernels, chosen, rules, root, compile, timeout)
    return Conversion(str(path), source.text, text, tuple(r for kernel in kernels for r in _reports(kernel, chosen)))


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


def _find_launches(kernel: _Kernel, source: SourceFile, launches: Sequence[Launch] | None, root: Path | None) -> None:
    if launches is not None:
        kernel.launches = launches_for(launches, source.path, kernel.function.name, root)
        for launch in kernel.launches:
            check_launch(launch, kernel.function)
    if not kernel.launches:
        kernel.launches, found = infer_launches(source, kernel.function)
        kernel.diagnostics.extend(found)
    if not kernel.launches:
        kernel.keep("TTG220", "No launch of this kernel is known.", "Give its launches with --launches.")


def _slice(kernel: _Kernel, source: SourceFile, target: Target, root: Path | None) -> None:
    try:
        kernel.slice = slice_kernel(source, kernel.function.name, target=target.name, root=root)
    except DiagnosticError as error:
        kernel.kept = kernel.kept or error.diagnostic
        return
    kernel.diagnostics.extend(kernel.slice.diagnostics)


def _observe(kernels: Sequence[_Kernel], target: Target, timeout: float) -> None:
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


def _explore(kernels: Sequence[_Kernel], target: Target, timeout: float) -> None:
    """Facts of branches that no launch takes, by turning the flags that they ask; what fails is left out."""
    jobs: list[tuple[_Kernel, Launch]] = []
    for kernel in kernels:
        if kernel.kept is None and kernel.slice is not None:
            known = [kernel.launches[index] for index in kernel.facts]
            trees = parsed(kernel.slice)
            branches = unreached(trees, list(kernel.facts.values()))
            jobs.extend((kernel, launch) for launch in variants(known, branches, trees) if launch not in known)
    outcomes = map_isolated(
        observe_job, [(kernel.slice, launch, target.name) for kernel, launch in jobs], timeout=timeout
    )
    for (kernel, launch), outcome in zip(jobs, outcomes, strict=True):
        if outcome.value is not None:
            kernel.variants.append((launch, outcome.value))


def _analyse(kernel: _Kernel, target: Target) -> None:
    """Decide layouts, with what turned flags showed where that can be decided too."""
    if kernel.kept is not None or kernel.slice is None:
        return
    launches = [kernel.launches[index] for index in kernel.facts]
    facts = list(kernel.facts.values())
    more = [launch for launch, _ in kernel.variants], [seen for _, seen in kernel.variants]
    name = kernel.function.name
    try:
        try:
            kernel.analysis = analyse(kernel.slice, name, [*launches, *more[0]], [*facts, *more[1]], target)
            Planner([kernel.analysis]).plans()
        except (Unsupported, Conflict):
            kernel.analysis = analyse(kernel.slice, name, launches, facts, target)
            kernel.variants.clear()
    except Unsupported as unsupported:
        file, line, column = unsupported.site
        hint = "The kernel stays Triton; see the page of this code."
        if _same_file(file, kernel.function):
            file = ""
        kernel.keep(unsupported.code, f"It uses {unsupported.what}.", hint, line, column, file)
        return
    for layout in kernel.analysis.classes.classes:
        if not layout.exact:
            served = " and ".join(name for name in layout.pointers if name) or "a tile"
            where = (str(kernel.function.path), kernel.function.line, 0)
            message = f"No formula gives Triton's layout for the access to {served} under every launch."
            hint = "Look at its width in `tt2gl verify`; a literal layout may serve some launches better."
            kernel.diagnostics.append(Diagnostic("TTG320", Severity.WARNING, *where, message, hint))
    for (file, _), place in kernel.analysis.unverified.items():
        where = (file if not _same_file(file, kernel.function) else str(kernel.function.path), *place[:2])
        message = "No launch reaches this code: it is converted unverified, and makes its tensors in `AutoLayout`."
        hint = "Give a launch that takes this branch with --launches."
        kernel.diagnostics.append(Diagnostic("TTG330", Severity.NOTE, *where, message, hint))


def _write(
    source: SourceFile,
    kernels: Sequence[_Kernel],
    target: Target,
    rules: Collection[str],
    root: Path | None,
    compiled: bool,
    timeout: float,
) -> str:
    """The converted file; a kernel that cannot be written, or does not compile, is kept, and the rest written anew."""
    while True:
        plan = _plan(source, kernels, target, rules)
        if plan is None:
            continue
        if not any(kernel.analysis for kernel in kernels):
            return source.text
        text = with_instructions(staged(rewrite(source, plan), source, plan))
        if not compiled or not _keep_failures(source, text, kernels, target, root, timeout):
            return text


def _plan(source: SourceFile, kernels: Sequence[_Kernel], target: Target, rules: Collection[str]) -> FilePlan | None:
    """The file's plan; None where a kernel had to be kept, which changes the plans of others."""
    converted = [kernel for kernel in kernels if kernel.analysis is not None]
    try:
        functions = Planner([kernel.analysis for kernel in converted if kernel.analysis]).plans()
    except Conflict as conflict:
        users = [kernel for kernel in converted if _reaches(kernel, conflict.function)] or converted
        hint = "The kernel stays Triton; a launch less, or a helper of its own, may help."
        message = "Its launches or callers want different layouts at one place."
        file = "" if _same_file(conflict.function[0], users[0].function) else conflict.function[0]
        users[0].keep("TTG310", message, hint, conflict.position[0], conflict.position[1], file)
        return None
    elsewhere = next((f for f in functions if not _same_file(f.path, kernels[0].function)), None)
    if elsewhere is not None:
        for kernel in converted:
            if _reaches(kernel, (elsewhere.path, elsewhere.line)):
                message = f"Its helper in {elsewhere.path} (line {elsewhere.line}) needs layouts too."
                kernel.keep("TTG311", message, "Copy the helper into the kernel's file.")
        return None
    kept = [kernel for kernel in kernels if kernel.analysis is None and kernel.kept is not None]
    if "hoist" in rules:
        functions = [hoisted(plan, _definition(converted, plan)) for plan in functions]
        for kernel in converted:
            own = (plan for plan in functions if plan.hoists and _reaches(kernel, (plan.path, plan.line)))
            kernel.rules = ("hoist",) if any(own) else ()
    comments = [KeptFunction(kernel.function.line, _comment(kernel.kept)) for kernel in kept if kernel.kept]
    shared = {name for kernel in kept if kernel.slice for _, name in kernel.slice.functions}
    taken = {function.name for function in source.functions}
    names = {function.line: function.name for function in source.functions}
    twins = {
        function.line: _twin(names[function.line], taken)
        for function in functions
        if not function.is_kernel and names[function.line] in shared
    }
    return FilePlan(tuple(functions), tuple(comments), _layout_helpers(functions, target), twins)


def _definition(kernels: Sequence[_Kernel], plan: FunctionPlan) -> ast.FunctionDef:
    """The function of a plan, as the slices of its kernels have it."""
    return next(
        node
        for kernel in kernels
        if kernel.slice is not None
        for path, tree in parsed(kernel.slice).items()
        if path == plan.path
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno == plan.line
    )


def _layout_helpers(functions: Sequence[FunctionPlan], target: Target) -> tuple[str, ...]:
    """The layout functions that the plans' layouts call."""
    said = [text for function in functions for text in function.layouts()]
    helpers: dict[str, tuple[str, ...]] = {
        "coalesced": (coalesced_source(target.warp_size),),
        "paired": (PAIRED_SOURCE,),
        "mma_v2_layout": (MMA_V2_SOURCE,),
        "batched_mma_v2_layout": (MMA_V2_SOURCE, BATCHED_MMA_V2_SOURCE),
        "wgmma_layout": (WGMMA_SOURCE,),
        "chained_wgmma_layout": (CHAINED_WGMMA_SOURCE,),
        "fma_layout": (fma_source(target.warp_size),),
        "swizzled_layout": (SWIZZLED_SOURCE,),
        "load_tile": (LOAD_TILE_SOURCE,),
        "store_tile": (STORE_TILE_SOURCE,),
        "tensor_memory_layout": (TENSOR_MEMORY_SOURCE,),
        "loaded_layout": (LOADED_SOURCE,),
        "loaded_for_rows_layout": (LOADED_SOURCE, LOADED_FOR_ROWS_SOURCE),
    }
    for name in ("max", "min"):
        helpers[f"{name}_with_index"] = (*combine_sources(name), helper_source(name))
    called = {name for text in said for name in re.findall(r"\w+(?=\()", text)}
    needed = [sources for name, sources in helpers.items() if name in called]
    return tuple(dict.fromkeys(source for sources in needed for source in sources))


def _same_file(path: str, function: JitFunction) -> bool:
    """Whether a path as analysis has it (resolved) is that of a function as the user named it."""
    return Path(path).resolve() == Path(function.path).resolve()


def _reaches(kernel: _Kernel, function: tuple[str, int]) -> bool:
    return any(
        (facts.path, facts.line) == function for seen in kernel.facts.values() for facts in seen.functions.values()
    )


def _twin(name: str, taken: Collection[str]) -> str:
    twin = f"{name}_gluon"
    while twin in taken:
        twin += "_"
    return twin


def _comment(diagnostic: Diagnostic) -> str:
    """What stands above a kept kernel: no line, no path and no compiler's words, which differ from run to run."""
    cause = diagnostic.message.partition(": ")[0].rstrip(".")
    return f"{KEPT} ({diagnostic.code}). {cause}."


def _keep_failures(
    source: SourceFile, text: str, kernels: Sequence[_Kernel], target: Target, root: Path | None, timeout: float
) -> bool:
    """Compile what was converted; keep what fails. Whether anything had to be kept."""
    port = read_source(source.path, text)
    converted = [kernel for kernel in kernels if kernel.analysis is not None]
    jobs: list[tuple[_Kernel, int]] = [(kernel, index) for kernel in converted for index in kernel.facts]
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
        if not result.ok and kernel.kept is None:
            message = f"Its Gluon does not compile under launch {index}: {(result.error or '').rstrip('.')}."
            kernel.keep("TTG402", message, "Please report it: this is a gap of tt2gl.")
    return any(kernel.kept is not None for kernel in converted)


def _reports(kernel: _Kernel, target: Target) -> list[KernelReport]:
    """One report a launch; a kernel without launches has one all the same."""
    own = tuple(kernel.diagnostics)
    base = KernelReport(str(kernel.function.path), kernel.function.name, target.name, 0, "kept")
    if kernel.kept is not None:
        status = replace(base, diagnostics=(*own, kernel.kept))
        return [replace(status, launch=index) for index in range(max(len(kernel.launches), 1))]
    return [
        replace(base, launch=index, status="failed", diagnostics=(*own, kernel.failed[index]))
        if index in kernel.failed
        else replace(
            base,
            launch=index,
            status="converted",
            rules=kernel.rules,
            diagnostics=own,
            gluon=kernel.compiled.get(index),
        )
        for index in range(len(kernel.launches))
    ]
