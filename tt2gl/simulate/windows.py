"""Accesses whose rows are evenly spaced in memory: read and written as slices, which is far quicker than by place.

Most addresses of a kernel are so along one axis. What is found here only saves time: whoever asks does without where
nothing is found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tt2gl.simulate.values import Array, narrowed

# Shorter rows cost more than their elements.
_SHORTEST = 8
# As many addresses as are quick to go over twice.
_CACHED = 1 << 15


@dataclass(frozen=True, eq=False)
class EvenRows:
    """Addresses that go up by `step` bytes along `axis` (-1 or -2), `length` of them; `starts` has all other axes."""

    axis: int
    starts: Array
    step: int
    length: int

    @property
    def reach(self) -> int:
        """From the first byte of a row's first element to that of its last."""
        return self.step * (self.length - 1)

    def turned(self, values: Array) -> Array:
        """Values of the addresses' shape with the rows' axis last, or back."""
        return values if self.axis == -1 else values.swapaxes(-1, -2)


def even_rows(address: Array, size: int) -> EvenRows | None:
    """The rows of elements of `size` bytes, if addresses are evenly spaced along one of the last two axes."""
    for axis in (-1, -2):
        if address.ndim + axis < 1 or address.shape[axis] < _SHORTEST:
            continue
        turned = address if axis == -1 else address.swapaxes(-1, -2)
        corner = turned[(0,) * (address.ndim - 1)]
        step = int(corner[1] - corner[0])
        if step < size or step % size or int(corner[-1] - corner[0]) != step * (len(corner) - 1):
            continue
        if _steps_by(narrowed(turned), step):
            return EvenRows(axis, turned[..., 0], step, len(corner))
    return None


def _steps_by(address: Array, step: int) -> bool:
    """Whether neighbours along the last axis are `step` apart; a few programs at a time, which stay in the cache."""
    at_once = max(1, _CACHED * len(address) // address.size)
    parts = (address[first : first + at_once] for first in range(0, len(address), at_once))
    return all(bool((part[..., 1:] - part[..., :-1] == step).all()) for part in parts)


def windows(elements: Array, length: int, step: int, *, writeable: bool = False) -> Array:
    """All runs of `length` elements, `step` apart, by their first element: views, and no row where none fits."""
    count = max(0, len(elements) - step * (length - 1))
    strides = (elements.strides[0], step * elements.strides[0])
    return strided(elements, (count, length), strides, writeable=writeable)


def strided(elements: Array, shape: tuple[int, ...], strides: tuple[int, ...], *, writeable: bool = True) -> Array:
    """A view of an array by shape and strides in bytes; numpy's own function does not know the formats of ml_dtypes."""
    bits = elements.view(f"u{elements.itemsize}")
    return np.lib.stride_tricks.as_strided(bits, shape, strides, writeable=writeable).view(elements.dtype)


def one_run(mask: Array) -> slice | None:
    """The stretch along the last axis that a mask leaves, where it is one and the same everywhere; else None."""
    few = narrowed(mask)
    if few.shape[-1] != mask.shape[-1]:
        return None
    rows = few.reshape(-1, few.shape[-1])
    if len(rows) > 1 and not (rows[-1] == rows[0]).all():
        return None
    places = np.flatnonzero(rows[0])
    if not len(places) or len(places) != places[-1] + 1 - places[0]:
        return None
    if len(rows) > 1 and not (rows == rows[0]).all():
        return None
    return slice(int(places[0]), int(places[-1]) + 1)
