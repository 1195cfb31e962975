"""Global memory of which only what is touched is held: tensors of any size, whose elements repeat a few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tt2gl.ir.types import Type
from tt2gl.simulate.memory import Access, Allocation, Memory
from tt2gl.simulate.values import Array, byte_size
from tt2gl.simulate.windows import EvenRows

_BYTES = 1 << 12
"""What is held together."""


@dataclass(frozen=True)
class Touched:
    """What a run touched of a tensor: from which byte, up to which, and how many elements, each time counted."""

    low: int
    high: int
    elements: int


@dataclass(eq=False)
class Sheet(Allocation):
    """A tensor of `length` elements that repeat `pattern`; `elements` are those of its pages in `rows`."""

    pattern: Array = field(default_factory=lambda: np.zeros(1))
    length: int = 0
    rows: dict[int, int] = field(default_factory=dict)
    touched: Touched = Touched(1 << 62, -1, 0)

    @property
    def bytes(self) -> int:
        """From the first byte to the last."""
        return self.length * self.size

    def held(self, index: Array, size: int) -> Array:
        """Where elements of `size` bytes are in `elements`, by where they are in the tensor."""
        pages, each = np.unique(index.astype(np.int64) * size // _BYTES, return_inverse=True)
        new = [int(page) for page in pages if int(page) not in self.rows]
        if new:
            count = _BYTES // self.size
            places = np.array(new)[:, None] * count + np.arange(count)
            made = self.pattern[places % len(self.pattern)].reshape(-1)
            self.elements = np.concatenate([self.elements, made])
            self.written = np.concatenate([self.written, np.zeros(len(made), bool)])
            self.rows |= {page: len(self.rows) + place for place, page in enumerate(new)}
        rows: Array = np.array([self.rows[int(page)] for page in pages], np.int64)
        count = _BYTES // size
        held: Array = rows[each].reshape(index.shape) * count + index % count
        return held

    def stored(self) -> tuple[Array, Array]:
        """The places in the tensor that were written, in their order, and what is there."""
        count = _BYTES // self.size
        pages = np.array(sorted(self.rows, key=self.rows.__getitem__), np.int64)
        places = (pages[:, None] * count + np.arange(count)).reshape(-1)[self.written]
        order = np.argsort(places)
        return places[order], self.elements[self.written][order]


class SparseMemory(Memory):
    """Memory of such tensors."""

    allocations: list[Any]

    def add(self, name: str, kind: Type, values: Array, misalignment: int = 0, length: int = 0) -> Allocation:
        """Allocate a tensor of `length` elements (0: as many as given) that repeat those given."""
        made = super().add(name, kind, values, misalignment)
        none = made.elements[:0]
        sheet = Sheet(name, kind, none, made.address, made.size, pattern=made.elements, length=length or len(values))
        self.allocations[-1] = sheet
        return sheet

    def _even(self, address: Array, kind: Type) -> tuple[EvenRows | None, Allocation | None]:
        return None, None

    def _within(
        self, slot: int, access: Access, span: tuple[int, int]
    ) -> Iterator[tuple[Allocation, Array, Array | None]]:
        for sheet, index, inside in super()._within(slot, access, span):
            assert isinstance(sheet, Sheet)
            size, before = byte_size(access.kind), sheet.touched
            active = index if inside is None else index[inside]
            sheet.touched = Touched(
                min(before.low, int(active.min()) * size),
                max(before.high, (int(active.max()) + 1) * size),
                before.elements + active.size,
            )
            yield sheet, sheet.held(index, size), inside

    def checkpoint(self) -> None:
        """Remember memory as it is now, for `rollback`."""
        self._before = [
            (each.elements.copy(), each.written.copy(), dict(each.rows), each.loaded, each.touched)
            for each in self.allocations
        ]

    def rollback(self) -> None:
        """Undo all stores since the checkpoint."""
        for each, (elements, written, rows, loaded, touched) in zip(self.allocations, self._before, strict=True):
            each.elements, each.written, each.rows = elements.copy(), written.copy(), dict(rows)
            each.loaded, each.touched = loaded, touched
