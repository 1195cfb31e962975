"""Descriptors of AMD's tensor data mover (gfx1250), which are moved instead of told where to read.

A tile is at the descriptor's own address: to read elsewhere a kernel moves it, and its sizes shrink along or are set
anew. Up to Triton 3.7 a copy takes coordinates, and moves the descriptor itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tt2gl.simulate.descriptors import Descriptor, Tile
from tt2gl.simulate.values import Array, Rows, byte_size, take_rows


@dataclass(frozen=True, eq=False)
class MovedDescriptor(Descriptor):
    """A descriptor on its way over a tensor; `active` (P,) says for which programs copies do anything (None: all)."""

    active: Array | None = None

    def take(self, rows: Rows) -> MovedDescriptor:
        """That of some of the programs."""
        active = None if self.active is None else take_rows(self.active, rows)
        return _of(super().take(rows), active)

    def here(self) -> Tile:
        """The tile that the descriptor is at."""
        origin = np.zeros(1, np.int64)
        return self.tile([origin] * len(self.block))

    def rows_here(self, rows: Array) -> Tile:
        """Rows (P, N) of the tensor, from the column that the descriptor is at."""
        return self.rows(rows, np.zeros(1, np.int64))


def _of(descriptor: Descriptor, active: Array | None) -> MovedDescriptor:
    return MovedDescriptor(
        descriptor.base, descriptor.shape, descriptor.strides, descriptor.block, descriptor.element, "zero", active
    )


def moved(descriptor: Descriptor, offsets: Sequence[Array], *, clamp: bool) -> MovedDescriptor:
    """The descriptor `offsets` elements further in each dimension; with `clamp` its sizes shrink by as much."""
    size = byte_size(descriptor.element)
    base, shape = descriptor.base, descriptor.shape
    steps = [offset.astype(np.int64) for offset in offsets]
    for step, stride in zip(steps, descriptor.strides, strict=True):
        base = base + step * stride * size
    if clamp:
        shape = tuple(np.maximum(extent - step, 0) for extent, step in zip(shape, steps, strict=True))
    before = descriptor.active if isinstance(descriptor, MovedDescriptor) else None
    at = Descriptor(base, shape, descriptor.strides, descriptor.block, descriptor.element, descriptor.padding)
    return _of(at, before)


def bounded(descriptor: Descriptor, sizes: Sequence[Array]) -> MovedDescriptor:
    """The descriptor with other sizes, counted from where it is."""
    before = descriptor.active if isinstance(descriptor, MovedDescriptor) else None
    shape = tuple(size.astype(np.int64) for size in sizes)
    at = Descriptor(
        descriptor.base, shape, descriptor.strides, descriptor.block, descriptor.element, descriptor.padding
    )
    return _of(at, before)


def switched(descriptor: Descriptor, active: Array) -> MovedDescriptor:
    """The descriptor, on for the programs where `active` is not zero."""
    return _of(descriptor, active != 0)
