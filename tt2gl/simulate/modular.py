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
# Terms of a product of matrices taken at once: products of sums of halves are below 2**33, so sums of them below 2**53.
_MOST_TERMS = 1 << 18


def reduced(values: Array) -> Array:
    """Any int64 below 2**62 in size to its residue."""
    # The quotient from float64 may be off by one where the residue is close to P / 2.
    quotient = np.rint(values * (1.0 / P)).astype(np.int64)
    quotient *= P
    return _centred(np.subtract(values, quotient, out=quotient))


def _centred(values: Array) -> Array:
    """From between -2 P and 2 P to the middle, in place."""
    # The sign bit of a difference, spread over the word, says where P is due: faster than a choice.
    over = HALF - values
    over >>= 63
    over &= P
    values -= over
    under = np.add(values, HALF, out=over)
    under >>= 63
    under &= P
    values += under
    return values


def _in_blocks(function: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """A function of two arrays, block after block where they are large and of one shape."""
    if a.shape != b.shape or a.size < 2 * _BLOCK:
        return function(a, b)
    result = np.empty(a.shape, np.int64)
    x, y, into = a.reshape(-1), b.reshape(-1), result.reshape(-1)
    for start in range(0, a.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        into[part] = function(x[part], y[part])
    return result


def add(a: Array, b: Array) -> Array:
    """The sum."""
    return _in_blocks(lambda x, y: _centred(np.asarray(x + y)), a, b)


def subtract(a: Array, b: Array) -> Array:
    """The difference."""
    return _in_blocks(lambda x, y: _centred(np.asarray(x - y)), a, b)


def multiply(a: Array, b: Array) -> Array:
    """The product."""
    return _in_blocks(lambda x, y: reduced(np.asarray(x * y)), a, b)


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
    """The product of stacks of matrices of residues, exact."""
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows, terms, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    x = np.broadcast_to(a, (*stack, rows, terms)).reshape(-1, rows, terms)
    y = np.broadcast_to(b, (*stack, terms, columns)).reshape(-1, terms, columns)
    result = np.empty((len(x), rows, columns), np.int64)
    at_once = max(1, _BLOCK // (rows * columns))
    for start in range(0, len(x), at_once):
        part = slice(start, start + at_once)
        total = _product(x[part, :, :_MOST_TERMS], y[part, :_MOST_TERMS])
        for first in range(_MOST_TERMS, terms, _MOST_TERMS):
            last = first + _MOST_TERMS
            total = add(total, _product(x[part, :, first:last], y[part, first:last]))
        result[part] = total
    return result.reshape(*stack, rows, columns)


def _product(a: Array, b: Array) -> Array:
    """Three float64 products of 16-bit halves (Karatsuba); no sum in it reaches 2**53."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    high, low = np.matmul(a_high, b_high), np.matmul(a_low, b_low)
    a_high += a_low
    b_high += b_low
    middle = np.matmul(a_high, b_high)
    middle -= high
    middle -= low
    total = _float_reduced(high)
    total *= 1 << 16
    total += middle
    total = _float_reduced(total)
    total *= 1 << 16
    total += low
    return _centred(_float_reduced(total).astype(np.int64))


def _float_reduced(values: Array) -> Array:
    """Integers below 2**53 in float64 to residues, or P beside them, in place."""
    quotient = values * (1.0 / P)
    np.rint(quotient, out=quotient)
    quotient *= P
    values -= quotient
    return values


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
