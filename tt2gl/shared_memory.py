"""Ports that ask for more shared memory than there is: their rings are made smaller, in steps, until they fit.

Triton's own kernel may fit where ours does not: its scratch memory overlaps other buffers, or its rings have a tile
less. First, rings are made where they are used, so that their memory serves what follows the loop, too. Then the tiles
that loops store through are made by each store, which waits for itself. Then loads run less far ahead under the
launches that do not fit:

    stages: gl.constexpr = 2 if NUM_STAGES > 2 and BLOCK_N >= 256 else NUM_STAGES
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.kernel_state import Kernel
from tt2gl.launches import Launch
from tt2gl.names import unused
from tt2gl.results import CompileResult
from tt2gl.stages import Fewer, Stages
from tt2gl.targets import Target

FEWEST = 2
"""With one stage nothing runs ahead."""


def made_smaller(kernel: Kernel, results: Mapping[int, CompileResult], target: Target) -> bool:
    """Ask less of a kernel's rings where all that is wrong with it is its shared memory; whether anything was done."""
    failed = {index: result for index, result in results.items() if not result.ok}
    over = {index: _asked(result) for index, result in failed.items() if _asked(result) > target.shared_memory_bytes}
    if kernel.variants is None or not over or len(over) < len(failed):
        return False
    if kernel.rings_outside and any(one.tiles_in_rings for one in kernel.variants.analyses):
        kernel.rings_outside = False
        return True
    if kernel.tiles_outside and any(one.stores_again for one in kernel.variants.analyses):
        kernel.tiles_outside = False
        return True
    kernel.crowded = {**over, **kernel.crowded}
    parts = [(one, _indices(one, kernel, over)) for one in kernel.variants.analyses]
    if not all(_may_be_less(one.stages, [kernel.launches[i] for i in own]) for one, own in parts if own):
        return False
    for one, own in parts:
        if own:
            _shorten(one, kernel, own)
    return True


def _asked(result: CompileResult) -> int:
    return result.metrics.shared_bytes if result.metrics is not None else 0


def _indices(analysis: KernelAnalysis, kernel: Kernel, wanted: Mapping[int, int]) -> list[int]:
    """Which of some launches an analysis is of."""
    own = [scene.launch for scene in analysis.scenes]
    return [index for index in wanted if any(kernel.launches[index] is launch for launch in own)]


def depth(stages: Stages, launch: Launch) -> int:
    """How many stages a launch has now."""
    asked = launch.constexprs.get(stages.source)
    if stages.parameter:
        asked = launch.options.num_stages
    if asked is None:
        asked = int(stages.source)
    asked = stages.told(asked)
    fewer = stages.fewer
    return min(asked, fewer.most) if fewer is not None and fewer.holds(launch.constexprs) else asked


def _may_be_less(stages: Stages | None, launches: Sequence[Launch]) -> bool:
    return stages is not None and all(depth(stages, launch) > FEWEST for launch in launches)


def _shorten(analysis: KernelAnalysis, kernel: Kernel, own: Sequence[int]) -> None:
    """Give an analysis a stage less under the launches that do not fit, and where nothing tells them apart, under all.

    Those are all that ever did not.
    """
    stages = analysis.stages
    assert stages is not None
    most = min(depth(stages, kernel.launches[index]) for index in own) - 1
    crowded = [kernel.launches[index] for index in _indices(analysis, kernel, kernel.crowded)]
    plain = replace(stages, fewer=None)
    others = [
        scene.launch
        for scene in analysis.scenes
        if depth(plain, scene.launch) > most and not any(scene.launch is launch for launch in crowded)
    ]
    names = stages.fewer.name if stages.fewer is not None else unused("stages", {*analysis.taken, stages.named})
    analysis.stages = replace(stages, fewer=Fewer(names, most, *_told_apart(crowded, others)))


def _told_apart(crowded: Sequence[Launch], others: Sequence[Launch]) -> tuple[str, int]:
    """A compile-time parameter, and the least value of it that launches which do not fit have, and others do not."""
    for name in crowded[0].constexprs if others else ():
        ours, theirs = _integers(name, crowded), _integers(name, others)
        if ours and theirs and min(ours) > max(theirs):
            return name, min(ours)
    return "", 0


def _integers(name: str, launches: Sequence[Launch]) -> list[int]:
    """The values of a compile-time parameter, none where some is no integer."""
    values = [launch.constexprs.get(name) for launch in launches]
    found = [value for value in values if type(value) is int]
    return found if len(found) == len(values) else []


def tell_fewer_stages(kernel: Kernel, target: Target) -> None:
    """Say under which launches loads run less far ahead than Triton's."""
    for analysis in kernel.variants.analyses if kernel.variants is not None else ():
        stages = analysis.stages
        own = _indices(analysis, kernel, kernel.crowded)
        if stages is None or not own:
            continue
        first = min(own)
        launch = kernel.launches[first]
        before, now = depth(replace(stages, fewer=None), launch), depth(stages, launch)
        message = (
            f"Under launch {first} {before} stages would take {kernel.crowded[first]} bytes of shared memory a block, "
            f"and {target.name} has {target.shared_memory_bytes}: its loops have {now}."
        )
        hint = "Loads run less far ahead; a smaller block leaves room for more stages."
        where = (str(kernel.function.path), kernel.function.line, 0)
        kernel.diagnostics.append(Diagnostic("TTG321", Severity.NOTE, *where, message, hint))
