"""TMA: tiles copied between global and shared memory by descriptors (`ttng.async_tma_*`).

Loads arrive on an mbarrier with their bytes. Stores are groups of their own, waited for in order; until then their
source is being read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.descriptors import Descriptor, Tile
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.descriptors import reduce_tile
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.ops.operands import grouped
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

TMA_STORE = "TMA store"

# Puts elements of shape (P, *tile) at the addresses of a tile.
Put = Callable[[Tile, Array], None]


# -------------------------------------------------------------------------------------------------------- loads


@handles("ttng.async_tma_copy_global_to_local")
def _load(run: Run, operation: Operation, descriptor: Descriptor, *operands: Any) -> None:
    groups = operation.attributes.get("operandSegmentSizes")
    if groups is not None:
        _, coordinates, offsets, (barrier,), (view,), (predicate,) = grouped(operation, (descriptor, *operands))
        if offsets:
            raise Unsupported(operation, "it copies in the im2col mode")
    else:
        *coordinates, barrier, view, predicate = operands
    _one_cta(run, operation)
    if run.engine.predicate(run, predicate):
        _start_load(run, operation, descriptor, descriptor.tile(coordinates), barrier, view)


@handles("ttng.async_tma_gather")
def _gather(
    run: Run,
    operation: Operation,
    descriptor: Descriptor,
    rows: Array,
    column: Array,
    barrier: View,
    view: View,
    predicate: Array,
) -> None:
    _one_cta(run, operation)
    if run.engine.predicate(run, predicate):
        _start_load(run, operation, descriptor, descriptor.rows(rows, column), barrier, view)


def _one_cta(run: Run, operation: Operation) -> None:
    if int(run.module.attributes.get("ttg.num-ctas", 1)) > 1:
        raise Unsupported(operation, "its kernel runs on clusters of several CTAs")


def _start_load(
    run: Run, operation: Operation, descriptor: Descriptor, tile: Tile, barrier_view: View, view: View
) -> None:
    barrier = run.engine.barrier(operation, barrier_view)
    if barrier is None:
        return
    address, inside = tile
    memory, arithmetic = run.memory, run.arithmetic

    def land() -> None:
        outside = np.broadcast_to(np.asarray(descriptor.outside(arithmetic)), address.shape)
        found = memory.load(address, inside, descriptor.element, operation.location, outside)
        view.store(found.reshape(len(found), *view.shape))

    run.engine.start(operation, land, barrier=barrier, writes=[view], size=view.bytes, must_end=True)
    run.engine.switch()


# ------------------------------------------------------------------------------------------------------- stores


@handles("ttng.async_tma_copy_local_to_global")
def _store(run: Run, operation: Operation, descriptor: Descriptor, *operands: Any) -> None:
    *coordinates, view = operands
    _start_store(run, operation, descriptor.tile(coordinates), view, _put(run, operation, descriptor))


@handles("ttng.async_tma_scatter")
def _scatter(run: Run, operation: Operation, descriptor: Descriptor, rows: Array, column: Array, view: View) -> None:
    _start_store(run, operation, descriptor.rows(rows, column), view, _put(run, operation, descriptor))


@handles("ttng.async_tma_reduce")
def _reduce(run: Run, operation: Operation, descriptor: Descriptor, *operands: Any) -> None:
    *coordinates, view = operands

    def put(tile: Tile, values: Array) -> None:
        reduce_tile(run, operation, descriptor, tile, values)

    _start_store(run, operation, descriptor.tile(coordinates), view, put)


def _put(run: Run, operation: Operation, descriptor: Descriptor) -> Put:
    memory = run.memory

    def put(tile: Tile, values: Array) -> None:
        address, inside = tile
        memory.store(together(address, values, inside), values, inside, descriptor.element, operation.location)

    return put


def _start_store(run: Run, operation: Operation, tile: Tile, view: View, put: Put) -> None:
    _one_cta(run, operation)

    def land() -> None:
        values = view.look(operation)
        put(tile, values.reshape(len(values), *tile[0].shape[1:]))

    run.engine.start(operation, land, group=TMA_STORE, reads=[view], must_end=True)
    run.engine.commit(TMA_STORE)


@handles("ttng.async_tma_store_wait")
def _store_wait(run: Run, operation: Operation, *_tokens: Any) -> None:
    run.engine.wait(TMA_STORE, int(operation.attributes["pendings"]))
