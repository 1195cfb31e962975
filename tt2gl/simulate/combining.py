"""Regions of scalars (of reductions, scans and maps), run for all elements of tensors at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tt2gl.ir.operations import Block, Operation, Region, Value
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.programs import Programs
from tt2gl.simulate.registry import HANDLERS
from tt2gl.simulate.values import Array

# Combines two lists of arrays, all of one shape, into one such list.
Combine = Callable[[Sequence[Array], Sequence[Array]], list[Array]]


def combiner(run: Run, operation: Operation) -> Combine:
    """The region of a reduction or scan as a function of arrays, whose leading axis is the programs'."""
    single = _single(run, operation.regions[0])
    if single is None:
        return lambda first, second: for_each(run, operation.regions[0], [*first, *second])
    inner, swapped = single
    handler = HANDLERS[inner.name]

    def combine(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
        a, b = (second[0], first[0]) if swapped else (first[0], second[0])
        return [handler(run, inner, a, b)]

    return combine


def _single(run: Run, region: Region) -> tuple[Operation, bool] | None:
    """The one elementwise operation that a region of two arguments is, and whether it takes them the other way round.

    It may be in a function that the region calls.
    """
    block = region.entry
    if len(region.blocks) != 1 or len(block.arguments) != 2 or len(block.operations) != 2:
        return None
    inner, end = block.operations
    if inner.results != end.operands or set(inner.operands) != set(block.arguments) or len(inner.operands) != 2:
        return None
    swapped = inner.operands[0] is block.arguments[1]
    if inner.name == "tt.call":
        function = run.module.functions.get(inner.attributes["callee"].name)
        called = _single(run, function.regions[0]) if function is not None and function.regions else None
        return None if called is None else (called[0], called[1] != swapped)
    known = inner.name in HANDLERS and inner.name.startswith(("arith.", "math.")) and not inner.regions
    return (inner, swapped) if known else None


def for_each(run: Run, region: Region, arguments: Sequence[Array]) -> list[Array]:
    """Run a region of scalars for every element of arrays of one shape: arrays of that shape.

    Every element counts as a program of its own, so the region may branch on it.
    """
    shape = arguments[0].shape
    count = arguments[0].size
    outer = {value: _spread(run.frame.get(value), shape) for value in _free(region)}
    with run.activation(Programs(np.zeros(count, np.int64), run.programs.grid)):
        run.frame.values.update(outer)
        results = run.region(region, [argument.reshape(count) for argument in arguments])
    return [np.broadcast_to(result, (count,)).reshape(shape) for result in results]


def _spread(value: Any, shape: tuple[int, ...]) -> Any:
    """A scalar from around a region, for every element of an array with the programs' axis in front."""
    if isinstance(value, np.ndarray) and len(value) > 1:
        return np.repeat(value, int(np.prod(shape[1:])))
    return value


def _free(region: Region) -> set[Value]:
    """Values that a region takes from around it."""
    own: set[Value] = set()
    used: set[Value] = set()
    blocks: list[Block] = list(region.blocks)
    while blocks:
        block = blocks.pop()
        own.update(block.arguments)
        for operation in block.operations:
            own.update(operation.results)
            used.update(operation.operands)
            blocks += [inner for nested in operation.regions for inner in nested.blocks]
    return used - own


def common_rows(values: Sequence[Array]) -> list[Array]:
    """Values with equally many programs."""
    count = max(len(value) for value in values)
    return [np.broadcast_to(value, (count, *value.shape[1:])) for value in values]


def along(value: Array, axis: int) -> Array:
    """A value as (what is outside an axis of its tensor, that axis, what is inside)."""
    outer = int(np.prod(value.shape[: axis + 1]))
    return value.reshape(outer, value.shape[axis + 1], -1)
