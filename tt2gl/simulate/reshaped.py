"""Views under shapes that strides cannot say: rows of a transposed tile put one after the other, as scales are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.accesses import Region
from tt2gl.simulate.findings import SimulationError
from tt2gl.simulate.shared import View
from tt2gl.simulate.values import Array


@dataclass(frozen=True, eq=False)
class ReshapedView(View):
    """The elements of `base`, row by row, in another shape: read and written as a whole."""

    base: View

    @classmethod
    def of(cls, base: View, shape: tuple[int, ...]) -> ReshapedView:
        """A view in another shape of as many elements."""
        return cls(base.buffer, base.offset, shape, (), base, outside=base.outside)

    @cached_property
    def region(self) -> Region:
        """The bytes it covers: those of its base."""
        return self.base.region

    @property
    def data(self) -> Array:
        """Not to be had: a window cannot have this shape."""
        self._refuse()

    def look(self, operation: Operation) -> Array:
        """The elements, as a copy."""
        found = self.base.look(operation)
        return found.reshape(len(found), *self.shape)

    def store(self, values: Array, where: Array | None = None) -> None:
        """Put elements there, those of `where` alone if given."""
        count = (max(len(values), 1 if where is None else len(where)), *self.shape)
        shaped = np.broadcast_to(values, count).reshape(-1, *self.base.shape)
        self.base.store(shaped, None if where is None else np.broadcast_to(where, count).reshape(shaped.shape))

    def mark_written(self, places: tuple[Array, ...] | None = None) -> None:
        """Note that all of it was written."""
        if places is not None:
            self._refuse()
        self.base.mark_written()

    def unwritten(self, places: tuple[Array, ...] | None = None) -> bool:
        """Whether any of its bytes were never written."""
        return self.base.unwritten() if places is None else self._refuse()

    def reshape(self, shape: tuple[int, ...]) -> View:
        """The same elements in a third shape."""
        return self.base.reshape(shape) or ReshapedView.of(self.base, shape)

    def index(self, slot: int) -> View:
        """Not to be had."""
        self._refuse()

    def slice(self, offsets: tuple[int, ...], shape: tuple[int, ...]) -> View:
        """Not to be had."""
        self._refuse()

    def transpose(self, order: tuple[int, ...]) -> View:
        """Not to be had."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        name = self.storage.name
        raise SimulationError(f"part of a view of {name} that was transposed and reshaped", self.storage.location)
