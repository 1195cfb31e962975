"""Arithmetic in a prime field: no rounding, so that kernels that only sum in another order agree exactly.

A number m * 2**e is the residue of m times the power of 2 (see `modular`): sums, differences, products, quotients and
matrix products of exact numbers are exact, 0.5 * 2 is 1, and casts that only round change nothing. Two values that
differ as rationals are different residues but for one case in 2**31. What has no meaning in a field is a fixed
function of its arguments:

- The order is that of the residues between -P/2 and P/2, -inf being the least of them and +inf the greatest. So
  max(x, -inf) is x, and comparisons, minima, maxima, sorting and absolute values agree with one another, but not with
  the order of the numbers.
- Other functions (exp, sin, a libdevice function, ...) are hashes of name and arguments. Kept are f(0) of those that
  have a simple one, exp(-inf) = exp2(-inf) = 0, and rsqrt(x) = 1 / sqrt(x). What else holds of the real functions,
  exp(a + b) = exp(a) exp(b) for one, does not.
- A float becomes an integer by being one, if it is less than 2**20 in size, else by a hash.

Not seen, therefore: rounding, and all that it does; overflow; NaN, which is an ordinary residue here (0 * NaN is 0, and
infinities cancel: inf - inf is 0); the sign of zero; which values a branch or mask on floats really selects.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tt2gl.ir.types import Type
from tt2gl.simulate import dots, modular
from tt2gl.simulate.arithmetic import COMPARISONS, Rounding
from tt2gl.simulate.formats import FLOAT32, FLOAT64, integer_of, widen
from tt2gl.simulate.modular import HALF, hashed
from tt2gl.simulate.values import Array, dtype_of, is_float

# +inf is HALF and -inf is -HALF, so that the negative of one is the other.
INFINITY = HALF
NAN = 0x2BADF00D
POISON = 0x1F0E5EED

# Floats up to this size that are integers become those integers.
_SMALL = 1 << 20
# Others become an integer between 0 and this.
_HASHED_INTEGERS = 97


class Field:
    """The arithmetic of the field; see `arithmetic.Arithmetic`."""

    name = "field"

    def dtype(self, kind: Type) -> np.dtype[Any]:
        """int64 for floats of every format, else the type's own."""
        return np.dtype(np.int64) if is_float(kind) else dtype_of(kind)

    def from_bits(self, values: Array, kind: Type) -> Array:
        """The residues of floats; the fixed ones of infinities and NaN."""
        if not is_float(kind):
            return values.astype(dtype_of(kind), copy=False)
        values = values.astype(dtype_of(kind), copy=False)
        if values.dtype.itemsize <= 2:
            return np.take(_residues(values.dtype), values.view(integer_of(values.dtype)))
        return _residue(values)

    def to_bits(self, values: Array, kind: Type) -> Array:
        """The residues."""
        return values

    def poison(self, kind: Type) -> Any:
        """A fixed residue; of integers, all bits set."""
        if is_float(kind):
            return np.int64(POISON)
        dtype = dtype_of(kind)
        return np.True_ if dtype == np.bool_ else dtype.type(-1)

    def binary(self, name: str, a: Array, b: Array, kind: Type) -> Array:
        """See `Arithmetic.binary`; x / 0 is a hash of x, and so are rem, pow, atan2 and copysign of both."""
        function = _BINARY.get(name)
        return function(a, b) if function is not None else _hash_of(name, a, b)

    def unary(self, name: str, a: Array, kind: Type) -> Array:
        """See `Arithmetic.unary`; the module's docstring says what is kept of the functions."""
        if name == "neg":
            return -a
        if name == "absf":
            return np.abs(a)
        if name == "rsqrt":
            return _divide(np.ones_like(a), self.unary("sqrt", a, kind))
        if name in _WHOLE:
            return np.where(np.abs(a) < _SMALL, a, _hash_of(name, a))
        result = _hash_of(name, a)
        for argument, value in _KNOWN.get(name, ()):
            result = np.where(a == argument, value, result)
        return result

    def fma(self, a: Array, b: Array, c: Array, kind: Type) -> Array:
        """The product a * b plus c."""
        return modular.reduced(a * b + c)

    def accumulate(self, elements: Array, index: Array, given: Array) -> None:
        """See `Arithmetic.accumulate`: no memory holds as many residues as it takes to overflow an int64."""
        np.add.at(elements, index, given)
        elements[index] = modular.reduced(elements[index])

    def compare(self, predicate: str, a: Array, b: Array, kind: Type) -> Array:
        """By the order of the residues; everything is ordered but NaN."""
        unordered = (a == NAN) | (b == NAN)
        if predicate in ("ord", "uno"):
            return np.asarray(unordered == (predicate == "uno"))
        result = COMPARISONS[predicate[1:]](a, b)
        if not unordered.any():
            return result
        return np.asarray(np.where(unordered, predicate[0] == "u", result))

    def convert(self, a: Array, source: Type, target: Type, rounding: Rounding = "rtne") -> Array:
        """Nothing: formats only round."""
        return a

    def from_integer(self, a: Array, signed: bool, source: Type, target: Type) -> Array:
        """The integer modulo the prime."""
        if a.dtype == np.bool_:
            return -a.astype(np.int64) if signed else a.astype(np.int64)
        if not signed and a.dtype.itemsize == 8:
            top = (a < 0).astype(np.int64) * _TWO_TO_64
            return modular.add(modular.reduced(a.astype(np.int64)), top)
        return modular.reduced((a if signed else a.view(integer_of(a.dtype))).astype(np.int64))

    def to_integer(self, a: Array, signed: bool, source: Type, target: Type) -> Array:
        """A small integer as it is, anything else a hash of it below 97."""
        dtype = dtype_of(target)
        whole = np.where(np.abs(a) < _SMALL, a, hashed(a, _salt("to_integer")) % _HASHED_INTEGERS)
        result: Array = whole.astype(dtype)
        return result

    def bitcast(self, a: Array, source: Type, target: Type) -> Array:
        """A float as bits is its residue where the integer is wide enough, so that casting back returns it. Up to 16
        bits are those of the format where it has that number, else a hash; they are decoded when they become a float,
        and wider ones are taken for a residue.
        """
        if is_float(source) and is_float(target):
            return a
        if is_float(source):
            wanted = dtype_of(target)
            return a.astype(wanted) if wanted.itemsize >= 4 else _pattern(a, dtype_of(source)).astype(wanted)
        held = dtype_of(target)
        if held.itemsize <= 2:
            return self.from_bits(a.view(held), target)
        return modular.reduced(a.astype(np.int64))

    def matmul(self, a: Array, b: Array, c: Array | None, kinds: tuple[Type, Type, Type], precision: str) -> Array:
        """Exact, whatever the precision."""
        if not is_float(kinds[2]):
            return dots.integers(a, b, c, dtype_of(kinds[2]))
        product = modular.matmul(a, b)
        return product if c is None else modular.add(product, c)


# --------------------------------------------------------------------------------------------- numbers as residues


@functools.cache
def _residues(dtype: np.dtype[Any]) -> Array:
    """Of every bit pattern of a format of one or two bytes."""
    patterns = np.arange(1 << 8 * dtype.itemsize).astype(integer_of(dtype))
    return _residue(widen(patterns.view(dtype)))


def _pattern(values: Array, dtype: np.dtype[Any]) -> Array:
    """The bits of residues in a format of one or two bytes; a hash where it has no such number."""
    ladder, patterns = _ladder(dtype)
    place = np.minimum(np.searchsorted(ladder, values), len(ladder) - 1)
    return np.where(ladder[place] == values, patterns[place], hashed(values, _salt("bitcast")))


@functools.cache
def _ladder(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The residues of a format in order, and the bits of each; of equal ones the least come first."""
    residues = _residues(dtype)
    patterns = np.argsort(residues, kind="stable")
    return residues[patterns], patterns


def _residue(values: Array) -> Array:
    """Of float32 or float64."""
    fraction_bits, low = (24, -149) if values.dtype == FLOAT32 else (53, -1074)
    finite = np.where(np.isfinite(values), values, 0)
    fraction, exponent = np.frexp(finite)
    whole = np.ldexp(fraction.astype(np.float64), fraction_bits).astype(np.int64)
    scale = modular.powers_of_two(low - fraction_bits, 1024)
    factor = np.take(scale, exponent - fraction_bits - (low - fraction_bits))
    result = modular.multiply(modular.reduced(whole) if values.dtype == FLOAT64 else whole, factor)
    if not np.isfinite(values).all():
        result = np.where(np.isinf(values), np.where(values > 0, INFINITY, -INFINITY), result)
        result = np.where(np.isnan(values), NAN, result)
    return result


_TWO_TO_64 = int(modular.powers_of_two(64, 64)[0])


# ------------------------------------------------------------------------------------------------------ functions


@functools.cache
def _salt(name: str) -> int:
    return zlib.crc32(name.encode())


def _hash_of(name: str, *arguments: Array) -> Array:
    """A hash of a function's name and its arguments."""
    result = hashed(arguments[0], _salt(name))
    for argument in arguments[1:]:
        result = hashed(result + (argument << 32), _salt(name))
    return result


def function(name: str, arguments: tuple[Array, ...]) -> Array:
    """Any other function of floats and integers, by name: a fixed residue for every list of arguments."""
    return _hash_of(name, *(argument.astype(np.int64) for argument in arguments))


def _divide(a: Array, b: Array) -> Array:
    result = modular.multiply(a, modular.inverse(b))
    zero = b == 0
    return np.where(zero, _hash_of("division by zero", a), result) if zero.any() else result


def _extreme(choose: Callable[[Array, Array], Array], *, keep_nan: bool) -> Callable[[Array, Array], Array]:
    def chosen(a: Array, b: Array) -> Array:
        result = choose(a, b)
        nan_a, nan_b = a == NAN, b == NAN
        if not (nan_a.any() or nan_b.any()):
            return result
        if keep_nan:
            return np.where(nan_a | nan_b, NAN, result)
        return np.where(nan_a, b, np.where(nan_b, a, result))

    return chosen


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": modular.add,
    "sub": modular.subtract,
    "mul": modular.multiply,
    "div": _divide,
    "minnum": _extreme(np.minimum, keep_nan=False),
    "maxnum": _extreme(np.maximum, keep_nan=False),
    "minimum": _extreme(np.minimum, keep_nan=True),
    "maximum": _extreme(np.maximum, keep_nan=True),
}

_WHOLE = frozenset({"floor", "ceil", "trunc", "round", "roundeven"})

_KNOWN: dict[str, tuple[tuple[int, int], ...]] = {
    "exp": ((0, 1), (-INFINITY, 0)),
    "exp2": ((0, 1), (-INFINITY, 0)),
    "expm1": ((0, 0), (-INFINITY, -1)),
    "log": ((1, 0),),
    "log2": ((1, 0),),
    "log1p": ((0, 0),),
    "sqrt": ((0, 0), (1, 1)),
    "sin": ((0, 0),),
    "cos": ((0, 1),),
    "tanh": ((0, 0),),
    "erf": ((0, 0),),
}
