"""Integers modulo a prime, whole arrays at a time: the ground of field arithmetic.

Residues are int64 between -(P - 1) / 2 and (P - 1) / 2. P is the largest safe prime below 2**31 of which 2 is a
generator: no two powers of 2 within float32's range and beyond coincide (modulo the Mersenne prime 2**31 - 1 those 31
binary places apart would).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from tt2gl.simulate.values import Array

P = 2**31 - 69
HALF = (P - 1) // 2

# Elements worked on at a time, so that what lies between stays in the cache.
_BLOCK = 1 << 15
# Terms of a sum of products of 16-bit halves that float64 holds exactly.
_MOST_TERMS = 1 << 20


def reduced(values: Array) -> Array:
    """Any int64 to its residue."""
    quotient = values // P
    quotient *= -P
    quotient += values
    return _centred(quotient)


def _centred(values: Array) -> Array:
    """From between -P and P to the middle."""
    values = np.where(values > HALF, values - P, values)
    return np.where(values < -HALF, values + P, values)


def add(a: Array, b: Array) -> Array:
    """The sum."""
    return _centred(a + b)


def subtract(a: Array, b: Array) -> Array:
    """The difference."""
    return _centred(a - b)


def multiply(a: Array, b: Array) -> Array:
    """The product."""
    return reduced(a * b)


def power(base: Array, exponent: int) -> Array:
    """A power with an exponent that is not negative."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = multiply(result, base)
        base = multiply(base, base)
        exponent >>= 1
    return result


def inverse(values: Array) -> Array:
    """1 / x, and 0 for 0: all at once with one inversion of a scalar and three products an element (Montgomery)."""
    flat = np.ascontiguousarray(values).reshape(-1)
    safe = np.where(flat == 0, 1, flat)
    return np.where(flat == 0, 0, _inverse(safe)).reshape(values.shape)


def _inverse(values: Array) -> Array:
    if values.size <= 64:
        return np.array([_centre(pow(int(value), -1, P)) for value in values], np.int64)
    half = (values.size + 1) // 2
    first, second = values[:half], np.ones(half, np.int64)
    second[: values.size - half] = values[half:]
    both = _inverse(multiply(first, second))
    return np.concatenate([multiply(both, second), multiply(both, first)[: values.size - half]])


def _centre(value: int) -> int:
    value %= P
    return value - P if value > HALF else value


@functools.cache
def powers_of_two(low: int, high: int) -> Array:
    """Residues of 2**low to 2**high."""
    return np.array([_centre(pow(2, exponent % (P - 1), P)) for exponent in range(low, high + 1)], np.int64)


def matmul(a: Array, b: Array) -> Array:
    """The product of matrices of residues, exact: three float64 products of 16-bit halves (Karatsuba)."""
    terms = a.shape[-1]
    if terms > _MOST_TERMS:
        parts = [
            matmul(a[..., start : start + _MOST_TERMS], b[..., start : start + _MOST_TERMS, :])
            for start in range(0, terms, _MOST_TERMS)
        ]
        return functools.reduce(add, parts)
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    high, low = np.matmul(a_high, b_high), np.matmul(a_low, b_low)
    middle = np.matmul(a_high + a_low, b_high + b_low) - high - low
    high, middle, low = (reduced(part.astype(np.int64)) for part in (high, middle, low))
    high = reduced((high << 16) + middle)
    return reduced((high << 16) + low)


def _halves(values: Array) -> tuple[Array, Array]:
    high = (values + 0x8000) >> 16
    low = values - (high << 16)
    return np.ascontiguousarray(high, np.float64), np.ascontiguousarray(low, np.float64)


def hashed(values: Array, salt: int) -> Array:
    """A fixed pseudo-random residue for every int64 and salt (the finaliser of splitmix64)."""
    x = values.astype(np.uint64)
    x = (x + np.uint64(salt * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return (x % np.uint64(P)).astype(np.int64) - HALF


Function = Callable[[Array], Array]
