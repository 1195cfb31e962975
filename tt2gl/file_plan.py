"""One plan for a file: what was decided about each of its kernels, joined with what they share."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.early_ranges import made_early
from tt2gl.analysis.facts import FunctionFacts, LaunchFacts
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.hoisting import hoisted
from tt2gl.analysis.kernel import parsed
from tt2gl.analysis.mask_parts import masks_in_parts
from tt2gl.analysis.memory import Scene
from tt2gl.analysis.planner import Planner
from tt2gl.analysis.shared_masks import masks_made_once
from tt2gl.analysis.widened_ranges import widened_before
from tt2gl.buffers import buffered
from tt2gl.diagnostics import Diagnostic, Severity, shown
from tt2gl.jit_functions import JitFunction
from tt2gl.kernel_state import Kernel
from tt2gl.layout_helpers import layout_helpers
from tt2gl.names import unused
from tt2gl.pipelining.rings import NotPipelinedError
from tt2gl.plan import Dispatch, Edits, FilePlan, FunctionPlan, KeptFunction
from tt2gl.rewrite.file import KEPT
from tt2gl.source import SourceFile
from tt2gl.targets import Target, fences_copies
from tt2gl.trees import functions_in
from tt2gl.variants import give_bodies
from tt2gl.words import STORE_AGAIN

_COST = "See with `tt2gl verify --run gpu` what it costs."
"""The hint where Triton does more than the port."""


def file_plan(source: SourceFile, kernels: Sequence[Kernel], target: Target, rules: Collection[str]) -> FilePlan | None:
    """The file's plan; None where a kernel had to be kept, which changes the plans of others."""
    converted = [kernel for kernel in kernels if kernel.variants is not None]
    functions = _functions(source, converted)
    if functions is None:
        return None
    elsewhere = [(f.path, f.line) for f in functions if not same_file(f.path, kernels[0].function)]
    if elsewhere:
        for kernel in converted:
            kernel.elsewhere = frozenset(place for place in elsewhere if _reaches(kernel, place))
            if kernel.elsewhere:
                file, line = min(kernel.elsewhere)
                message = f"Its helper in {shown(file)} (line {line}) needs layouts too."
                kernel.keep("TTG311", message, "Copy the helper into the kernel's file.")
        return None
    kept = [kernel for kernel in kernels if kernel.variants is None and kernel.kept is not None]
    functions = [_crowded(plan, converted) for plan in functions]
    if target.vendor == "AMD":
        functions = [replace(plan, operands_at_once=True) for plan in functions]
    if "buffer_ops" in rules and target.buffers:
        functions = buffered(functions, converted, target, "buffer_guard" in rules)
    if "hoist" in rules:
        functions = [hoisted(plan, _definition(converted, plan)) for plan in functions]
        if target.vendor == "AMD":
            functions = [made_early(plan, _definition(converted, plan)) for plan in functions]
        else:
            functions = [
                widened_before(plan, _definition(converted, plan), _facts(plan, converted)) for plan in functions
            ]
            functions = [masks_made_once(plan, _definition(converted, plan)) for plan in functions]
            functions = [masks_in_parts(plan, _definition(converted, plan)) for plan in functions]
    for kernel in converted:
        own = [plan for plan in functions if _reaches(kernel, (plan.path, plan.line))]
        applied = {
            "buffer_ops": any(plan.edits.buffers for plan in own),
            "direct_to_lds": any(ring.direct for plan in own for ring in plan.rings),
            "hoist": any(plan.hoists or plan.early for plan in own),
            "pipeline": any(plan.rings for plan in own),
        }
        kernel.rules = tuple(rule for rule, did in applied.items() if did)
    comments = [KeptFunction(kernel.function.line, _comment(kernel.kept)) for kernel in kept if kernel.kept]
    functions, originals = _with_callers(source, functions, kept, converted)
    dispatches = [kernel.variants.dispatch() for kernel in converted if kernel.variants is not None]
    return FilePlan(
        tuple(_beside_originals(source, functions, originals)),
        tuple(comments),
        layout_helpers(functions, target),
        frozenset(originals),
        tuple(_with_flags(dispatch, functions) for dispatch in dispatches if dispatch is not None),
        target.slots_apart,
        fences_copies(),
    )


def _with_flags(dispatch: Dispatch, functions: Sequence[FunctionPlan]) -> Dispatch:
    """A kernel that has several bodies with the flags that those ask for."""
    bodies = [plan for plan in functions if plan.line == dispatch.line and plan.is_kernel]
    flags = {flag: names for plan in bodies for flag, names in plan.flags.items()}
    passed = {plan.name: (*dispatch.passed.get(plan.name, ()), *plan.flags) for plan in bodies}
    return replace(dispatch, flags={**dispatch.flags, **flags}, passed=passed)


def _functions(source: SourceFile, kernels: Sequence[Kernel]) -> list[FunctionPlan] | None:
    """The plans of all functions; where launches or callers cannot share one, a kernel is kept, and None.

    A helper that different kernels, or different bodies of one, want in different layouts becomes one for each.
    """
    analyses = [analysis for kernel in kernels if kernel.variants is not None for analysis in kernel.variants.analyses]
    lines = {function.line: function.name for function in source.functions}
    own = str(Path(source.path).absolute())
    reached = {key for analysis in analyses for key in _functions_of(analysis.scenes)}
    names = {key: lines[key[1]] for key in sorted(reached) if key[0] == own and key[1] in lines}
    apart: set[FunctionKey] = set()
    while True:
        try:
            give_bodies(analyses, names, apart)
            return Planner(analyses).plans()
        except Conflict as conflict:
            helper = conflict.function[:2]
            wanting = {context[0] for wanted in conflict.wanted for context in wanted}
            is_kernel = any(analysis.function == helper for analysis in analyses)
            if len(wanting) > 1 and not is_kernel and helper in names and helper not in apart:
                apart.add(helper)
                continue
            users = [kernel for kernel in kernels if _reaches(kernel, helper)] or list(kernels)
            keep_conflict(users[0], conflict)
            return None


def keep_conflict(kernel: Kernel, conflict: Conflict) -> None:
    """Keep a kernel for layouts that one text cannot say."""
    file, *_ = conflict.function
    line, column, *_ = conflict.position
    message = "Its launches or callers want different layouts at one place."
    hint = "The kernel stays Triton; a launch less, or a helper of its own, may help."
    kernel.torn = kernel.helper_named(conflict.function[:2])
    if kernel.torn and not same_file(file, kernel.function):
        kernel.elsewhere = frozenset({conflict.function[:2]})
    kernel.keep("TTG310", message, hint, line, column, "" if same_file(file, kernel.function) else file)


def _functions_of(scenes: Sequence[Scene]) -> Iterator[FunctionKey]:
    for scene in scenes:
        yield from ((function.path, function.line) for function in scene.facts.functions.values())


def _facts(plan: FunctionPlan, kernels: Sequence[Kernel]) -> list[FunctionFacts]:
    """What all launches say of a plan's function."""
    known = (each for kernel in kernels for facts in _seen(kernel) for each in facts.functions.values())
    return [each for each in known if (each.path, each.line) == (plan.path, plan.line)]


def _originals(source: SourceFile, functions: Sequence[FunctionPlan], kept: Sequence[Kernel]) -> set[int]:
    """The converted helpers that kept kernels need as they were, or that are kept kernels themselves, by line."""
    needed = {name for kernel in kept if kernel.slice for _, name in kernel.slice.functions}
    needed |= {kernel.function.name for kernel in kept}
    names = {function.line: function.name for function in source.functions}
    return {plan.line for plan in functions if not plan.is_kernel and names[plan.line] in needed}


def _with_callers(
    source: SourceFile, functions: Sequence[FunctionPlan], kept: Sequence[Kernel], converted: Sequence[Kernel]
) -> tuple[list[FunctionPlan], set[int]]:
    """The plans with those of helpers that only call what stands beside its original, and the originals' lines."""
    known = [facts for kernel in converted for facts in _seen(kernel)]
    functions = list(functions)
    while True:
        originals, planned = _originals(source, functions, kept), {plan.line for plan in functions}
        callers = {
            (function.path, function.line)
            for facts in (known if originals else ())
            for function in facts.functions.values()
            if function.line not in planned and same_file(function.path, kept[0].function)
            for name in set().union(function.callees.values(), *function.called.values())
            if name in facts.functions and facts.functions[name].line in originals
        }
        if not callers:
            return functions, originals
        functions += [FunctionPlan(path, line, is_kernel=False) for path, line in sorted(callers)]


def _beside_originals(
    source: SourceFile, functions: Sequence[FunctionPlan], originals: Collection[int]
) -> Iterator[FunctionPlan]:
    """The plans, with other names for what stands beside its original."""
    taken = {function.name for function in source.functions} | {plan.name for plan in functions}
    twins: dict[int, str] = {}
    for function in source.functions:
        if function.line in originals:
            twins[function.line] = unused(f"{function.name}_gluon", taken)
    for plan in functions:
        yield replace(plan, name=plan.name or twins.get(plan.line, ""), calls={**twins, **plan.calls})


def _definition(kernels: Sequence[Kernel], plan: FunctionPlan) -> ast.FunctionDef:
    """The function of a plan, as the slices of its kernels have it."""
    return next(
        node
        for kernel in kernels
        if kernel.slice is not None
        for path, tree in parsed(kernel.slice).items()
        if path == plan.path
        for node in functions_in(tree)
        if node.lineno == plan.line
    )


def _crowded(plan: FunctionPlan, kernels: Sequence[Kernel]) -> FunctionPlan:
    """The plan where shared memory is short: rings, and tiles too, lie there no longer than what needs them."""
    reaching = [kernel for kernel in kernels if _reaches(kernel, (plan.path, plan.line))]
    plan = replace(plan, rings_outside=all(kernel.rings_outside for kernel in reaching))
    if all(kernel.tiles_outside for kernel in reaching):
        return plan

    def passing(edits: Edits) -> Edits:
        return replace(edits, tiles={at: "store" if kind == STORE_AGAIN else kind for at, kind in edits.tiles.items()})

    copies = {statement: tuple(map(passing, each)) for statement, each in plan.copies.items()}
    return replace(plan, edits=passing(plan.edits), copies=copies)


def same_file(path: str, function: JitFunction) -> bool:
    """Whether a path as analysis has it (absolute) is that of a function as the user named it."""
    return Path(path).resolve() == Path(function.path).resolve()


def keep_unpipelined(kernels: Sequence[Kernel], error: NotPipelinedError) -> None:
    """Keep the kernels that reach a function with a loop that could not be pipelined."""
    converted = [kernel for kernel in kernels if kernel.variants is not None]
    function = error.function
    for kernel in [one for one in converted if function is not None and _reaches(one, function)] or converted:
        line = function[1] if function is not None else 0
        file = function[0] if function is not None and not same_file(function[0], kernel.function) else ""
        hint = "The kernel stays Triton; `--no pipeline` converts it with its loads where they are."
        kernel.keep("TTG312", f"A loop of its loads cannot be pipelined: {error}.", hint, line, 0, file)


def left_where_they_are(kernel: Kernel, analysis: KernelAnalysis) -> Iterator[Diagnostic]:
    """Notes on loads that Triton does ahead, and the port does not."""
    for refusal in analysis.refused:
        message = f"Triton copies what is loaded here ahead of its use, and the port does not: {refusal.reason}."
        at = (_named(refusal.function[0], kernel), *refusal.position[:2])
        yield Diagnostic("TTG331", Severity.NOTE, *at, message, _COST)


def left_whole(kernel: Kernel, parted: Collection[tuple[str, int, int]]) -> Iterator[Diagnostic]:
    """Notes on loops whose parts Triton gives warps of their own, without those (`parted`) where the port does so."""
    converted = kernel.facts.values() if kernel.variants is not None else ()
    for loop in dict.fromkeys(loop for facts in converted for loop in facts.lowered.specialised):
        if loop not in parted:
            message = "Triton gives the copies, the products and the rest of this loop warps of their own; in the port"
            message += " all warps do everything, with copies ahead."
            yield Diagnostic("TTG332", Severity.NOTE, _named(loop[0], kernel), *loop[1:], message, _COST)


def _named(path: str, kernel: Kernel) -> str:
    """A path as the user has it."""
    return str(kernel.function.path) if same_file(path, kernel.function) else path


def _reaches(kernel: Kernel, function: FunctionKey) -> bool:
    """Whether a kernel calls a function, under its launches or under those that were made of them to see more."""
    return any((each.path, each.line) == function for facts in _seen(kernel) for each in facts.functions.values())


def _seen(kernel: Kernel) -> Iterator[LaunchFacts]:
    """What is known of a kernel under its launches, and under those that were made of them to see more."""
    yield from kernel.facts.values()
    for analysis in kernel.variants.analyses if kernel.variants is not None else ():
        yield from (scene.facts for scene in analysis.scenes)


def _comment(diagnostic: Diagnostic) -> str:
    """What stands above a kept kernel: no line, no path and no compiler's words, which differ from run to run."""
    cause = diagnostic.message.partition(": ")[0].rstrip(".")
    return f"{KEPT} ({diagnostic.code}). {cause}."
