"""Floating-point formats: to float32 and back, whole arrays at a time, rounded as a conversion instruction rounds.

Every format but f64 widens to float32 without loss. Going back, a value is first cut to the upper half of a float32
with what falls off kept as a sticky bit: eight bits of significand say all that a format of at most four bits asks,
so that a table of 65,536 entries rounds exactly. float16 and bfloat16 have ways of their own.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from tt2gl.simulate.arithmetic import Rounding
from tt2gl.simulate.values import Array

FLOAT16: np.dtype[Any] = np.dtype(np.float16)
BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
FLOAT32: np.dtype[Any] = np.dtype(np.float32)
FLOAT64: np.dtype[Any] = np.dtype(np.float64)

# Formats of a byte that have neither infinities nor minus zero: what would be minus zero is their NaN.
UNSIGNED_ZERO: frozenset[np.dtype[Any]] = frozenset(
    np.dtype(kind) for kind in (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e4m3b11fnuz)
)


def integer_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integer as wide as a format."""
    return np.dtype(f"u{dtype.itemsize}")


def widen(values: Array) -> Array:
    """Any format as float32, and float64 as it is."""
    if values.dtype in (FLOAT32, FLOAT64):
        return values
    if values.dtype == BFLOAT16:
        return np.left_shift(values.view(np.uint16), 16, dtype=np.uint32).view(np.float32)
    return np.take(_widened(values.dtype), values.view(integer_of(values.dtype)))


@functools.cache
def _widened(dtype: np.dtype[Any]) -> Array:
    """float32 of every bit pattern of a format of one or two bytes."""
    patterns = np.arange(1 << 8 * dtype.itemsize).astype(integer_of(dtype))
    return patterns.view(dtype).astype(np.float32)


def narrow(values: Array, dtype: np.dtype[Any], rounding: Rounding = "rtne", *, saturate: bool = False) -> Array:
    """Round float32 or float64 to a format; a NaN stays one.

    To nearest even, what overflows becomes an infinity, or NaN where there is none; towards zero, or with `saturate`,
    it becomes the largest number.
    """
    if dtype == values.dtype:
        return values
    if dtype == FLOAT64:
        return values.astype(np.float64)
    if dtype in (FLOAT16, FLOAT32):
        return _by_numpy(values, dtype, rounding, saturate)
    if values.dtype == FLOAT64:
        values = to_odd(values)
    if dtype == BFLOAT16:
        return _to_bfloat16(values, rounding, saturate)
    return np.take(_narrowed(dtype, rounding, saturate), _upper_half(values)).view(dtype)


def _to_bfloat16(values: Array, rounding: Rounding, saturate: bool) -> Array:
    bits = values.view(np.uint32)
    if rounding == "rtne":
        halves = (bits + (np.uint32(0x7FFF) + (bits >> 16 & np.uint32(1)))) >> 16
    else:
        halves = bits >> 16
    result = halves.astype(np.uint16)
    if rounding == "rtz" or saturate:
        over = (result & 0x7FFF == 0x7F80) & (np.isfinite(values) | saturate)
        result = np.where(over, result - np.uint16(1), result)
    nan = np.isnan(values)
    if nan.any():
        result = np.where(nan, np.uint16(0x7FC0), result)
    return result.astype(np.uint16, copy=False).view(BFLOAT16)


def _by_numpy(values: Array, dtype: np.dtype[Any], rounding: Rounding, saturate: bool) -> Array:
    """To float16 or float32, which numpy rounds to nearest even; then one step back where that went too far."""
    result = values.astype(dtype)
    if rounding == "rtne" and not saturate:
        return result
    bits = result.view(integer_of(dtype))
    away = np.isinf(result) if saturate else np.abs(result.astype(np.float64)) > np.abs(values)
    return np.where(away, bits - bits.dtype.type(1), bits).view(dtype)


def _upper_half(values: Array) -> Array:
    """The upper 16 bits of float32, the lowest set where anything below was: rounded to odd."""
    bits = values.view(np.uint32)
    halves = bits >> 16
    halves |= (bits & np.uint32(0xFFFF)) != 0
    return halves


def to_odd(values: Array) -> Array:
    """float64 to float32 rounded to odd: rounding once more, to a format of 22 bits or fewer, is then exact."""
    rounded = values.astype(np.float32)
    back = rounded.astype(np.float64)
    bits = rounded.view(np.uint32)
    inexact = (back != values) & ~np.isnan(values) & (bits & 1 == 0)
    if not inexact.any():
        return rounded
    # The odd neighbour on the value's side; below infinity that is the largest number.
    outwards = np.abs(back) < np.abs(values)
    neighbour = np.where(outwards, bits + np.uint32(1), bits - np.uint32(1))
    return np.where(inexact, neighbour, bits).view(np.float32)


def decoded(dtype: np.dtype[Any]) -> Array:
    """float64 of every bit pattern of a format of a byte."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)


@functools.cache
def _narrowed(dtype: np.dtype[Any], rounding: Rounding, saturate: bool) -> Array:
    """The byte for every upper half of a float32, as `_upper_half` makes them."""
    numbers = decoded(dtype)
    unsigned_zero = dtype in UNSIGNED_ZERO
    codes = np.flatnonzero(np.isfinite(numbers[:128]))
    ladder = numbers[codes]
    halves = np.arange(1 << 15, dtype=np.uint32)
    magnitudes = (halves << 16).view(np.float32).astype(np.float64)
    position = np.clip(np.searchsorted(ladder, magnitudes, side="right") - 1, 0, None)
    result = codes[position]
    if rounding == "rtne":
        # One step beyond the ladder stands for the first number that is too large.
        extended = np.append(ladder, 2 * ladder[-1] - ladder[-2])
        below, above = extended[position], extended[position + 1]
        middle = (below + above) / 2
        up = (magnitudes > middle) | ((magnitudes == middle) & (codes[position] & 1 == 1))
        result = result + (up & (magnitudes != below))
    nan, infinite = np.isnan(magnitudes), np.isinf(magnitudes)
    over = infinite | (result > codes[-1])
    nan_code = 0x80 if unsigned_zero else int(np.flatnonzero(np.isnan(numbers))[0])
    infinities = np.flatnonzero(np.isposinf(numbers))
    beyond = int(infinities[0]) if len(infinities) else nan_code
    result = np.where(over, codes[-1] if saturate or rounding == "rtz" else beyond, result)
    if unsigned_zero or (rounding == "rtz" and not saturate):
        # AMD's conversions to these make NaN of infinities even where they saturate.
        result = np.where(infinite, beyond, result)
    result = np.where(nan, nan_code, result)
    negative = result | 0x80
    if unsigned_zero:
        negative = np.where(result == 0, 0, negative)
    return np.concatenate([result, negative]).astype(np.uint8)
