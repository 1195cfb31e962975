"""Barriers between the warps of an AMD program that runs in two halves ("ping-pong"): here all warps are in step.

The halves are told apart by a thread's number. No value of a kernel at this level is a thread's own, so the number may
decide who waits at a barrier and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation, Value
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("amdg.cond_barrier", "rocdl.s.barrier", "amdg.cluster_barrier_arrive", "amdg.cluster_barrier_wait")
def _barrier(_run: Run, _operation: Operation, *_condition: Any) -> None:
    """Warps of one program wait for each other; so do the programs of a cluster, of which there is one."""


@handles("rocdl.workitem.id.x")
def _thread(run: Run, operation: Operation) -> Array:
    for user in _reached(run, operation):
        if user.regions or not (user.name.startswith("arith.") or user.name == "amdg.cond_barrier"):
            raise Unsupported(operation, f"a thread's number reaches {user.name}")
    return np.zeros(1, np.int32)


def _reached(run: Run, operation: Operation) -> Iterator[Operation]:
    """The operations that use a result, and those that use theirs."""
    reached: set[Value] = set(operation.results)
    # Definitions stand before uses: one pass finds them all.
    for user in run.module.operation.walk():
        if not reached.isdisjoint(user.operands):
            reached.update(user.results)
            yield user
