"""Integer arithmetic on arrays of signed numpy integers and booleans, as the hardware does it.

Everything wraps; i1 counts modulo 2. What LLVM leaves undefined has a fixed answer:

- a shift by the width or more gives what the bits shifted in give, 0 or the sign, as PTX clamps the amount;
- a quotient by zero has all bits set, and the remainder is the dividend, as on RISC-V;
- the least number divided by -1 is itself, with remainder 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tt2gl.simulate.values import Array


def unsigned(a: Array) -> Array:
    """The same bits as unsigned numbers; booleans as 0 and 1."""
    return a.view(np.uint8) if a.dtype == np.bool_ else a.view(f"u{a.dtype.itemsize}")


def like(result: Array, a: Array) -> Array:
    """Unsigned numbers as the signed numbers or booleans that `a` has."""
    return (result & 1).astype(np.bool_) if a.dtype == np.bool_ else result.view(a.dtype)


def add(a: Array, b: Array) -> Array:
    """The sum."""
    return a ^ b if a.dtype == np.bool_ else a + b


def subtract(a: Array, b: Array) -> Array:
    """The difference."""
    return a ^ b if a.dtype == np.bool_ else a - b


def multiply(a: Array, b: Array) -> Array:
    """The product's lower half."""
    return a & b if a.dtype == np.bool_ else a * b


def floor_divide(a: Array, b: Array) -> Array:
    """The signed quotient, towards minus infinity."""
    if a.dtype == np.bool_:
        return _divided_by_zero(a & b, b)
    return _divided_by_zero(np.floor_divide(a, _divisor(b)), b)


def divide(a: Array, b: Array) -> Array:
    """The signed quotient, towards zero."""
    if a.dtype == np.bool_:
        return _divided_by_zero(a & b, b)
    divisor = _divisor(b)
    quotient = np.floor_divide(a, divisor)
    if not (_negative(a) or _negative(b)):
        return _divided_by_zero(quotient, b)
    inexact = quotient * divisor != a
    return _divided_by_zero(quotient + (inexact & ((a < 0) != (divisor < 0))), b)


def ceil_divide(a: Array, b: Array) -> Array:
    """The signed quotient, towards plus infinity."""
    if a.dtype == np.bool_:
        return _divided_by_zero(a & b, b)
    divisor = _divisor(b)
    quotient = np.floor_divide(a, divisor)
    return _divided_by_zero(quotient + (quotient * divisor != a), b)


def divide_unsigned(a: Array, b: Array) -> Array:
    """The unsigned quotient."""
    if not (_negative(a) or _negative(b)) and a.dtype != np.bool_:
        return floor_divide(a, b)
    return _divided_by_zero(like(unsigned(a) // unsigned(_divisor(b)), a), b)


def ceil_divide_unsigned(a: Array, b: Array) -> Array:
    """The unsigned quotient, rounded up."""
    x, y = unsigned(a), unsigned(_divisor(b))
    quotient = x // y
    return _divided_by_zero(like(quotient + (quotient * y != x), a), b)


def remainder(a: Array, b: Array) -> Array:
    """Of the division towards zero: it has the dividend's sign."""
    return subtract(a, multiply(divide(a, b), b))


def remainder_unsigned(a: Array, b: Array) -> Array:
    """Of the unsigned division."""
    return subtract(a, multiply(divide_unsigned(a, b), b))


def _divisor(b: Array) -> Array:
    """Without zeros; a scalar where there is one, for which numpy divides by multiplying."""
    safe = np.where(b == 0, b.dtype.type(1), b) if not b.all() else b
    return safe.reshape(())[()] if safe.size == 1 else safe


def _divided_by_zero(quotient: Array, b: Array) -> Array:
    if b.all():
        return quotient
    return np.where(b == 0, np.array(-1).astype(quotient.dtype), quotient)


def _negative(a: Array) -> bool:
    return bool(a.size) and a.dtype != np.bool_ and bool(a.min() < 0)


def shift_left(a: Array, b: Array) -> Array:
    """Zeros come in from below."""
    return a & ~b if a.dtype == np.bool_ else np.left_shift(a, b)


def shift_right(a: Array, b: Array) -> Array:
    """The sign comes in from above."""
    return a | (a & b) if a.dtype == np.bool_ else np.right_shift(a, b)


def shift_right_unsigned(a: Array, b: Array) -> Array:
    """Zeros come in from above."""
    return a & ~b if a.dtype == np.bool_ else np.right_shift(unsigned(a), unsigned(b)).view(a.dtype)


def minimum(a: Array, b: Array) -> Array:
    """The signed minimum; true, being -1, is below false."""
    return a | b if a.dtype == np.bool_ else np.minimum(a, b)


def maximum(a: Array, b: Array) -> Array:
    """The signed maximum."""
    return a & b if a.dtype == np.bool_ else np.maximum(a, b)


def minimum_unsigned(a: Array, b: Array) -> Array:
    """The unsigned minimum."""
    return like(np.minimum(unsigned(a), unsigned(b)), a)


def maximum_unsigned(a: Array, b: Array) -> Array:
    """The unsigned maximum."""
    return like(np.maximum(unsigned(a), unsigned(b)), a)


def multiply_high(a: Array, b: Array, *, signed: bool) -> Array:
    """The product's upper half."""
    bits = 8 * a.dtype.itemsize
    if a.dtype == np.bool_:
        return a & b if signed else np.zeros(np.broadcast_shapes(a.shape, b.shape), np.bool_)
    if bits < 64:
        x, y = (side if signed else unsigned(side) for side in (a, b))
        return ((x.astype(np.int64) * y.astype(np.int64)) >> bits).astype(a.dtype)
    high = _high_of_64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    if signed:
        high = high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)
    return high


def _high_of_64(a: Array, b: Array) -> Array:
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    return np.asarray(a1 * b1 + (middle >> half) + ((middle & low) + a0 * b1 >> half))


def extend(a: Array, dtype: np.dtype[np.generic], *, signed: bool) -> Array:
    """To a wider integer; a true i1 becomes -1 or 1."""
    if a.dtype == np.bool_:
        return -a.astype(dtype) if signed else a.astype(dtype)
    return (a if signed else unsigned(a)).astype(dtype)


def truncate(a: Array, dtype: np.dtype[np.generic]) -> Array:
    """To a narrower integer: the lower bits."""
    return (a & 1).astype(np.bool_) if dtype == np.bool_ else a.astype(dtype)


# In the order of MLIR's predicates: eq ne slt sle sgt sge ult ule ugt uge.
_COMPARISONS: tuple[tuple[Callable[[Array, Array], Array], bool], ...] = (
    (np.equal, True),
    (np.not_equal, True),
    (np.less, True),
    (np.less_equal, True),
    (np.greater, True),
    (np.greater_equal, True),
    (np.less, False),
    (np.less_equal, False),
    (np.greater, False),
    (np.greater_equal, False),
)


def compare(predicate: int, a: Array, b: Array) -> Array:
    """Booleans; `predicate` as the attribute of `arith.cmpi` numbers them."""
    test, signed = _COMPARISONS[predicate]
    if not signed:
        return test(unsigned(a), unsigned(b))
    if a.dtype == np.bool_ and predicate > 1:
        return test(b, a)
    return test(a, b)


def leading_zeros(a: Array) -> Array:
    """How many of the upper bits are 0; all of them for 0."""
    bits = 8 * a.dtype.itemsize
    value = unsigned(a).astype(np.uint64)
    result = np.full(a.shape, bits, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        if step < bits:
            high = value >> np.uint64(step)
            result = np.where(high != 0, result - step, result)
            value = np.where(high != 0, high, value)
    return np.where(value != 0, result - 1, result)


def reverse_bits(a: Array) -> Array:
    """The lowest bit first."""
    value = unsigned(a)
    result = np.zeros_like(value)
    for _ in range(8 * a.dtype.itemsize):
        result = (result << 1) | (value & 1)
        value = value >> 1
    return result.view(a.dtype)


def permute_bytes(low: Array, high: Array, selector: Array) -> Array:
    """PTX's prmt.b32: four bytes out of the eight of two 32-bit operands, a nibble of the selector choosing each.

    A nibble's upper bit takes the sign of the byte instead, in all its bits.
    """
    pool = unsigned(low).astype(np.uint64) | unsigned(high).astype(np.uint64) << np.uint64(32)
    choice = unsigned(selector).astype(np.uint64)
    shape = np.broadcast_shapes(pool.shape, choice.shape)
    result = np.zeros(shape, np.uint32)
    for position in range(4):
        nibble = choice >> np.uint64(4 * position)
        byte = (pool >> ((nibble & np.uint64(7)) * np.uint64(8)) & np.uint64(0xFF)).astype(np.uint32)
        sign = np.where(byte & 0x80, np.uint32(0xFF), np.uint32(0))
        result |= np.where(nibble & np.uint64(8), sign, byte) << np.uint32(8 * position)
    return result.view(np.int32)
