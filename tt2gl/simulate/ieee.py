"""Floating-point arithmetic in the formats themselves, rounded as the hardware rounds.

Formats below float32 are computed in float32 and rounded once more: for sums, products, quotients and square roots of
formats of at most 11 bits that gives the correctly rounded result. Functions of `math` are computed in float64 and
rounded, so they are the nearest value but for one case in some hundred million; a GPU's approximate instructions may
differ from that in the last places. Arithmetic yields one quiet NaN; subnormals are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tt2gl.ir.types import FloatType, Type, element_type
from tt2gl.simulate import dots, fused, scalar_functions
from tt2gl.simulate.arithmetic import COMPARISONS, Rounding
from tt2gl.simulate.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, UNSIGNED_ZERO, integer_of, narrow, widen
from tt2gl.simulate.values import Array, dtype_of, is_float


class Ieee:
    """The arithmetic of the formats; see `arithmetic.Arithmetic`."""

    name = "ieee"

    def dtype(self, kind: Type) -> np.dtype[Any]:
        """Of arrays of this type."""
        return dtype_of(kind)

    def from_bits(self, values: Array, kind: Type) -> Array:
        """The values as they are."""
        return values.astype(dtype_of(kind), copy=False)

    def to_bits(self, values: Array, kind: Type) -> Array:
        """The values as they are."""
        return values.astype(dtype_of(kind), copy=False)

    def poison(self, kind: Type) -> Any:
        """All bits set, which in most formats is a NaN; true for i1, NaN where all bits set are a number."""
        dtype = dtype_of(kind)
        if dtype == np.bool_:
            return np.True_
        if dtype in UNSIGNED_ZERO:
            return np.array(0x80, np.uint8).view(dtype)[()]
        return np.array(-1, f"i{dtype.itemsize}").view(dtype)[()]

    def binary(self, name: str, a: Array, b: Array, kind: Type) -> Array:
        """See `Arithmetic.binary`; rem has the dividend's sign, as C's fmod. Other names: see `scalar_functions`."""
        dtype = dtype_of(kind)
        x, y = widen(a), widen(b)
        if name in scalar_functions.BINARY:
            return narrow(scalar_functions.BINARY[name](x.astype(np.float64), y.astype(np.float64)), dtype)
        result = _BINARY[name](x, y)
        if dtype == BFLOAT16 and name in ("mul", "div"):
            return _round_tiny(result, x, y, name)
        return narrow(result, dtype)

    def unary(self, name: str, a: Array, kind: Type) -> Array:
        """See `Arithmetic.unary`."""
        dtype = dtype_of(kind)
        if name in ("neg", "absf") and dtype not in UNSIGNED_ZERO:
            return _sign_changed(name, a, dtype)
        if name in _EXACT:
            return narrow(_EXACT[name](widen(a)), dtype)
        return narrow(scalar_functions.UNARY[name](widen(a).astype(np.float64)), dtype)

    def fma(self, a: Array, b: Array, c: Array, kind: Type) -> Array:
        """The product a * b plus c, rounded once."""
        dtype = dtype_of(kind)
        if dtype == FLOAT64:
            return fused.fma_float64(a, b, c)
        if dtype == FLOAT16:
            # A product of float16 is far from any number that float64 would round it to.
            return narrow(widen(a).astype(np.float64) * widen(b) + widen(c), dtype)
        return narrow(fused.fma_to_odd(widen(a), widen(b), widen(c)), dtype)

    def accumulate(self, elements: Array, index: Array, given: Array) -> None:
        """See `Arithmetic.accumulate`; every sum is rounded to the format."""
        np.add.at(elements, index, given)

    def compare(self, predicate: str, a: Array, b: Array, kind: Type) -> Array:
        """See `Arithmetic.compare`."""
        x, y = widen(a), widen(b)
        if predicate in ("ord", "uno"):
            unordered = np.isnan(x) | np.isnan(y)
            return unordered if predicate == "uno" else ~unordered
        test = COMPARISONS[predicate[1:]]
        if predicate == "one":
            return (x < y) | (x > y)
        if predicate[0] == "o" or predicate == "une":
            return test(x, y)
        # Unordered or so: not the opposite in order.
        return ~COMPARISONS[_OPPOSITE[predicate[1:]]](x, y) if predicate != "ueq" else ~((x < y) | (x > y))

    def convert(self, a: Array, source: Type, target: Type, rounding: Rounding = "rtne") -> Array:
        """Between float formats; to those of a byte finite numbers and infinities saturate, as both vendors do."""
        dtype = dtype_of(target)
        kind = element_type(target)
        if isinstance(kind, FloatType) and kind.name == "tf32":
            return dots.to_tf32(widen(a))
        return narrow(widen(a), dtype, rounding, saturate=dtype.itemsize == 1 and rounding == "rtne")

    def from_integer(self, a: Array, signed: bool, source: Type, target: Type) -> Array:
        """Integers to floats, to nearest even."""
        dtype = dtype_of(target)
        if a.dtype == np.bool_:
            a = -a.astype(np.int8) if signed else a.astype(np.int8)
        elif not signed:
            a = a.view(integer_of(a.dtype))
        if dtype in (FLOAT32, FLOAT64):
            return a.astype(dtype)
        if a.dtype.itemsize <= 4:
            return narrow(a.astype(np.float64), dtype)
        return narrow(_odd_float64(a), dtype)

    def to_integer(self, a: Array, signed: bool, source: Type, target: Type) -> Array:
        """Floats to integers, towards zero; what does not fit becomes the nearest integer that does, NaN becomes 0.

        Bytes are the lower halves of 16-bit integers made so, as NVIDIA has no conversion to bytes.
        """
        held = dtype_of(target)
        values = np.trunc(widen(a))
        if held == np.bool_:
            return np.not_equal(values, 0) & np.equal(values, values)
        made = np.dtype(np.int16) if held == np.int8 else held
        wanted = made if signed else integer_of(made)
        info = np.iinfo(wanted)
        values = values.astype(np.float64, copy=False)
        # The upper bound of 64 bits is no float64: what reaches it is set apart.
        over = values >= float(info.max) + (1 if made.itemsize < 8 else 0)
        safe = np.where(over | ~(values > float(info.min)), 0.0, values)
        result = safe.astype(wanted)
        result[over] = info.max
        if signed:
            result[values <= float(info.min)] = info.min
        return result.view(made).astype(held, copy=False)

    def bitcast(self, a: Array, source: Type, target: Type) -> Array:
        """The same bits as another type."""
        return a.view(dtype_of(target))

    def matmul(self, a: Array, b: Array, c: Array | None, kinds: tuple[Type, Type, Type], precision: str) -> Array:
        """See `Arithmetic.matmul`, and `dots` for what each precision does."""
        result = dtype_of(kinds[2])
        if not is_float(kinds[2]):
            return dots.integers(a, b, c, result)
        return dots.floats(a, b, c, result, precision)


# ------------------------------------------------------------------------------------------------------ tables

_EXACT: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "absf": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "roundeven": np.rint,
    "round": scalar_functions.round_half_away,
}

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def _least(x: Array, y: Array) -> Array:
    """The smaller; a number beats NaN, and -0 is below +0."""
    result = np.fmin(x, y)
    return _zeros_ordered(result, x, y, lambda: -(-x + -y))


def _greatest(x: Array, y: Array) -> Array:
    result = np.fmax(x, y)
    return _zeros_ordered(result, x, y, lambda: x + y)


def _least_or_nan(x: Array, y: Array) -> Array:
    return _zeros_ordered(np.minimum(x, y), x, y, lambda: -(-x + -y))


def _greatest_or_nan(x: Array, y: Array) -> Array:
    return _zeros_ordered(np.maximum(x, y), x, y, lambda: x + y)


def _zeros_ordered(result: Array, x: Array, y: Array, of_zeros: Callable[[], Array]) -> Array:
    """Where both are zeros, what `of_zeros` says: numpy takes either."""
    if not np.any(result == 0):
        return result
    return np.where((x == 0) & (y == 0), of_zeros(), result)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rem": np.fmod,
    "minnum": _least,
    "maxnum": _greatest,
    "minimum": _least_or_nan,
    "maximum": _greatest_or_nan,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "remainder": scalar_functions.remainder,
}


# --------------------------------------------------------------------------------------------------------- bits


def _sign_changed(name: str, a: Array, dtype: np.dtype[Any]) -> Array:
    unsigned = integer_of(dtype)
    sign = unsigned.type(1 << (8 * dtype.itemsize - 1))
    bits = a.view(unsigned)
    return np.asarray(bits ^ sign if name == "neg" else bits & ~sign).view(dtype)


def _round_tiny(result: Array, x: Array, y: Array, name: str) -> Array:
    """A product or quotient as bfloat16: once more from float64 where float32 is subnormal and has rounded already."""
    rounded = narrow(result, BFLOAT16)
    tiny = (np.abs(result) < np.finfo(np.float32).smallest_normal * 2) & (x != 0)
    if not tiny.any():
        return rounded
    again = _BINARY[name](x.astype(np.float64), y.astype(np.float64))
    return np.where(tiny, narrow(again, BFLOAT16), rounded)


def _odd_float64(a: Array) -> Array:
    """64-bit integers as float64, rounded to odd: rounding once more is then exact."""
    low = a & a.dtype.type(0xFFFFF)
    high = a - low
    # Both halves are exact in float64 but their sum may not be; a sticky bit in its place keeps what matters.
    sticky = (low != 0).astype(a.dtype) << a.dtype.type(12)
    return np.where(np.abs(a.astype(np.float64)) < 2.0**52, a.astype(np.float64), (high | sticky).astype(np.float64))
