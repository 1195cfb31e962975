"""Where an element lies, of a layout's bases: Triton's linear layouts turned round.

The bits of registers, lanes and warps, or of an offset, each add coordinates (with exclusive or). Which bits an element
has is a linear equation over the two numbers there are; it is solved once for each bit of a coordinate.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Bases = Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Places:
    """`where` says which bits hold an element; bits that add nothing, or nothing of their own, make copies."""

    copies: int
    _columns: tuple[tuple[int, ...], ...]
    _starts: tuple[tuple[str, int, int], ...]

    def where(self, coordinates: Sequence[int]) -> dict[str, int]:
        """The register, lane, warp and so on of an element; of several the first."""
        found = 0
        for column, coordinate in zip(self._columns, coordinates, strict=True):
            found ^= _sum(column, coordinate)
        return {name: found >> start & (1 << count) - 1 for name, start, count in self._starts}

    def granule(self, name: str, dimension: int) -> int:
        """How many neighbours along a dimension always have the same `name`."""
        for bit, bits in enumerate(self._columns[dimension]):
            for each, start, count in self._starts:
                if each == name and bits >> start & (1 << count) - 1:
                    return 1 << bit
        return 1 << len(self._columns[dimension])


def places_of(bases: Bases, shape: Sequence[int]) -> Places | None:
    """The places of a tensor of this shape; None where the bases do not reach all its elements."""
    starts: list[tuple[str, int, int]] = []
    rows: dict[int, tuple[int, int]] = {}  # leading bit of a coordinate -> its vector, and the bits that make it
    offsets, total = [], 0
    for extent in shape:
        offsets.append(total)
        total += max(extent - 1, 0).bit_length()
    start = spare = 0
    for name, each in bases.items():
        starts.append((name, start, len(each)))
        for basis in each:
            vector, made = sum(part << offset for part, offset in zip(basis, offsets, strict=True)), 1 << start
            start += 1
            while vector and vector.bit_length() in rows:
                other, bits = rows[vector.bit_length()]
                vector, made = vector ^ other, made ^ bits
            if vector:
                rows[vector.bit_length()] = (vector, made)
            else:
                spare += 1
    if len(rows) < total:
        return None
    columns = tuple(
        tuple(_solved(1 << (offset + bit), rows) for bit in range(max(extent - 1, 0).bit_length()))
        for offset, extent in zip(offsets, shape, strict=True)
    )
    return Places(1 << spare, columns, tuple(starts))


@functools.lru_cache(maxsize=1 << 12)
def _sum(column: tuple[int, ...], coordinate: int) -> int:
    """What a coordinate's bits add; remembered, as every row of a picture has the same columns."""
    found = 0
    for bit, bits in enumerate(column):
        if coordinate >> bit & 1:
            found ^= bits
    return found


def _solved(vector: int, rows: Mapping[int, tuple[int, int]]) -> int:
    made = 0
    while vector:
        other, bits = rows[vector.bit_length()]
        vector, made = vector ^ other, made ^ bits
    return made
