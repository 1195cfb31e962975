"""Functions of one float64 by the names of MLIR's `math` dialect: what numpy has, and the rest through `math`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tt2gl.simulate.values import Array

Function = Callable[[Array], Array]


def round_half_away(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


def elementwise(function: Callable[[float], float], outside: float = math.nan) -> Function:
    """A function of the `math` module over arrays; `outside` where it raises."""

    def guarded(value: float) -> float:
        try:
            return function(value)
        except (ValueError, OverflowError):
            return outside

    applied = np.frompyfunc(guarded, 1, 1)

    def over(x: Array) -> Array:
        return np.asarray(applied(x)).astype(np.float64)

    return over


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
    "erf": elementwise(math.erf),
    "erfc": elementwise(math.erfc),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
