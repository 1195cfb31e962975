"""Shared memory (`ttg.local_*`): allocations, and what partitions themselves read and write there."""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import MemDescType
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Finding, Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.atomics import fetch
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("ttg.convert_layout")
def _convert_layout(_run: Run, _operation: Operation, value: Array) -> Array:
    return value


@handles("ttg.barrier", "ttg.local_barrier", "gpu.barrier", "nvvm.barrier0")
def _barrier(_run: Run, _operation: Operation) -> None:
    """Threads of one partition meet: here they are in step, as the compiler's own barriers keep them."""


@handles("ttg.local_alloc")
def _alloc(run: Run, operation: Operation, *value: Array) -> View:
    kind = operation.results[0].type
    assert isinstance(kind, MemDescType)
    view = run.engine.allocate(run, operation, kind)
    if value:
        run.engine.write(operation, view)
        view.store(value[0])
    return view


@handles("ttg.local_dealloc")
def _dealloc(run: Run, operation: Operation, view: View) -> None:
    run.engine.deallocate(operation, view)


@handles("ttg.local_load")
def _load(run: Run, operation: Operation, view: View, *_token: Any) -> Array:
    run.engine.read(operation, view)
    return view.load(operation)


@handles("ttg.local_store")
def _store(run: Run, operation: Operation, value: Array, view: View) -> None:
    run.engine.write(operation, view)
    view.store(value)


# ------------------------------------------------------------------------------------------- places by index


@handles("ttg.local_gather")
def _gather(run: Run, operation: Operation, view: View, indices: Array, *_token: Any) -> Array:
    axis = int(operation.attributes["axis"])
    run.engine.read(operation, view, fault=False)
    indices = _inside(run, operation, view, indices, axis)
    run.engine.check_written(operation, view, _places(view, indices, axis)[1:])
    return np.take_along_axis(_trimmed(view.load(operation), indices, axis), indices, axis + 1)


@handles("ttg.local_scatter")
def _scatter(run: Run, operation: Operation, view: View, values: Array, indices: Array) -> None:
    axis = int(operation.attributes["axis"])
    indices = _inside(run, operation, view, indices, axis)
    places = _places(view, indices, axis)
    run.engine.write(operation, view, places=places[1:])
    view.data[places] = np.broadcast_to(values, np.broadcast_shapes(values.shape, places[0].shape, indices.shape))


@handles("ttg.local_atomic_scatter_rmw")
def _atomic_scatter(run: Run, operation: Operation, *operands: Any) -> Array:
    view, values, indices, mask = _scatter_operands(operation, operands)
    axis = int(operation.attributes["axis"])
    shape = (run.count, *indices.shape[1:])
    indices = np.broadcast_to(_inside(run, operation, view, indices, axis, mask), shape)
    active = np.broadcast_to(True if mask is None else mask, shape)
    places = tuple(np.broadcast_to(place, shape)[active] for place in _places(view, indices, axis))
    run.engine.check_written(operation, view, places[1:])
    run.engine.write(operation, view, places=places[1:])
    elements = view.load(operation)
    index = np.ravel_multi_index(places, elements.shape)
    result = np.zeros(shape, elements.dtype)
    given = np.broadcast_to(values, shape)[active]
    number = int(operation.attributes["atomic_rmw_op"])
    result[active] = fetch(run, number, view.kind, elements.reshape(-1), index, given)
    view.store(elements)
    return result


def _scatter_operands(operation: Operation, operands: tuple[Any, ...]) -> tuple[View, Array, Array, Array | None]:
    view = next(operand for operand in operands if isinstance(operand, View))
    values, indices, *mask = (operand for operand in operands if operand is not view)
    if len(mask) > 1:
        raise Unsupported(operation, f"it has {len(operands)} operands")
    return view, values, indices, mask[0] if mask else None


def _inside(run: Run, operation: Operation, view: View, indices: Array, axis: int, mask: Array | None = None) -> Array:
    """Indices along an axis, those outside the view reported and set to 0."""
    outside = (indices < 0) | (indices >= view.shape[axis])
    if mask is not None:
        outside = outside & mask
    if outside.any():
        worst = int(indices[outside][0]) if outside.shape == indices.shape else 0
        message = f"index {worst} of {view.storage.name}, which has {view.shape[axis]} along dimension {axis}"
        run.engine.report(Finding("out-of-bounds", message, operation.location, buffer=view.storage.name))
    return np.where((indices < 0) | (indices >= view.shape[axis]), 0, indices).astype(np.int64)


def _trimmed(values: Array, indices: Array, axis: int) -> Array:
    """Values cut to the extent of the indices on all dimensions but one."""
    extent = [slice(None)] + [slice(size) for size in indices.shape[1:]]
    extent[axis + 1] = slice(None)
    return values[tuple(extent)]


def _places(view: View, indices: Array, axis: int) -> tuple[Array, ...]:
    """The index arrays that pick a view's elements (program first): those at `indices` along an axis."""
    count = len(indices) if len(indices) > 1 else len(view.data)
    shape = (count, *indices.shape[1:])
    grid: list[Array] = list(np.ix_(*(np.arange(size) for size in shape)))
    grid[axis + 1] = indices
    return tuple(grid)
