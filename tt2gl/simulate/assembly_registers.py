"""Registers of inline assembly: untyped bits, held as the typed lanes that they were last written as.

Every register is an array with an entry for each thread's share. What is read as it was written stays as it is, so
that floats survive in field arithmetic, which knows no bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate import integers
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.values import Array, byte_size

_FOUR_BITS = frozenset({"f4E2M1FN"})


def width(kind: Type) -> int:
    """Bits of one lane."""
    if isinstance(kind, IntegerType):
        return kind.width
    if isinstance(kind, FloatType) and kind.name in _FOUR_BITS:
        return 4
    return 8 * byte_size(kind)


@dataclass(frozen=True, eq=False)
class Register:
    """Lanes of one type, the lowest bits first."""

    lanes: tuple[Array, ...]
    kind: Type

    @property
    def width(self) -> int:
        """Bits of all lanes."""
        return width(self.kind) * len(self.lanes)


def as_integer(arithmetic: Arithmetic, register: Register, bits: int) -> Array:
    """All lanes as one signed integer of a width; zeros above what the register has."""
    kind = IntegerType(bits)
    if register.kind == kind and len(register.lanes) == 1:
        return register.lanes[0]
    lane_width = width(register.kind)
    total: Array | None = None
    for index, lane in enumerate(register.lanes):
        part = lane
        if not isinstance(register.kind, IntegerType):
            part = arithmetic.bitcast(lane, register.kind, IntegerType(lane_width))
        raw = integers.unsigned(part).astype(np.uint64) << np.uint64(index * lane_width)
        total = raw if total is None else total | raw
    assert total is not None
    if bits == 1:
        return np.asarray(total != 0)
    return total.astype(f"u{bits // 8}").view(f"i{bits // 8}")


def read(arithmetic: Arithmetic, register: Register, kind: Type, count: int = 1) -> tuple[Array, ...]:
    """A register as `count` lanes of a type."""
    if register.kind == kind and len(register.lanes) == count:
        return register.lanes
    each = width(kind)
    if not isinstance(register.kind, IntegerType) and register.width == each * count and width(register.kind) == each:
        return tuple(arithmetic.bitcast(lane, register.kind, kind) for lane in register.lanes)
    whole = integers.unsigned(as_integer(arithmetic, register, max(register.width, each * count, 8)))
    lanes = []
    for index in range(count):
        part = whole >> whole.dtype.type(index * each)
        bits = part.astype(f"u{each // 8}").view(f"i{each // 8}") if each > 1 else (part & 1).astype(np.bool_)
        lanes.append(bits if isinstance(kind, IntegerType) else arithmetic.bitcast(bits, IntegerType(each), kind))
    return tuple(lanes)
