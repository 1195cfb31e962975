"""Shared and tensor memory: allocations, and views of them.

An allocation is bytes of which the simulator knows who touched them; what they hold is kept as arrays of elements.
Views are strided windows, as numpy's are: index, subslice, transposition and reshape cost nothing. How a layout places
elements in the bytes is not followed, as nothing depends on it until the same bytes are read under another layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tt2gl.ir.operations import Location, Operation
from tt2gl.ir.types import Type
from tt2gl.simulate.accesses import History, Region
from tt2gl.simulate.findings import Finding, Unsupported
from tt2gl.simulate.memory import Report
from tt2gl.simulate.values import Array
from tt2gl.simulate.windows import strided


class Storage:
    """The bytes of one allocation: `written` marks those that anything was ever written to."""

    def __init__(self, name: str, size: int, location: Location, report: Report) -> None:
        self.name = name
        self.location = location
        self.size = size
        self.written = np.zeros(size, bool)
        self.history = History(name, report)
        self.alive = True
        self.buffers: list[Buffer] = []


class Buffer:
    """Elements of type `kind` in a storage, from byte `origin` on: `elements` has shape (P, n).

    A storage has several where it is reinterpreted and the layouts do not say which element becomes which: each marks
    as `foreign` the bytes that were last written through another.
    """

    def __init__(
        self,
        storage: Storage,
        elements: Array,
        kind: Type,
        size: int,
        origin: int = 0,
        like: Buffer | None = None,
    ) -> None:
        """`like` is the buffer whose elements these are too."""
        self.storage = storage
        self.elements = elements
        self.kind = kind
        self.size = size
        self.origin = origin
        self.layout: Any = None
        self.foreign: Array | None = None
        self._windows: dict[tuple[Any, ...], Array] = {}
        self._root: Buffer = like._root if like is not None else self
        storage.buffers.append(self)
        if like is not None:
            self.foreign = like.foreign
        elif len(storage.buffers) > 1:
            for buffer in storage.buffers:
                if buffer._root.foreign is None:
                    buffer._root.foreign = np.zeros(storage.size, bool)
                buffer.foreign = buffer._root.foreign
            self.foreign = storage.written.copy()

    def shares(self, other: Buffer, count: int) -> bool:
        """Whether this is `count` elements, and holds them where `other` does."""
        return self._root is other._root and self.elements.shape[1] == count

    def window(self, array: str, view: View) -> Array:
        """A view of the elements (P, *shape), or of the bytes' marks `written` or `foreign` (*shape, size)."""
        key = (array, view.offset, view.shape, view.strides)
        found = self._windows.get(key)
        if found is None:
            found = self._windows[key] = self._cut(array, view)
        return found

    def _cut(self, array: str, view: View) -> Array:
        if array == "elements":
            step = self.elements.strides[1]
            strides = (self.elements.strides[0], *(stride * step for stride in view.strides))
            return strided(self.elements[:, view.offset :], (len(self.elements), *view.shape), strides)
        marks = self.storage.written if array == "written" else self.foreign
        assert marks is not None
        strides = (*(stride * self.size for stride in view.strides), 1)
        return as_strided(marks[self.origin + view.offset * self.size :], (*view.shape, self.size), strides)


@dataclass(frozen=True, eq=False)
class View:
    """A memdesc: elements of a buffer, the first at `offset`, by `shape` and `strides`, all in elements.

    All programs of a set see the same places. Equal views give equal `region`s: the bytes they cover. A slot that there
    is not may be named as long as nobody touches it, as behind a predicate: `outside` is what to say to who does.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    outside: Finding | None = field(default=None, kw_only=True)

    @property
    def storage(self) -> Storage:
        """The allocation."""
        return self.buffer.storage

    @property
    def kind(self) -> Type:
        """The elements' type."""
        return self.buffer.kind

    @cached_property
    def region(self) -> Region:
        """The bytes it covers."""
        size, buffer = self.buffer.size, self.buffer
        strides = tuple(stride * size for stride in self.strides)
        return Region(buffer.origin + self.offset * size, self.shape, strides, size)

    @property
    def bytes(self) -> int:
        """How many bytes its elements take."""
        return math.prod(self.shape) * self.buffer.size

    @property
    def data(self) -> Array:
        """Its elements, of shape (P, *shape), as a window on the buffer: what is written to it is stored."""
        return self.buffer.window("elements", self)

    # ----------------------------------------------------------------------------------- what is derived from it

    def index(self, slot: int) -> View:
        """One place along the first dimension, which goes."""
        return replace(
            self, offset=self.offset + slot * self.strides[0], shape=self.shape[1:], strides=self.strides[1:]
        )

    def slice(self, offsets: tuple[int, ...], shape: tuple[int, ...]) -> View:
        """A part, from `offsets` on."""
        start = sum(offset * stride for offset, stride in zip(offsets, self.strides, strict=True))
        return replace(self, offset=self.offset + start, shape=shape)

    def transpose(self, order: tuple[int, ...]) -> View:
        """The dimensions in another order."""
        shape = tuple(self.shape[axis] for axis in order)
        return replace(self, shape=shape, strides=tuple(self.strides[axis] for axis in order))

    def reshape(self, shape: tuple[int, ...]) -> View | None:
        """The same elements, row by row, in another shape; None where strides cannot say that."""
        window = as_strided(np.zeros(1, np.int8), self.shape, self.strides)
        try:
            window.shape = shape
        except AttributeError:
            return None
        return replace(self, shape=shape, strides=tuple(window.strides))

    # ------------------------------------------------------------------------------------------------ its content

    def look(self, operation: Operation) -> Array:
        """The elements, as a window not to be kept. Raises Unsupported where they were written under another layout."""
        if self.buffer.foreign is not None and self.buffer.window("foreign", self).any():
            raise Unsupported(operation, f"{self.storage.name} was written in another layout than it is read in")
        return self.data

    def load(self, operation: Operation) -> Array:
        """A copy of the elements. Raises Unsupported as `look` does."""
        return self.look(operation).copy()

    def store(self, values: Array, where: Array | None = None) -> None:
        """Put elements there, those of `where` alone if given."""
        if where is None:
            self.data[...] = values
        else:
            np.copyto(self.data, values, where=where)

    def mark_written(self, places: tuple[Array, ...] | None = None) -> None:
        """Note that its bytes hold something, put there through this buffer; those at `places` alone if given."""
        self.buffer.window("written", self)[... if places is None else places] = True
        if self.buffer.foreign is not None:
            strides = (*self.region.strides, 1)
            for marks in {id(buffer.foreign): buffer.foreign for buffer in self.storage.buffers}.values():
                assert marks is not None
                window = as_strided(marks[self.region.offset :], (*self.shape, self.buffer.size), strides)
                window[... if places is None else places] = marks is not self.buffer.foreign

    def unwritten(self, places: tuple[Array, ...] | None = None) -> bool:
        """Whether any of its bytes, or of those at `places`, were never written."""
        return not self.buffer.window("written", self)[... if places is None else places].all()
