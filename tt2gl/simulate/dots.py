"""Matrix products: operands rounded as the matrix units take them, sums in float32 in an order that only shapes decide.

Operands become contiguous first, so that numpy's BLAS goes the same way whatever view they came from, and every matrix
of a stack is multiplied alone. What was there before (c) is added to the finished product. A GPU sums a few products
at a time into c, so its results differ in the last places; those of two kernels with equal tiles do not.

The precisions of float32 operands follow Triton's pass F32DotTC and the hardware below it:

- `tf32`: matrix units read the upper 19 bits, and Triton hands them float32 as it is: truncation, not rounding;
- `tf32x3`: each operand is a tf32, rounded to nearest with ties away (cvt.rna), and a remainder; three products;
- `bf16x3`, `bf16x6`: three bfloat16 pieces of each operand; the three or six largest products, the small ones first;
- `ieee`: float32 throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tt2gl.simulate.formats import BFLOAT16, FLOAT32, FLOAT64, narrow, widen
from tt2gl.simulate.values import Array

Rounded = Callable[[Array], Array]

# Which pieces of the operands are multiplied: 0 is the largest.
_TWO_PIECES = ((1, 0), (0, 1), (0, 0))
_THREE_PIECES = ((1, 1), (2, 0), (0, 2), *_TWO_PIECES)

# Products of bytes summed over this many terms are exact in float32, and over 2**37 in float64.
_TERMS_IN_FLOAT32 = 1 << 9


def integers(a: Array, b: Array, c: Array | None, dtype: np.dtype[Any]) -> Array:
    """The exact product of integers of at most 16 bits, and c, wrapped to `dtype`."""
    if a.dtype.itemsize > 2 or b.dtype.itemsize > 2:
        product = np.matmul(a.astype(np.int64), b.astype(np.int64))
    else:
        small = a.dtype.itemsize == b.dtype.itemsize == 1 and a.shape[-1] <= _TERMS_IN_FLOAT32
        held = np.float32 if small else np.float64
        product = np.matmul(np.ascontiguousarray(a, held), np.ascontiguousarray(b, held)).astype(np.int64)
    result: Array = (product if c is None else product + c).astype(dtype)
    return result


def floats(a: Array, b: Array, c: Array | None, dtype: np.dtype[Any], precision: str) -> Array:
    """The product, and c on top, in `dtype`. Raises ValueError for a precision it does not know."""
    if FLOAT64 in (a.dtype, b.dtype):
        product = np.matmul(np.ascontiguousarray(a, np.float64), np.ascontiguousarray(b, np.float64))
    elif a.dtype == FLOAT32 and b.dtype == FLOAT32:
        product = _float32(np.ascontiguousarray(a), np.ascontiguousarray(b), precision)
    else:
        product = np.matmul(np.ascontiguousarray(widen(a)), np.ascontiguousarray(widen(b)))
    if c is not None:
        product += widen(c)
    return narrow(product, dtype)


def _float32(a: Array, b: Array, precision: str) -> Array:
    if precision == "ieee":
        return np.asarray(np.matmul(a, b))
    if precision == "tf32":
        return np.asarray(np.matmul(truncated_to_tf32(a), truncated_to_tf32(b)))
    if precision == "tf32x3":
        rounded: Sequence[Rounded] = (to_tf32, truncated_to_tf32)
        order: Sequence[tuple[int, int]] = _TWO_PIECES
    elif precision == "bf16x3":
        rounded, order = (_through_bfloat16,) * 2, _TWO_PIECES
    elif precision == "bf16x6":
        rounded, order = (_through_bfloat16,) * 3, _THREE_PIECES
    else:
        raise ValueError(f"no input precision {precision}")
    return _sum_of_products(_pieces(a, rounded), _pieces(b, rounded), order)


def _pieces(values: Array, rounded: Sequence[Rounded]) -> list[Array]:
    """A value as a rounded one, its remainder rounded, and so on."""
    pieces: list[Array] = []
    for function in rounded:
        pieces.append(function(values))
        values = values - pieces[-1]
    return pieces


def _sum_of_products(a: Sequence[Array], b: Sequence[Array], order: Sequence[tuple[int, int]]) -> Array:
    """The products of pieces, added up in order; NaN in the sum of the small ones, infinities less themselves, is 0."""
    *small, (i, j) = order
    total = np.asarray(np.matmul(a[small[0][0]], b[small[0][1]]))
    for k, m in small[1:]:
        total = np.matmul(a[k], b[m]) + total
    return np.asarray(np.matmul(a[i], b[j]) + np.where(np.isnan(total), np.float32(0), total))


def truncated_to_tf32(values: Array) -> Array:
    """The upper 19 bits of float32: what a matrix unit reads."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def to_tf32(values: Array) -> Array:
    """float32 rounded to the 10 bits of fraction of tf32, ties away from zero."""
    bits = values.view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def _through_bfloat16(values: Array) -> Array:
    return widen(narrow(values, BFLOAT16))
