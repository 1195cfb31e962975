"""Tensors made of others without computing: all are views where numpy can make one."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import shape_of
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("tt.make_range")
def _make_range(_run: Run, operation: Operation) -> Array:
    return np.arange(int(operation.attributes["start"]), int(operation.attributes["end"]), dtype=np.int32)[None]


@handles("tt.splat")
def _splat(_run: Run, operation: Operation, value: Array) -> Array:
    shape = shape_of(operation.results[0].type)
    return np.broadcast_to(value.reshape(-1, *(1,) * len(shape)), (len(value), *shape))


@handles("tt.unsplat")
def _unsplat(_run: Run, _operation: Operation, value: Array) -> Array:
    return value.reshape(len(value))


@handles("tt.expand_dims")
def _expand_dims(_run: Run, operation: Operation, value: Array) -> Array:
    return np.expand_dims(value, int(operation.attributes["axis"]) + 1)


@handles("tt.broadcast")
def _broadcast(_run: Run, operation: Operation, value: Array) -> Array:
    return np.broadcast_to(value, (len(value), *shape_of(operation.results[0].type)))


@handles("tt.reshape")
def _reshape(_run: Run, operation: Operation, value: Array) -> Array:
    # With `allow_reorder` any order is right; row-major is one.
    return value.reshape(len(value), *shape_of(operation.results[0].type))


@handles("tt.trans")
def _trans(_run: Run, operation: Operation, value: Array) -> Array:
    return value.transpose(0, *(int(axis) + 1 for axis in operation.attributes["order"]))


@handles("tt.cat")
def _cat(_run: Run, operation: Operation, first: Array, second: Array) -> Array:
    count = max(len(first), len(second))
    parts = [np.broadcast_to(part, (count, *part.shape[1:])) for part in (first, second)]
    joined = np.concatenate(parts, axis=1)
    if joined.shape[1:] != shape_of(operation.results[0].type):
        raise Unsupported(operation, "its operands do not fill its result")
    return joined


@handles("tt.join")
def _join(_run: Run, _operation: Operation, first: Array, second: Array) -> Array:
    shape = np.broadcast_shapes(first.shape, second.shape)
    return np.stack([np.broadcast_to(first, shape), np.broadcast_to(second, shape)], axis=-1)


@handles("tt.split")
def _split(_run: Run, _operation: Operation, value: Array) -> tuple[Array, Array]:
    return value[..., 0], value[..., 1]
