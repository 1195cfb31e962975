"""AMD's buffer operations (`amdg.buffer_*`): a scalar base and a tensor of 32-bit offsets, counted in elements.

The hardware adds offsets as unsigned bytes and drops what lies past the buffer's size. Triton does not know a tensor's
size and says two gigabytes; masked-off elements go past that on purpose. So here too a load past it is zero and a store
past it is nothing, while what lies within but outside of the tensor is a fault, as on any other access.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import Type, element_type
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.ops.operands import grouped, only
from tt2gl.simulate.registry import HANDLERS, handles
from tt2gl.simulate.values import Array, byte_size

# Bytes of a buffer, as Triton sets up its descriptors.
BUFFER_BYTES = (1 << 31) - 2


def buffer_addresses(pointer: Array, offsets: Array, mask: Array | None, kind: Type) -> tuple[Array, Array | None]:
    """Addresses of elements of type `kind`, and which of them are accessed (None: all), in one shape."""
    size = byte_size(kind)
    distance = (offsets.astype(np.int64) * size) & 0xFFFFFFFF
    address = pointer.reshape(-1, *(1,) * (offsets.ndim - 1)) + distance
    within = distance <= BUFFER_BYTES - size
    if not within.all():
        mask = within if mask is None else mask & within
    return together(address, mask), mask


def buffer_values(
    run: Run, operation: Operation, pointer: Array, offsets: Array, mask: Array | None, other: Array | None, kind: Type
) -> Array:
    """What a buffer load yields: zero where nothing is read, or `other` where the mask says so."""
    address, active = buffer_addresses(pointer, offsets, mask, kind)
    zero = np.zeros((1,) * offsets.ndim, run.arithmetic.dtype(kind))
    if mask is None or other is None:
        other = zero
    elif active is not mask:
        other = np.where(mask, zero, other)
    if active is not None:
        address = together(address, active, other)
    return run.memory.load(address, active, kind, operation.location, other)


def optional_operands(operation: Operation, operands: tuple[Any, ...]) -> list[Any]:
    """The operands by their place in the operation's definition, None for those left out; none may be variadic."""
    return [only(group) for group in grouped(operation, operands)]


@handles("amdg.buffer_load")
def _load(run: Run, operation: Operation, *operands: Any) -> Array:
    pointer, offsets, _stride, mask, other = optional_operands(operation, operands)
    return buffer_values(run, operation, pointer, offsets, mask, other, element_type(operation.results[0].type))


@handles("amdg.buffer_store")
def _store(run: Run, operation: Operation, *operands: Any) -> None:
    value, pointer, offsets, _stride, mask = optional_operands(operation, operands)
    kind = element_type(operation.operands[0].type)
    address, active = buffer_addresses(pointer, offsets, mask, kind)
    run.memory.store(together(address, value), value, active, kind, operation.location)


@handles("amdg.buffer_atomic_rmw")
def _atomic_rmw(run: Run, operation: Operation, *operands: Any) -> Array:
    pointer, offsets, value, _stride, mask = optional_operands(operation, operands)
    address, active = buffer_addresses(pointer, offsets, mask, element_type(operation.operands[2].type))
    by_pointers = replace(operation, operands=(operation.operands[0], operation.operands[2]))
    masks = () if active is None else (active,)
    result: Array = HANDLERS["tt.atomic_rmw"](run, by_pointers, address, value, *masks)
    return result


@handles("amdg.buffer_atomic_cas")
def _atomic_cas(
    run: Run, operation: Operation, pointer: Array, offsets: Array, expected: Array, value: Array, *_stride: Array
) -> Array:
    address, _ = buffer_addresses(pointer, offsets, None, element_type(operation.results[0].type))
    result: Array = HANDLERS["tt.atomic_cas"](run, operation, address, expected, value)
    return result
