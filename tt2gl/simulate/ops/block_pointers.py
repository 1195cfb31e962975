"""Block pointers (`tl.make_block_ptr`), which Triton had up to 3.8: tiles whose place moves with the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import PointerType, TensorType
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, Rows, byte_size, dtype_of, is_float, take_rows

# What `padding` says, as its attribute numbers it.
_NAN = 2


@dataclass(frozen=True, eq=False)
class BlockPointer:
    """A tile of `kind` at `offsets` in a tensor of `shape` and `strides` (in elements) at `base`: arrays of (P,)."""

    base: Array
    shape: tuple[Array, ...]
    strides: tuple[Array, ...]
    offsets: tuple[Array, ...]
    kind: TensorType

    def take(self, rows: Rows) -> BlockPointer:
        """That of some of the programs."""
        shape, strides, offsets = (
            tuple(take_rows(value, rows) for value in values) for values in (self.shape, self.strides, self.offsets)
        )
        return BlockPointer(take_rows(self.base, rows), shape, strides, offsets, self.kind)

    def addresses(self, checked: Sequence[int]) -> tuple[Array, Array | None]:
        """Addresses of all elements, and which are inside in the dimensions `checked` (None: all)."""
        rank = len(self.shape)
        size = byte_size(self.kind)
        address = self.base.reshape(-1, *(1,) * rank)
        inside: Array | None = None
        for dimension, extent in enumerate(self.kind.shape):
            steps = np.arange(extent).reshape(*(extent if other == dimension else 1 for other in range(rank)))
            place = self.offsets[dimension].astype(np.int64).reshape(-1, *(1,) * rank) + steps
            address = address + place * (self.strides[dimension] * size).reshape(-1, *(1,) * rank)
            if dimension in checked:
                here = (place >= 0) & (place < self.shape[dimension].reshape(-1, *(1,) * rank))
                inside = here if inside is None else inside & here
        if inside is None or inside.all():
            return address, None
        whole = np.broadcast_shapes(address.shape, inside.shape)
        return np.broadcast_to(address, whole), np.broadcast_to(inside, whole)


@handles("tt.make_tensor_ptr")
def _make_tensor_ptr(_run: Run, operation: Operation, base: Array, *operands: Array) -> BlockPointer:
    pointer = operation.results[0].type
    if not isinstance(pointer, PointerType) or not isinstance(pointer.pointee, TensorType):
        raise Unsupported(operation, f"it makes a {pointer}")
    rank = len(operands) // 3
    shape, strides, offsets = (operands[part * rank : (part + 1) * rank] for part in range(3))
    return BlockPointer(base, shape, strides, offsets, pointer.pointee)


@handles("tt.advance")
def _advance(_run: Run, _operation: Operation, pointer: BlockPointer, *steps: Array) -> BlockPointer:
    offsets = tuple(offset + step for offset, step in zip(pointer.offsets, steps, strict=True))
    return BlockPointer(pointer.base, pointer.shape, pointer.strides, offsets, pointer.kind)


def load_block(run: Run, operation: Operation, pointer: BlockPointer) -> Array:
    """What `tt.load` finds through a block pointer: its padding, or poison, outside the dimensions it checks."""
    address, inside = pointer.addresses([int(axis) for axis in operation.attributes.get("boundaryCheck", ())])
    padding = operation.attributes.get("padding")
    other: Array | None = None
    if padding is not None:
        filling = np.nan if int(padding) == _NAN and is_float(pointer.kind) else 0
        other = run.arithmetic.from_bits(np.full(1, filling).astype(dtype_of(pointer.kind)), pointer.kind)
        other = np.broadcast_to(other.reshape(-1, *(1,) * len(pointer.shape)), (1, *pointer.kind.shape))
    return run.memory.load(address, inside, pointer.kind, operation.location, other)


def store_block(run: Run, operation: Operation, pointer: BlockPointer, value: Array) -> None:
    """What `tt.store` writes through a block pointer: nothing outside the dimensions it checks."""
    address, inside = pointer.addresses([int(axis) for axis in operation.attributes.get("boundaryCheck", ())])
    if len(value) > len(address):
        address = np.broadcast_to(address, (len(value), *address.shape[1:]))
    run.memory.store(address, value, inside, pointer.kind, operation.location)
