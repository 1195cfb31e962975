"""Copies from global to shared memory that a partition waits for by groups: cp.async (`ttg.async_*`).

Copies never waited for are no fault: nobody may have needed them, and their reads and writes are over at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.accesses import Proxy
from tt2gl.simulate.engine import View
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.ops.operands import grouped, only
from tt2gl.simulate.registry import handles
from tt2gl.targets import fences_copies

CP_ASYNC = "cp.async"


@handles("ttg.async_copy_global_to_local")
def _copy(run: Run, operation: Operation, *operands: Any) -> None:
    (address,), (view,), masks, others = grouped(operation, operands)
    mask, other = only(masks), only(others)
    kind = view.kind
    # Where the mask is false cp.async writes zeros; a copy of AMD leaves what was there, unless told otherwise.
    left = other is None and mask is not None and _is_amd(run)

    def land() -> None:
        filling = other if other is not None else np.zeros(1, run.arithmetic.dtype(kind))
        values = memory.load(together(address, mask, other), mask, kind, operation.location, filling)
        view.store(values, mask if left else None)

    memory = run.memory
    # Where Triton's own kernels have no fence behind them, none is missed.
    proxy: Proxy = "generic" if fences_copies() else "async"
    run.engine.start(operation, land, group=CP_ASYNC, writes=[view], proxy=proxy)


def _is_amd(run: Run) -> bool:
    return str(run.module.attributes.get("ttg.target", "")).startswith("hip:")


@handles("ttg.async_commit_group")
def _commit(run: Run, _operation: Operation, *_tokens: Any) -> None:
    run.engine.commit(CP_ASYNC)


@handles("ttg.async_wait")
def _wait(run: Run, operation: Operation, *_tokens: Any) -> None:
    run.engine.wait(CP_ASYNC, int(operation.attributes["num"]))


@handles("ttng.async_copy_mbarrier_arrive")
def _arrive(run: Run, operation: Operation, view: View) -> None:
    """Every thread arrives when its copies have landed; unless told not to, it first adds itself to the count."""
    engine = run.engine
    barrier = engine.barrier(operation, view)
    if barrier is None:
        return
    copies = engine.group(CP_ASYNC).so_far()
    count = 32 * (engine.agent.warps or int(run.module.attributes["ttg.num-warps"]))
    if not operation.attributes.get("noIncrement"):
        # What threads add to the count and take away again comes to nothing, but for the time in between.
        barrier.pending += 1
        count = 1
    engine.start(operation, _nothing, barrier=barrier, before=copies, arrivals=count)
    engine.switch()


def _nothing() -> None:
    pass
