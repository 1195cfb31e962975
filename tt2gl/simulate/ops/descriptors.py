"""Tensor descriptors used as Triton's frontend has them: whole tiles from and to registers."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import DescriptorType, IntegerType, shape_of
from tt2gl.simulate.descriptors import Descriptor, Tile
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.atomics import Change, for_each_program, modify
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

# What `padding` says, as its attribute numbers it.
_NAN = 2

# The kinds of a reduction by number, as `tt.atomic_rmw` numbers them: signed, and unsigned where that differs.
_KINDS = {1: 4, 2: 7, 3: 6, 6: 1, 7: 2, 8: 3}
_UNSIGNED = {7: 9, 6: 8}


@handles("tt.make_tensor_descriptor")
def _make_tensor_descriptor(_run: Run, operation: Operation, base: Array, *sizes: Array) -> Descriptor:
    kind = operation.results[0].type
    if not isinstance(kind, DescriptorType):
        raise Unsupported(operation, f"it makes a {kind}")
    rank = len(sizes) // 2
    shape, strides = (tuple(size.astype(np.int64) for size in part) for part in (sizes[:rank], sizes[rank:]))
    padding = operation.attributes.get("padding")
    fill: Literal["zero", "nan"] = "nan" if padding is not None and int(padding) == _NAN else "zero"
    return Descriptor(base, shape, strides, kind.block.shape, kind.block.element, fill)


@handles("tt.descriptor_load")
def _descriptor_load(run: Run, operation: Operation, descriptor: Descriptor, *coordinates: Array) -> Array:
    return _read(run, operation, descriptor, descriptor.tile(coordinates))


@handles("tt.descriptor_gather")
def _descriptor_gather(run: Run, operation: Operation, descriptor: Descriptor, rows: Array, column: Array) -> Array:
    return _read(run, operation, descriptor, descriptor.rows(rows, column))


def _read(run: Run, operation: Operation, descriptor: Descriptor, tile: Tile) -> Array:
    address, inside = tile
    kind = operation.results[0].type
    outside = np.broadcast_to(np.asarray(descriptor.outside(run.arithmetic)), address.shape)
    found = run.memory.load(address, inside, descriptor.element, operation.location, outside)
    # A tile may come without its dimensions of one element.
    return found.reshape(len(found), *shape_of(kind))


@handles("tt.descriptor_store")
def _descriptor_store(run: Run, operation: Operation, descriptor: Descriptor, value: Array, *where: Array) -> None:
    _write(run, operation, descriptor.tile(where), value, descriptor)


@handles("tt.descriptor_scatter")
def _descriptor_scatter(
    run: Run, operation: Operation, descriptor: Descriptor, rows: Array, column: Array, value: Array
) -> None:
    _write(run, operation, descriptor.rows(rows, column), value, descriptor)


def _write(run: Run, operation: Operation, tile: Tile, value: Array, descriptor: Descriptor) -> None:
    address, inside = tile
    shaped = value.reshape(len(value), *address.shape[1:])
    run.memory.store(together(address, shaped, inside), shaped, inside, descriptor.element, operation.location)


@handles("tt.descriptor_reduce")
def _descriptor_reduce(run: Run, operation: Operation, descriptor: Descriptor, value: Array, *where: Array) -> None:
    address, inside = descriptor.tile(where)
    tile = for_each_program(run, address), inside
    reduce_tile(run, operation, descriptor, tile, value.reshape(len(value), *address.shape[1:]))


def reduce_tile(run: Run, operation: Operation, descriptor: Descriptor, tile: Tile, values: Array) -> None:
    """Combine values with a tile of memory, as the operation's `kind` says. Raises Unsupported for an unknown kind."""
    number = _KINDS.get(int(operation.attributes["kind"]))
    if number is None:
        raise Unsupported(operation, f"it has no kind {operation.attributes['kind']}")
    kind = operation.operands[0].type
    element = kind.block.element if isinstance(kind, DescriptorType) else descriptor.element
    if isinstance(element, IntegerType) and element.signedness == "u":
        number = _UNSIGNED.get(number, number)
    address, inside = tile
    modify(run, Change(element, number, operation.location), address, values, inside, kept=False)
