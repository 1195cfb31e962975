"""Functions of one or two float64, by the names of MLIR's `math` dialect or of the C library.

What numpy has is numpy's; the rest goes through Python's `math`, element by element, or is made of those.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from tt2gl.simulate.values import Array

Function = Callable[[Array], Array]
Binary = Callable[[Array, Array], Array]


def round_half_away(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


def elementwise(function: Callable[[float], float]) -> Function:
    """A function of Python floats over arrays; NaN where it raises for its argument, infinity where it overflows."""

    def guarded(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    applied = np.frompyfunc(guarded, 1, 1)

    def over(x: Array) -> Array:
        return np.asarray(applied(x)).astype(np.float64)

    return over


# erf is expanded about the multiples of 1/8 up to 6, from where on it is 1 in float64.
_STEPS, _LAST, _TERMS = 8, 6, 13


@functools.cache
def _erf_coefficients() -> Array:
    """Taylor coefficients of erf at those points, by rows of equal power: its derivatives are Hermite polynomials."""
    points = np.arange(_LAST * _STEPS + 1) / _STEPS
    rows = [np.array([math.erf(point) for point in points])]
    before, hermite = np.zeros_like(points), np.ones_like(points)
    bell = 2 / math.sqrt(math.pi) * np.exp(-points * points)
    for power in range(1, _TERMS):
        rows.append((-1) ** (power - 1) * hermite * bell / math.factorial(power))
        before, hermite = hermite, 2 * points * hermite - 2 * (power - 1) * before
    return np.stack(rows)


def erf(x: Array) -> Array:
    """The error function, to about one unit in the last place of float64."""
    size = np.minimum(np.abs(x), _LAST)
    nearest = np.rint(np.where(np.isnan(size), 0, size) * _STEPS).astype(np.intp)
    distance = size - nearest / _STEPS
    coefficients = _erf_coefficients()
    total = np.take(coefficients[-1], nearest)
    for row in coefficients[-2::-1]:
        total *= distance
        total += np.take(row, nearest)
    signed: Array = np.copysign(total, x)
    return signed


def remainder(x: Array, y: Array) -> Array:
    """Of the division rounded to nearest even, exact: C's remainder."""
    rest, size = np.fmod(x, y), np.abs(y)
    odd = np.fmod(np.abs(x), 2 * size) >= size
    distance = np.abs(rest)
    over = (2 * distance > size) | ((2 * distance == size) & odd)
    return np.where(np.isinf(y), x, np.where(over, rest - np.copysign(size, rest), rest))


def _log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _gamma(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def _normal_quantile(p: float) -> float:
    """The inverse of the normal distribution's cumulative function; infinite at 0 and 1."""
    if p in (0, 1):
        return math.inf if p else -math.inf
    return NormalDist().inv_cdf(p)


def _inverse_erf(y: float) -> float:
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if abs(y) > 1 or math.isnan(y):
        return math.nan
    x = NormalDist().inv_cdf((y + 1) / 2) / math.sqrt(2) if abs(y) > 1e-3 else y * math.sqrt(math.pi) / 2
    # Newton's steps; close to 1 erfc has the digits that erf has not.
    for _ in range(3):
        error = math.erf(x) - y if abs(y) < 0.5 else math.copysign(1 - abs(y) - math.erfc(abs(x)), y)
        x -= error * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return x


def _scaled_erfc(x: float) -> float:
    """exp(x**2) erfc(x), by its continued fraction where the factors overflow."""
    if x < 10:
        return math.exp(x * x) * math.erfc(x)
    tail = 0.0
    for term in range(60, 0, -1):
        tail = term / 2 / (x + tail)
    return 1 / ((x + tail) * math.sqrt(math.pi))


def _logb(x: Array) -> Array:
    _, exponent = np.frexp(x)
    result = np.where(np.isfinite(x), exponent - 1.0, np.abs(x))
    return np.where(x == 0, -np.inf, result)


def _bessel(x: float, wave: Callable[[float], float]) -> float:
    """The mean of a function of the angle over a circle: of many points it is as exact as a float64 is."""
    if not math.isfinite(x):
        return math.nan if math.isnan(x) else wave(0)
    points = 64 + 2 * math.ceil(abs(x))
    return math.fsum(wave(2 * math.pi * point / points) for point in range(points)) / points


def _bessel_i(order: int) -> Function:
    """The modified Bessel function of the first kind."""

    def of(x: float) -> float:
        return _bessel(x, lambda angle: math.exp(x * math.cos(angle)) * math.cos(order * angle))

    return elementwise(of)


def _bessel_j(order: int) -> Function:
    """The Bessel function of the first kind, which is small far away."""

    def of(x: float) -> float:
        return 0.0 if math.isinf(x) else _bessel(x, lambda angle: math.cos(order * angle - x * math.sin(angle)))

    return elementwise(of)


UNARY: dict[str, Function] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.remainder(x, 2)),
    "cyl_bessel_i0": _bessel_i(0),
    "cyl_bessel_i1": _bessel_i(1),
    "erf": erf,
    "erfc": elementwise(math.erfc),
    "erfcinv": elementwise(lambda y: _inverse_erf(1 - y) if y > 0.5 else -_normal_quantile(y / 2) / math.sqrt(2)),
    "erfcx": elementwise(_scaled_erfc),
    "erfinv": elementwise(_inverse_erf),
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "j0": _bessel_j(0),
    "j1": _bessel_j(1),
    "lgamma": elementwise(_log_gamma),
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logb": _logb,
    "normcdf": elementwise(lambda x: math.erfc(-x / math.sqrt(2)) / 2),
    "normcdfinv": elementwise(_normal_quantile),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * np.remainder(x, 2)),
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": elementwise(_gamma),
}

BINARY: dict[str, Binary] = {
    "atan2": np.arctan2,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)),
    "hypot": np.hypot,
    "pow": np.power,
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
}
