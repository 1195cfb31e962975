"""Global memory: the tensors of a launch, far apart in one address space, every access checked.

An address is an int64. The bits above `SLOT_BITS` say which allocation it points into, so a pointer that leaves its
tensor never lands in another, and pointers stay plain integers that a kernel may cast and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tt2gl.ir.operations import Location
from tt2gl.ir.types import Type
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.findings import Finding, SimulationError
from tt2gl.simulate.values import Array, byte_size, is_float, narrowed
from tt2gl.simulate.windows import EvenRows, even_rows, one_run, windows

SLOT_BITS = 40
# No tensor starts at the bottom of its slot: a little below it is still its own slot, and out of bounds.
_LEAD = 1 << 30
# Elements that are made together; and saved, to be put back after programs part: few of many change a part of a tensor.
_PAGE = 1 << 16


@dataclass(eq=False)
class Allocation:
    """One tensor: `elements` is its storage from the first to the last, as the arithmetic holds type `kind`.

    `written` marks the elements that were stored to; `loaded` says whether any was read.
    """

    name: str
    kind: Type
    elements: Array
    address: int
    size: int
    written: Array = field(init=False)
    loaded: bool = False

    def __post_init__(self) -> None:
        self.written = np.zeros(len(self.elements), bool)

    @property
    def bytes(self) -> int:
        """From the first byte to the last."""
        return len(self.elements) * self.size


@dataclass(frozen=True, eq=False)
class Access:
    """What is accessed, a `kind` at each address where the mask is true, how, and by which operation."""

    address: Array
    mask: Array | None
    kind: Type
    where: Location
    how: str


Report = Callable[[Finding], None]
Filling = Literal["poison", "zero"]
"""What a load gives where its mask is false and nothing says what is there: Triton leaves it undefined."""


class Memory:
    """The allocations of one launch. Faults go to `report`; a load that is one yields poison, a store nothing."""

    def __init__(self, arithmetic: Arithmetic, report: Report, masked_off: Filling = "poison") -> None:
        self.arithmetic = arithmetic
        self.report = report
        self.masked_off = masked_off
        self.allocations: list[Allocation] = []
        self._saved: dict[tuple[int, int], tuple[Array, Array, bool]] | None = None

    def add(self, name: str, kind: Type, values: Array, misalignment: int = 0) -> Allocation:
        """Allocate a tensor: its elements in numpy's format of `kind`, first to last, copied.

        Aligned to 256 bytes and `misalignment` on top.
        """
        size = byte_size(kind)
        address = ((len(self.allocations) + 1) << SLOT_BITS) + _LEAD + misalignment
        held = np.empty(len(values), self.arithmetic.dtype(kind))
        for first in range(0, len(values), _PAGE):
            held[first : first + _PAGE] = self.arithmetic.from_bits(values[first : first + _PAGE], kind)
        self.allocations.append(Allocation(name, kind, held, address, size))
        return self.allocations[-1]

    # ------------------------------------------------------------------------------------------------- accesses

    def load(
        self, address: Array, mask: Array | None, kind: Type, where: Location, other: Array | None = None
    ) -> Array:
        """Read elements of type `kind`: an array of the address's shape, `other` or `masked_off` where masked out.

        What is out of bounds is poison.
        """
        poison = np.asarray(self.arithmetic.poison(kind), self.arithmetic.dtype(kind))
        unsaid = np.zeros_like(poison) if self.masked_off == "zero" else poison
        filling = unsaid if other is None else other
        mask = _needed(mask, address.shape)
        if mask is not None and not narrowed(mask).any():
            return self._unread(address, mask, kind, filling)
        run = None if mask is None else one_run(mask)
        if run is None:
            return self._load(address, mask, kind, where, filling)
        result = np.empty(address.shape, self.arithmetic.dtype(kind))
        whole = np.broadcast_to(filling, address.shape)
        for masked in (slice(0, run.start), slice(run.stop, None)):
            result[..., masked] = whole[..., masked]
        result[..., run] = self._load(address[..., run], None, kind, where, poison)
        return result

    def _load(self, address: Array, mask: Array | None, kind: Type, where: Location, filling: Array) -> Array:
        rows, allocation = self._even(address, kind)
        if rows is None or allocation is None:
            return self._gather(address, mask, kind, where, filling)
        index, fits = self._places(rows, allocation)
        if not fits.any():
            return self._gather(address, mask, kind, where, filling)
        allocation.loaded = True
        found = windows(allocation.elements, rows.length, rows.step // allocation.size)[index]
        if mask is not None:
            np.copyto(found, rows.turned(np.broadcast_to(filling, address.shape)), where=~rows.turned(mask))
        if not fits.all():
            stray = ~fits
            some = None if mask is None else rows.turned(mask)[stray]
            fill = rows.turned(np.broadcast_to(filling, address.shape))[stray]
            found[stray] = self._gather(rows.turned(address)[stray], some, kind, where, fill)
        return rows.turned(found)

    def _gather(self, address: Array, mask: Array | None, kind: Type, where: Location, filling: Array) -> Array:
        """Load element by element."""
        result: Array | None = None
        for allocation, index, inside in self._resolve(Access(address, mask, kind, where, "load")):
            allocation.loaded = True
            found = self._view(allocation, kind, where)[index]
            if inside is None:
                return found
            result = self._unread(address, mask, kind, filling) if result is None else result
            np.copyto(result, found, where=inside)
        return self._unread(address, mask, kind, filling) if result is None else result

    def _unread(self, address: Array, mask: Array | None, kind: Type, filling: Array) -> Array:
        result = np.full(address.shape, self.arithmetic.poison(kind), self.arithmetic.dtype(kind))
        if mask is not None:
            np.copyto(result, filling, where=~np.broadcast_to(mask, address.shape))
        return result

    def store(self, address: Array, value: Array, mask: Array | None, kind: Type, where: Location) -> None:
        """Write elements of type `kind`; of equal addresses the last in row-major order stays."""
        mask = _needed(mask, address.shape)
        value = np.broadcast_to(value, address.shape)
        run = None if mask is None else one_run(mask)
        if run is not None:
            address, value, mask = address[..., run], value[..., run], None
        rows, allocation = self._even(address, kind)
        if rows is None or allocation is None:
            self._scatter(address, value, mask, kind, where)
            return
        index, fits = self._places(rows, allocation)
        address, value, mask = rows.turned(address), rows.turned(value), None if mask is None else rows.turned(mask)
        if mask is not None:
            fits = fits & mask.all(axis=-1)
        if fits.any():
            step = rows.step // allocation.size
            everywhere = bool(fits.all())
            index, values = (index, value) if everywhere else (index[fits], value[fits])
            self._save(allocation, int(index.min()), int(index.max()) + rows.reach // allocation.size + 1)
            windows(allocation.elements, rows.length, step, writeable=True)[index] = values
            windows(allocation.written, rows.length, step, writeable=True)[index] = True
            if everywhere:
                return
        some = None if mask is None else mask[~fits]
        self._scatter(address[~fits], value[~fits], some, kind, where)

    def _scatter(self, address: Array, value: Array, mask: Array | None, kind: Type, where: Location) -> None:
        """Store element by element."""
        for allocation, index, inside in self._resolve(Access(address, mask, kind, where, "store")):
            view = self._view(allocation, kind, where)
            values = value
            if inside is not None:
                index, values = index[inside], value[inside]
            self._save_places(allocation, index, byte_size(kind))
            view[index] = values
            self._mark(allocation, index, byte_size(kind))

    def _even(self, address: Array, kind: Type) -> tuple[EvenRows | None, Allocation | None]:
        """Evenly spaced rows, and the tensor that most of them are in, if its elements are what is accessed."""
        size = byte_size(kind)
        rows = even_rows(address, size)
        if rows is None:
            return None, None
        slot = int(rows.starts.flat[0]) >> SLOT_BITS
        if not 0 < slot <= len(self.allocations):
            return None, None
        allocation = self.allocations[slot - 1]
        same = size == allocation.size and is_float(kind) == is_float(allocation.kind)
        return (rows, allocation) if same and allocation.elements.dtype == self.arithmetic.dtype(kind) else (None, None)

    @staticmethod
    def _places(rows: EvenRows, allocation: Allocation) -> tuple[Array, Array]:
        """Where each row begins in a tensor (0 where it does not lie in it whole), and which rows do."""
        offset = rows.starts - allocation.address
        fits = (offset >= 0) & (offset <= allocation.bytes - allocation.size - rows.reach)
        if allocation.size > 1:
            fits &= offset & (allocation.size - 1) == 0
        return np.where(fits, offset, 0) >> (allocation.size.bit_length() - 1), fits

    def update(
        self,
        address: Array,
        mask: Array | None,
        kind: Type,
        where: Location,
        change: Callable[[Array, Array, Array], None],
    ) -> None:
        """Read and write at once, for atomics: `change(elements, index, positions)` edits an allocation's elements.

        `index` are the places in `elements`, flat and in row-major order of `address`, `positions` the flat positions
        in `address` that they belong to; a place may occur several times.
        """
        for allocation, index, inside in self._resolve(Access(address, mask, kind, where, "atomic")):
            positions = np.arange(address.size) if inside is None else np.flatnonzero(inside)
            flat = index.reshape(-1)[positions]
            self._save_places(allocation, flat, byte_size(kind))
            allocation.loaded = True
            change(self._view(allocation, kind, where), flat, positions)
            self._mark(allocation, flat, byte_size(kind))

    def _resolve(self, access: Access) -> Iterator[tuple[Allocation, Array, Array | None]]:
        """For each allocation touched: the places in it and which positions of `address` are active there (None: all).

        Places of inactive positions are 0.
        """
        address, mask = access.address, _needed(access.mask, access.address.shape)
        active = address if mask is None else address[mask]
        if not active.size:
            return
        low, high = int(active.min()), int(active.max())
        if low >> SLOT_BITS == high >> SLOT_BITS:
            yield from self._within(low >> SLOT_BITS, replace(access, mask=mask), (low, high))
            return
        for slot in np.unique(active >> SLOT_BITS):
            there = address >> SLOT_BITS == slot
            there = there if mask is None else there & mask
            touched = address[there]
            span = int(touched.min()), int(touched.max())
            yield from self._within(int(slot), replace(access, mask=there), span)

    def _within(
        self, slot: int, access: Access, span: tuple[int, int]
    ) -> Iterator[tuple[Allocation, Array, Array | None]]:
        """The same for what is accessed in one slot, the first and the last of its addresses in `span`."""
        address, mask, where, size = access.address, access.mask, access.where, byte_size(access.kind)
        if not 0 < slot <= len(self.allocations):
            self._fault(where, "", f"{access.how} at an address that belongs to no tensor")
            return
        allocation = self.allocations[slot - 1]
        offset = address - allocation.address
        if span[0] < allocation.address or span[1] + size > allocation.address + allocation.bytes:
            inside = (offset >= 0) & (offset <= allocation.bytes - size)
            outside = offset[~inside if mask is None else mask & ~inside]
            worst = int(outside[np.argmax(np.abs(outside - allocation.bytes / 2))])
            count = f"{outside.size} elements, such as " if outside.size > 1 else ""
            message = f"{access.how} outside {allocation.name} ({count}byte {worst} of {allocation.bytes})"
            self._fault(where, allocation.name, message)
            mask = inside if mask is None else mask & inside
            if not mask.any():
                return
        if size > 1 and (offset & (size - 1) if mask is None else (offset & (size - 1))[mask]).any():
            message = f"{access.how} of {size} bytes at an address that is no multiple of {size}"
            self.report(Finding("misaligned", message, where, buffer=allocation.name))
            return
        index = offset >> (size.bit_length() - 1)
        yield allocation, index if mask is None else np.where(mask, index, 0), mask

    def _fault(self, where: Location, buffer: str, message: str) -> None:
        self.report(Finding("out-of-bounds", message, where, buffer=buffer))

    def _view(self, allocation: Allocation, kind: Type, where: Location) -> Array:
        """The elements as type `kind`."""
        wanted = self.arithmetic.dtype(kind)
        floats = is_float(kind), is_float(allocation.kind)
        if self.arithmetic.name == "field" and (
            floats[0] != floats[1] or (all(floats) and byte_size(kind) != allocation.size)
        ):
            message = f"field arithmetic cannot read {allocation.name} ({allocation.kind}) as {kind}"
            raise SimulationError(message, where)
        return allocation.elements if wanted == allocation.elements.dtype else allocation.elements.view(wanted)

    @staticmethod
    def _mark(allocation: Allocation, index: Array, size: int) -> None:
        if size == allocation.size:
            allocation.written[index] = True
        elif size > allocation.size:
            allocation.written.reshape(-1, size // allocation.size)[index] = True
        else:
            allocation.written[index // (allocation.size // size)] = True
            # What is left of such an element is as it was given: the outcome hangs on that as if it were read.
            allocation.loaded = True

    # -------------------------------------------------------------------------------------------- going back

    def checkpoint(self) -> None:
        """Remember memory as it is now, for `rollback`; copies are made only of what changes."""
        self._saved = {}

    def rollback(self) -> None:
        """Undo all stores since the checkpoint."""
        for (slot, page), (elements, written, loaded) in (self._saved or {}).items():
            allocation = self.allocations[slot - 1]
            part = slice(page * _PAGE, (page + 1) * _PAGE)
            allocation.elements[part] = elements
            allocation.written[part] = written
            allocation.loaded = loaded
        self._saved = {}

    def _save_places(self, allocation: Allocation, index: Array, size: int) -> None:
        """Save what is about to change at places of elements of `size` bytes."""
        if index.size:
            first, last = int(index.min()) * size, (int(index.max()) + 1) * size
            self._save(allocation, first // allocation.size, -(-last // allocation.size))

    def _save(self, allocation: Allocation, first: int, last: int) -> None:
        """Save the elements from `first` up to `last`, before they change: a page at a time, each once."""
        if self._saved is None:
            return
        slot = allocation.address >> SLOT_BITS
        for page in range(first // _PAGE, -(-last // _PAGE)):
            if (slot, page) not in self._saved:
                part = slice(page * _PAGE, (page + 1) * _PAGE)
                state = allocation.elements[part].copy(), allocation.written[part].copy(), allocation.loaded
                self._saved[slot, page] = state


def _needed(mask: Array | None, shape: tuple[int, ...]) -> Array | None:
    """A mask in full, or None where it masks nothing."""
    return None if mask is None or bool(narrowed(mask).all()) else np.broadcast_to(mask, shape)
