"""How deep Triton pipelines the loops of a kernel, as source that gives every launch its own depth."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence, Set

from tt2gl.analysis.graph import Site
from tt2gl.analysis.memory import Scene
from tt2gl.analysis.scalar_rings import ScalarLoad
from tt2gl.analysis.uses import RingUse, stages_of
from tt2gl.names import unused
from tt2gl.stages import CHAINED, LOOKED_UP, STAGES, Schedule, Stages

_DEFAULT_STAGES = 3
"""What Triton takes where a launch does not say."""


def stages(
    rings: Collection[RingUse],
    scalars: Collection[ScalarLoad],
    scenes: Sequence[Scene],
    taken: Set[str],
    *,
    released: bool,
    in_tensor_memory: bool,
) -> Stages | None:
    """How many stages the loops of these rings have under every launch; None if none is pipelined.

    A ring that a dot takes in place has a buffer for each stage, one that is read into registers one less. `scalars`
    that run ahead say so where no tiles do. `released`:
    products are done with their tiles at once; `in_tensor_memory`: all have their accumulators there. What is declared
    for the count has a name that is not in `taken`.
    """
    deep: dict[int, int] = {}
    for ring in rings:
        for index, fact in ring.facts.items() if not ring.looked_up else ():
            deep[index] = max(deep.get(index, 0), stages_of(fact, released))
    loops = [(ring.node.loop, ring.node.site) for ring in rings]
    if not deep:
        deep = _of_scalars(scalars, scenes)
        loops = [(scalar.loop, scalar.site) for scalar in scalars]
    if not deep:
        return None
    said = {_asked_of_loop(loop, site, scenes) for loop, site in loops}
    name = said.pop() if len(said) == 1 else ""
    if all(scenes[index].launch.constexprs.get(name) == depth for index, depth in deep.items()):
        return Stages(name)
    asked = {index: scenes[index].launch.options.num_stages for index in deep}
    beyond = {deep[index] - asked[index] for index in deep}
    # In tensor memory Triton runs the first of several products an iteration ahead, which may take one buffer more.
    if in_tensor_memory and beyond <= {0, 1}:
        return _by_option(scenes, further=min(beyond))
    looked_up = any(ring.looked_up for scene in scenes for ring in scene.facts.lowered.rings.values())
    for schedule in _schedules(looked_up, deep.values()):
        if deep == {index: schedule.of(number) if schedule else number for index, number in asked.items()}:
            return _by_option(scenes, schedule=schedule, named=unused("stages", taken) if schedule else "")
    # Where waves of AMD copy, Triton counts the stage in which tiles are read from LDS.
    if beyond == {-1}:
        return _by_option(scenes, further=-1)
    return Stages(str(max(deep.values())))


def _schedules(looked_up: bool, deep: Collection[int]) -> Iterator[Schedule | None]:
    """What part of a launch's stages tiles may have, the whole first."""
    yield None
    if looked_up:
        yield LOOKED_UP
    elif len(set(deep)) > 1:
        yield CHAINED


def _by_option(
    scenes: Sequence[Scene], *, further: int = 0, schedule: Schedule | None = None, named: str = ""
) -> Stages:
    """A count that follows the launch's option."""
    values = {scene.launch.options.num_stages for scene in scenes}
    differ = len(values) > 1
    default = _DEFAULT_STAGES if differ else values.pop()
    return Stages(STAGES, True, default, differ, further=further, schedule=schedule, named=named)


def _of_scalars(scalars: Collection[ScalarLoad], scenes: Sequence[Scene]) -> dict[int, int]:
    """The most stages of what launches have such scalars wait in, by launch."""
    known = [(index, scene.facts.lowered.rings) for index, scene in enumerate(scenes)]
    facts = [(index, rings[each.chain]) for each in scalars for index, rings in known if each.chain in rings]
    return {at: max(stages_of(ring) for index, ring in facts if index == at) for at, _ in facts}


def _asked_of_loop(loop: ast.For | None, site: Site, scenes: Sequence[Scene]) -> str:
    """What the author says of a loop by `tl.range(num_stages=...)`, in the kernel's words; empty if nothing."""
    if loop is None or not isinstance(loop.iter, ast.Call):
        return ""
    said = next((ast.unparse(each.value) for each in loop.iter.keywords if each.arg == "num_stages"), "")
    for graph in (scene.graph for scene in scenes):
        if (words := graph.words.get((site.function, site.context))) is not None:
            return next((source for source, name in words.items() if name == said), "")
    return said
