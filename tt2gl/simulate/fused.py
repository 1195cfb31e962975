"""Fused multiply-add: a product and a sum, rounded once."""

from __future__ import annotations

import numpy as np

from tt2gl.simulate.values import Array

# Dekker's splitting constant of float64: halves of 26 bits.
_SPLIT = float(2**27 + 1)
_SMALLEST_NORMAL = 2.0**-126


def fma_to_odd(a: Array, b: Array, c: Array) -> Array:
    """The sum a * b + c of float32 arrays as float64 rounded to odd, which rounds exactly to float32 and below.

    Rounding to odd before rounding to nearest avoids double rounding (Boldo and Melquiond, "Emulation of FMA and
    correctly rounded sums", 2008).
    """
    product, c = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = np.asarray(product + c)
    # Only a sum that looks exact, or halfway, in what it is rounded to next can be mistaken for it.
    doubtful = total.view(np.int64) & 0xFFFFFFF == 0
    doubtful |= np.abs(total) < _SMALLEST_NORMAL
    if doubtful.any():
        shape = total.shape
        parts = (np.broadcast_to(part, shape)[doubtful] for part in (product, c))
        total[doubtful] = _sum_to_odd(*parts)
    return total


def _sum_to_odd(x: Array, y: Array) -> Array:
    """The sum rounded to odd."""
    total, error = _two_sum(x, y)
    return _odd(total, error)


def _odd(total: Array, error: Array) -> Array:
    """A sum rounded to nearest, and what that left out, as the sum rounded to odd."""
    bits = total.view(np.int64)
    even = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    if not even.any():
        return total
    towards = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(even, bits + towards, bits).view(np.float64)


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Knuth: the rounded sum and its exact error."""
    total = np.asarray(x + y)
    part = total - x
    return total, np.asarray((x - (total - part)) + (y - part))


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """Dekker: the rounded product and its exact error."""
    product = np.asarray(x * y)
    x_high, y_high = _high_half(x), _high_half(y)
    x_low, y_low = x - x_high, y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _high_half(x: Array) -> Array:
    scaled = x * _SPLIT
    return scaled - (scaled - x)


def fma_float64(a: Array, b: Array, c: Array) -> Array:
    """The sum a * b + c of float64 arrays, rounded once, wherever no intermediate of the method leaves float64's range.

    Where one does, the product is rounded before the sum.
    """
    product, product_error = _two_product(a, b)
    low, low_error = _two_sum(c, product_error)
    high, high_error = _two_sum(product, low)
    result = np.asarray(high + _sum_to_odd(high_error, low_error))
    plain = np.asarray(a * b + c)
    return np.where(np.isfinite(result) & (np.abs(plain) > 1e-290), result, plain)
