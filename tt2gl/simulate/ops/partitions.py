"""Warp specialisation (`ttg.warp_specialize`): regions that run side by side, the default one among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tt2gl.ir.operations import Operation, Region
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import packed
from tt2gl.simulate.registry import ends_block, handles
from tt2gl.simulate.values import Array

ends_block("ttg.warp_yield", "ttg.warp_return")


@handles("ttg.warp_specialize")
def _warp_specialize(run: Run, operation: Operation, *captures: Any) -> Any:
    default, holder = operation.regions
    inner = holder.entry.operations[-1]
    if inner.name != "ttg.warp_specialize.partitions":
        raise Unsupported(operation, f"it holds {inner.name} where partitions were expected")
    # Triton 3.6 hands captures to the outer operation, later ones to the inner one.
    captured = [*captures, *(run.frame.get(value) for value in inner.operands)]
    warps = operation.attributes["partitionNumWarps"]
    results: list[Any] = []

    def body() -> None:
        results.extend(run.region(default, ()))

    engine = run.engine
    agents = [engine.fork("the default partition", engine.agent.warps)]
    agents += [engine.fork(f"partition {number}", int(count)) for number, count in enumerate(warps)]
    bodies = [body, *(_partition(run, region, captured) for region in inner.regions)]
    engine.run_partitions(run, agents, bodies)
    return packed(operation, results) if operation.results else None


def _partition(run: Run, region: Region, captures: Sequence[Any]) -> Callable[[], None]:
    def body() -> None:
        with run.activation():
            run.region(region, captures)

    return body


@handles("ttg.warp_id")
def _warp_id(_run: Run, operation: Operation) -> Array:
    raise Unsupported(operation, "values that differ between the warps of a partition")
