"""Who touched which bytes of a shared allocation, and whether something orders the accesses that conflict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from tt2gl.ir.operations import Location, Operation
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.findings import Finding, Kind
from tt2gl.simulate.memory import Report
from tt2gl.simulate.values import Array

# Ordinary loads, stores and cp.async are generic; TMA and the tensor cores' own reads of shared memory are not.
Proxy = Literal["generic", "async"]


@dataclass(frozen=True)
class Region:
    """Bytes of an allocation: elements of `size` bytes at `offset`, laid out by `shape` and `strides` (in bytes)."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @cached_property
    def end(self) -> int:
        """Behind the last byte."""
        steps = zip(self.shape, self.strides, strict=True)
        return self.offset + sum((extent - 1) * stride for extent, stride in steps) + self.size

    @cached_property
    def solid(self) -> bool:
        """Whether there are no holes between the first byte and the last."""
        return self.end - self.offset == int(np.prod(self.shape, dtype=np.int64)) * self.size

    @cached_property
    def starts(self) -> Array:
        """Where its elements start, sorted."""
        places = np.array([self.offset], np.int64)
        for extent, stride in zip(self.shape, self.strides, strict=True):
            places = (places[:, None] + np.arange(extent, dtype=np.int64) * stride).reshape(-1)
        return np.sort(places)

    def overlaps(self, other: Region) -> bool:
        """Whether the two share a byte."""
        if self.end <= other.offset or other.end <= self.offset:
            return False
        if self.solid and other.solid:
            return True
        touched = np.zeros(max(self.end, other.end), bool)
        for byte in range(self.size):
            touched[self.starts + byte] = True
        return any(bool(touched[other.starts + byte].any()) for byte in range(other.size))

    def covers(self, other: Region) -> bool:
        """Whether the other lies within; where that is hard to say, no."""
        return self == other or (self.solid and self.offset <= other.offset and other.end <= self.end)


@dataclass(frozen=True, eq=False)
class Access:
    """One access: on which lane and epoch it happens, and the operation that makes it.

    `number` counts the accesses of an allocation in the order in which they were issued.
    """

    lane: int
    epoch: int
    write: bool
    proxy: Proxy
    operation: Operation
    number: int = 0

    @property
    def text(self) -> str:
        """Such as "local_load reads"."""
        return f"{self.operation.name.split('.', 1)[-1]} {'writes' if self.write else 'reads'}"


@dataclass(eq=False)
class _Entry:
    region: Region
    writes: dict[int, Access] = field(default_factory=dict)
    reads: dict[int, Access] = field(default_factory=dict)


class History:
    """The accesses of one allocation that later ones may still conflict with."""

    def __init__(self, name: str, report: Report) -> None:
        self.name = name
        self._report = report
        self._entries: dict[Region, _Entry] = {}
        self._overlaps: dict[tuple[Region, Region], bool] = {}
        self._told: set[Kind] = set()
        self._count = 0

    def add(self, access: Access, region: Region, clock: Clock, fault: Kind = "race") -> None:
        """Check an access made by who knows `clock` against those before it, and remember it.

        Of each kind the first fault of an allocation is reported: what follows are mostly its consequences.
        """
        self._count += 1
        access = replace(access, number=self._count)
        touched = [entry for entry in self._entries.values() if self._overlap(region, entry.region)]
        self._check_fence(access, region, touched, clock)
        for entry in touched:
            ordered = self._ordered(access, entry.writes, clock, fault)
            if access.write:
                ordered = self._ordered(access, entry.reads, clock, fault) and ordered
                if ordered and region.covers(entry.region):
                    del self._entries[entry.region]
        entry = self._entries.setdefault(region, _Entry(region))
        (entry.writes if access.write else entry.reads)[access.lane] = access

    @property
    def remembered(self) -> int:
        """How many accesses are kept."""
        return sum(len(entry.reads) + len(entry.writes) for entry in self._entries.values())

    def tell(self, kind: Kind, message: str, location: Location, other: Location | None = None) -> None:
        """Report a fault of this allocation, unless one of that kind was."""
        if kind not in self._told:
            self._told.add(kind)
            self._report(Finding(kind, message, location, other, self.name))

    def _overlap(self, region: Region, other: Region) -> bool:
        if region is other or region == other:
            return True
        known = self._overlaps.get((region, other))
        if known is None:
            known = self._overlaps[region, other] = region.overlaps(other)
        return known

    def _ordered(self, access: Access, before: dict[int, Access], clock: Clock, fault: Kind) -> bool:
        """Whether all of `before` happened before."""
        ordered = True
        for earlier in before.values():
            if not clock.knows(earlier.lane, earlier.epoch):
                self._conflict(access, earlier, fault)
                ordered = False
        return ordered

    def _check_fence(self, access: Access, region: Region, touched: list[_Entry], clock: Clock) -> None:
        """What the async proxy reads must be fenced off from the generic writes that put it there.

        Only reads: that a later asynchronous write may pass a generic access by is not told, as mbarriers in between
        are held to be enough (CUTLASS's pipelines have no fence there either).
        """
        if access.write or access.proxy == "generic":
            return
        # Older writes than one that covers the whole region are gone.
        covering = [entry.writes.values() for entry in touched if entry.region.covers(region)]
        latest = max((write.number for writes in covering for write in writes), default=0)
        for entry in touched:
            for earlier in entry.writes.values():
                if (
                    earlier.proxy == "generic"
                    and earlier.number >= latest
                    and clock.knows(earlier.lane, earlier.epoch)
                    and not clock.fenced_at(earlier.lane, earlier.epoch)
                ):
                    message = f"{access.text} {self.name}, which {earlier.text}, with no fence_async_shared in between"
                    self.tell("missing-fence", message, access.operation.location, earlier.operation.location)

    def _conflict(self, access: Access, earlier: Access, fault: Kind) -> None:
        here, there = access.operation.location, earlier.operation.location
        if fault == "lifetime":
            message = f"{self.name} is given back while {earlier.text} it"
        else:
            message = f"{access.text} {self.name} and {earlier.text} it at line {there.line}: nothing orders the two"
        self.tell(fault, message, here, there)
