"""Tensor descriptors: tiles of tensors in global memory, made by the host or in the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tt2gl.ir.types import Type
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.memory import Allocation
from tt2gl.simulate.values import Array, Rows, byte_size, dtype_of, is_float, take_rows

if TYPE_CHECKING:
    from tt2gl.simulate.api import DescriptorInput

# Where a tile lies: addresses of its elements, and which of them are inside the tensor (None: all).
Tile = tuple[Array, Array | None]


@dataclass(frozen=True, eq=False)
class Descriptor:
    """Tiles of shape `block` of a tensor: `base` the address of its first element, `shape` and `strides` in elements.

    Those are arrays of shape (P,), or (1,) where all programs agree; sizes and strides are int64, outermost first.
    """

    base: Array
    shape: tuple[Array, ...]
    strides: tuple[Array, ...]
    block: tuple[int, ...]
    element: Type
    padding: Literal["zero", "nan"] = "zero"

    def take(self, rows: Rows) -> Descriptor:
        """That of some of the programs."""
        shape = tuple(take_rows(size, rows) for size in self.shape)
        strides = tuple(take_rows(stride, rows) for stride in self.strides)
        return Descriptor(take_rows(self.base, rows), shape, strides, self.block, self.element, self.padding)

    def tile(self, coordinates: Sequence[Array], block: tuple[int, ...] | None = None) -> Tile:
        """The tile whose first element is at `coordinates`, one array of shape (P,) or (1,) for each dimension.

        The arrays returned have shape (P, *block), or (1, *block) where all programs agree.
        """
        sizes = block or self.block
        rank = len(sizes)
        places = []
        for dimension, (first, size) in enumerate(zip(coordinates, sizes, strict=True)):
            place = first.astype(np.int64)[:, None] + np.arange(size)
            places.append(place.reshape(len(first), *(size if other == dimension else 1 for other in range(rank))))
        return self._at(places, rank)

    def rows(self, rows: Array, column: Array) -> Tile:
        """Rows `rows` (P, N) of a tensor of two dimensions, from `column` (P,) on: arrays of shape (P, N, width)."""
        places = [rows.astype(np.int64)[:, :, None], column.astype(np.int64)[:, None, None] + np.arange(self.block[-1])]
        return self._at(places, 2)

    def outside(self, arithmetic: Arithmetic) -> Any:
        """What a load finds outside the tensor."""
        padding = np.nan if self.padding == "nan" and is_float(self.element) else 0
        return arithmetic.from_bits(np.full(1, padding).astype(dtype_of(self.element)), self.element)[0]

    def _at(self, places: list[Array], rank: int) -> Tile:
        size = byte_size(self.element)
        address: Array = _aligned(self.base, rank)
        inside: Array | None = None
        for place, stride, extent in zip(places, self.strides, self.shape, strict=True):
            address = address + place * _aligned(stride * size, rank)
            here = (place >= 0) & (place < _aligned(extent, rank))
            if not here.all():
                inside = here if inside is None else inside & here
        return address, None if inside is None else np.broadcast_to(
            inside, np.broadcast_shapes(address.shape, inside.shape)
        )


def _aligned(value: Array, rank: int) -> Array:
    """A scalar of each program, ready to meet tensors of `rank` dimensions."""
    return value.reshape(-1, *(1,) * rank)


def host_descriptor(argument: DescriptorInput, allocation: Allocation) -> Descriptor:
    """The descriptor that the host makes of a tensor."""
    shape = tuple(np.array([size], np.int64) for size in argument.shape)
    strides = tuple(np.array([stride], np.int64) for stride in argument.strides)
    base = np.array([allocation.address], np.int64)
    return Descriptor(base, shape, strides, argument.block, argument.tensor.kind, argument.padding)


def expanded(arguments: Sequence[Any]) -> list[Any]:
    """Arguments as the IR's function has them: behind a descriptor stand its sizes and strides, in every Triton."""
    from tt2gl.simulate.api import DescriptorInput

    found: list[Any] = []
    for argument in arguments:
        found.append(argument)
        if isinstance(argument, DescriptorInput):
            found += [*argument.shape, *argument.strides]
    return found
