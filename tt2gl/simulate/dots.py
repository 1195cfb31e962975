"""Matrix products: operands rounded as the matrix units take them, sums in float32 in an order that only shapes decide.

Operands become contiguous copies first, so that numpy's BLAS goes the same way whatever view they came from, and every
matrix of a stack is multiplied alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.simulate.formats import FLOAT32, FLOAT64, narrow, widen
from tt2gl.simulate.values import Array

# float64 holds sums of products of bytes exactly up to this many terms, and then some.
_MOST_TERMS = 1 << 30


def integers(a: Array, b: Array, c: Array | None, dtype: np.dtype[Any]) -> Array:
    """The exact product of small integers, and c, wrapped to `dtype`."""
    x, y = (np.ascontiguousarray(side, np.float64) for side in (a, b))
    result = np.matmul(x, y).astype(np.int64)
    return (result if c is None else result + c).astype(dtype)


def floats(a: Array, b: Array, c: Array | None, dtype: np.dtype[Any], precision: str) -> Array:
    """The product, and c on top, in `dtype`."""
    if FLOAT64 in (a.dtype, b.dtype):
        product = np.matmul(np.ascontiguousarray(a, np.float64), np.ascontiguousarray(b, np.float64))
        return product if c is None else product + c
    x, y = np.ascontiguousarray(widen(a)), np.ascontiguousarray(widen(b))
    if a.dtype == FLOAT32 and b.dtype == FLOAT32 and precision == "tf32":
        x, y = to_tf32(x), to_tf32(y)
    product = np.matmul(x, y)
    return narrow(product if c is None else product + widen(c), dtype)


def to_tf32(values: Array) -> Array:
    """float32 rounded to the 10 bits of fraction of tf32, ties away from zero."""
    bits = values.view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)
