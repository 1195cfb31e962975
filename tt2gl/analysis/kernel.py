"""One kernel, all its launches: facts in, layouts decided. The door that `convert` uses."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.builder import Builder
from tt2gl.analysis.coverage import first_unreached, unreached_creations
from tt2gl.analysis.facts import Access, CallChain, LaunchFacts
from tt2gl.analysis.frontend import observe, observe_accesses
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.propagation import propagated
from tt2gl.analysis.repeated_stores import mark_repeated
from tt2gl.analysis.scalar_rings import decide
from tt2gl.analysis.staging import staged_loads
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.failures import CompileError, explain
from tt2gl.isolate import printed_so_far
from tt2gl.launches import Launch
from tt2gl.slicing.slices import Slice
from tt2gl.targets import Target
from tt2gl.trees import nodes_in, python_tree


def observe_job(kernel: Slice, launch: Launch, target: str, direct_to_lds: bool) -> LaunchFacts:
    """Facts of one launch; for a child process."""
    import tempfile

    earlier = len(printed_so_far())  # of the jobs that this process did before
    with tempfile.TemporaryDirectory(prefix="facts-") as directory:
        try:
            return observe(kernel, launch, target, Path(directory), direct_to_lds=direct_to_lds)
        except Exception as error:
            raise CompileError(explain(error, kernel, printed_so_far()[earlier:])) from error


def observe_accesses_job(kernel: Slice, launch: Launch, target: str) -> dict[CallChain, Access]:
    """The accesses of one launch; for a child process."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="facts-") as directory:
        return observe_accesses(kernel, launch, target, Path(directory))


def parsed(kernel: Slice) -> dict[str, ast.Module]:
    """The slice's modules as trees, by the author's file; positions are the author's."""
    return {str(module.path): python_tree(module.text) for module in kernel.modules}


def analyse(
    kernel: Slice, name: str, launches: Sequence[Launch], facts: Sequence[LaunchFacts], target: Target
) -> KernelAnalysis:
    """Decide the layouts of a kernel. Raises `Unsupported` for a construct that stays Triton."""
    trees = parsed(kernel)
    products = {chain: dot for seen in facts for chain, dot in seen.lowered.dots.items()}
    products |= {chain: dot for seen in facts for chain, dot in seen.lowered.dots.items() if not dot.from_zero}
    scenes = [
        Scene(launch, seen, Builder(seen, trees, products).build(), target.warp_size)
        for launch, seen in zip(launches, facts, strict=True)
    ]
    staging = staged_loads(scenes, trees)
    classes = Classes(scenes, staging.loads)
    cores = TensorCores(classes, staging.loads, staging.held, staging.in_order)
    decisions = propagated(scenes, classes, cores)
    decide(staging.scalars, classes, decisions)
    if all(seen.mover == "tma" for seen in facts):
        converted = {chain[0] for seen in facts for chain, free in seen.lowered.inferred.items() if not free}
        mark_repeated(decisions, trees, converted, staging.rereading)
    entry = facts[0].functions[facts[0].entry]
    tree = trees[entry.path]
    taken = frozenset(node.id for node in nodes_in(tree) if isinstance(node, ast.Name))
    taken |= {node.arg for node in nodes_in(tree) if isinstance(node, ast.arg)}
    left_out = unreached_creations(trees, facts)
    unverified = first_unreached(trees, facts)
    key = (entry.path, entry.line)
    return KernelAnalysis(
        key,
        name,
        scenes,
        classes,
        decisions,
        taken,
        stages=cores.stages(taken, staging.scalars),
        refused=staging.refused,
        wide=staging.wide,
        flattened=staging.flattened,
        rereading=staging.rereading,
        unreached=left_out,
        unverified=unverified,
    )
