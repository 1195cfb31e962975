"""mbarriers (`ttng.*_barrier`) and what else keeps threads and clusters together. One CTA: clusters have one member."""

from __future__ import annotations

from typing import Any

from tt2gl.ir.operations import Operation
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.operands import grouped, only
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("ttng.init_barrier")
def _init(run: Run, operation: Operation, view: View) -> None:
    run.engine.init_barrier(operation, view, int(operation.attributes["count"]))


@handles("ttng.inval_barrier")
def _invalidate(run: Run, operation: Operation, view: View) -> None:
    run.engine.invalidate_barrier(operation, view)


@handles("ttng.barrier_expect")
def _expect(run: Run, operation: Operation, view: View, predicate: Array) -> None:
    if not run.engine.predicate(run, predicate):
        return
    barrier = run.engine.barrier(operation, view)
    if barrier is not None:
        barrier.expect(int(operation.attributes["size"]))
        run.engine.arrive(operation, barrier)


@handles("ttng.arrive_barrier")
def _arrive(run: Run, operation: Operation, view: View, *predicate: Array) -> None:
    if operation.attributes.get("multicastCTA"):
        raise Unsupported(operation, "it arrives on barriers of other CTAs")
    if not run.engine.predicate(run, only(predicate)):
        return
    barrier = run.engine.barrier(operation, view)
    if barrier is not None:
        run.engine.arrive(operation, barrier, int(operation.attributes["count"]))


@handles("ttng.wait_barrier")
def _wait(run: Run, operation: Operation, *operands: Any) -> None:
    (view,), (phase,), predicate, *_ = grouped(operation, operands)
    if not run.engine.predicate(run, only(predicate)):
        return
    parity = run.engine.common(run, phase)
    barrier = run.engine.barrier(operation, view)
    if barrier is not None:
        run.engine.wait_for(operation, barrier, parity)


@handles("ttng.fence_async_shared")
def _fence(run: Run, _operation: Operation) -> None:
    run.engine.fence()


@handles(
    "ttng.cluster_arrive",
    "ttng.cluster_wait",
    "ttng.cluster_barrier",
    "ttng.fence_mbarrier_init_release_cluster",
)
def _cluster(run: Run, operation: Operation) -> None:
    if int(run.module.attributes.get("ttg.num-ctas", 1)) > 1:
        raise Unsupported(operation, "it is between several CTAs")
