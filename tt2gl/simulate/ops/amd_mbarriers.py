"""gfx1250's mbarriers, on which every thread arrives, and once a warp the tensor data mover."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.engine import View
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.async_copies import CP_ASYNC
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


def warps_of(run: Run) -> int:
    """How many warps run the current partition."""
    return run.engine.agent.warps or int(run.module.attributes["ttg.num-warps"])


def _threads_of(run: Run) -> int:
    return warps_of(run) * int(run.module.attributes["ttg.threads-per-warp"])


@handles("amdg.init_barrier")
def _init(run: Run, operation: Operation, view: View) -> None:
    run.engine.init_barrier(operation, view, int(operation.attributes["count"]))


@handles("amdg.wait_barrier")
def _wait(run: Run, operation: Operation, view: View, parity: Array) -> None:
    barrier = run.engine.barrier(operation, view)
    if barrier is not None:
        run.engine.wait_for(operation, barrier, run.engine.common(run, parity))


@handles("amdg.arrive_barrier")
def _arrive(run: Run, operation: Operation, view: View) -> Array:
    """Arrive, every thread `count` times: the parity of the phase that this was in."""
    barrier = run.engine.barrier(operation, view)
    if barrier is None:
        return np.zeros(1, np.int32)
    parity = barrier.phase & 1
    run.engine.arrive(operation, barrier, int(operation.attributes["count"]) * _threads_of(run))
    return np.array([parity], np.int32)


@handles("amdg.async_copy_mbarrier_arrive")
def _arrive_after_copies(run: Run, operation: Operation, view: View) -> None:
    """Every thread arrives when the copies that it has begun are over."""
    engine = run.engine
    barrier = engine.barrier(operation, view)
    if barrier is None:
        return
    copies = engine.group(CP_ASYNC).so_far()
    engine.start(operation, lambda: None, barrier=barrier, arrivals=_threads_of(run), before=copies)
