"""Functions of NVIDIA's libdevice (`__nv_*`) and AMD's (`__ocml_*`, `__ockl_*`, Triton's own `__triton_hip_*`).

Results are the nearest value; the libraries promise a unit or two in the last place. Of the variants with a rounding
direction only those to nearest are known, and of the fast ones the function itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate import integers
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.scalar_functions import BINARY, UNARY
from tt2gl.simulate.values import Array, dtype_of, is_float

F64 = FloatType("f64")


@dataclass(frozen=True)
class Call:
    """One use of a function: the arithmetic, the operands, their element types and the result's."""

    arithmetic: Arithmetic
    operands: tuple[Array, ...]
    kinds: tuple[Type, ...]
    result: Type


Implementation = Callable[[Call], Array]

_SYMBOL = re.compile(
    r"__(?:nv|triton_hip)_(?:fast_)?(?P<nv>\w+)|__ocml_(?:native_)?(?P<ocml>\w+?)_f(?:16|32|64)|__ockl_(?P<ockl>\w+)"
)


def find(symbol: str) -> Implementation | None:
    """What computes the function of that symbol, None where it is not known."""
    match = _SYMBOL.fullmatch(symbol)
    if match is None:
        return None
    if match["ockl"]:
        return _OCKL.get(match["ockl"])
    name = match["nv"] or match["ocml"]
    # `__nv_expf` is the float32 of `__nv_exp`; the same letter ends `erf`.
    for candidate in (name, name.removesuffix("f")) if match["nv"] else (name,):
        found = _named(candidate)
        if found is not None:
            return found
    return None


def _named(name: str) -> Implementation | None:
    name = _ALIASES.get(name, name)
    if name in _OTHERS:
        return _OTHERS[name]
    if name in UNARY or name in _EXACT_UNARY:
        return lambda call: call.arithmetic.unary(name, call.operands[0], call.kinds[0])
    if name in BINARY or name in _EXACT_BINARY:
        return lambda call: call.arithmetic.binary(name, call.operands[0], call.operands[1], call.kinds[0])
    return None


_EXACT_UNARY = frozenset({"absf", "sqrt", "floor", "ceil", "trunc", "round", "roundeven"})
_EXACT_BINARY = frozenset({"add", "sub", "mul", "div", "rem", "copysign", "minnum", "maxnum", "nextafter", "remainder"})

_ALIASES = {
    "abs": "absi",
    "llabs": "absi",
    "iabs": "absi",
    "fabs": "absf",
    "fmod": "rem",
    "fmin": "minnum",
    "fmax": "maxnum",
    "rint": "roundeven",
    "nearbyint": "roundeven",
    "fdivide": "div",
    "fma_rn": "fma",
    "fmaf_rn": "fma",
    "rcp": "frcp_rn",
    "drcp_rn": "frcp_rn",
    "isnand": "isnan",
    "isinfd": "isinf",
    "isfinited": "isfinite",
    "finite": "isfinite",
    "signbitd": "signbit",
    "scalbn": "ldexp",
    "i0": "cyl_bessel_i0",
    "i1": "cyl_bessel_i1",
    "powi": "pown",
    "frsqrt_rn": "rsqrt",
    **{f"{letter}{name}_rn": name for letter in "fd" for name in ("add", "sub", "mul", "div", "sqrt")},
}


# ------------------------------------------------------------------------------------------------ made of others


def _constant(call: Call, value: float) -> Array:
    return call.arithmetic.from_bits(np.array([value]).astype(dtype_of(call.kinds[0])), call.kinds[0])


def _fma(call: Call) -> Array:
    a, b, c = call.operands
    return call.arithmetic.fma(a, b, c, call.kinds[0])


def _reciprocal(call: Call) -> Array:
    return call.arithmetic.binary("div", _constant(call, 1), call.operands[0], call.kinds[0])


def _saturated(call: Call) -> Array:
    positive = call.arithmetic.binary("maxnum", call.operands[0], _constant(call, 0), call.kinds[0])
    return call.arithmetic.binary("minnum", positive, _constant(call, 1), call.kinds[0])


def _scaled(call: Call) -> Array:
    """A number times a power of 2; both factors in float64, so that the product is rounded once."""
    x, exponent = call.operands
    kind, arithmetic = call.kinds[0], call.arithmetic
    factor = np.ldexp(1.0, np.clip(exponent, -1000, 1000))
    wide = arithmetic.convert(x, kind, F64)
    product = arithmetic.binary("mul", wide, arithmetic.from_bits(factor, F64), F64)
    return arithmetic.convert(product, F64, kind)


def _integer_power(call: Call) -> Array:
    x, exponent = call.operands
    kind = call.kinds[0]
    return call.arithmetic.binary("pow", x, call.arithmetic.from_integer(exponent, True, call.kinds[1], kind), kind)


def _flag(call: Call, found: Array) -> Array:
    return found.astype(dtype_of(call.result))


def _is_nan(call: Call) -> Array:
    x = call.operands[0]
    return _flag(call, call.arithmetic.compare("uno", x, x, call.kinds[0]))


def _is_infinite(call: Call) -> Array:
    size = call.arithmetic.unary("absf", call.operands[0], call.kinds[0])
    return _flag(call, call.arithmetic.compare("oeq", size, _constant(call, np.inf), call.kinds[0]))


def _is_finite(call: Call) -> Array:
    size = call.arithmetic.unary("absf", call.operands[0], call.kinds[0])
    return _flag(call, call.arithmetic.compare("olt", size, _constant(call, np.inf), call.kinds[0]))


def _sign_bit(call: Call) -> Array:
    bits = IntegerType(8 * dtype_of(call.kinds[0]).itemsize)
    return _flag(call, call.arithmetic.bitcast(call.operands[0], call.kinds[0], bits) < 0)


def _exponent(call: Call) -> Array:
    found = call.arithmetic.unary("logb", call.operands[0], call.kinds[0])
    return call.arithmetic.to_integer(found, True, call.kinds[0], call.result)


def _bits(call: Call) -> Array:
    return call.arithmetic.bitcast(call.operands[0], call.kinds[0], call.result)


def _to_integer(rounding: str, *, signed: bool) -> Implementation:
    def convert(call: Call) -> Array:
        x, kind = call.operands[0], call.kinds[0]
        whole = x if rounding == "trunc" else call.arithmetic.unary(rounding, x, kind)
        return call.arithmetic.to_integer(whole, signed, kind, call.result)

    return convert


def _from_integer(*, signed: bool) -> Implementation:
    return lambda call: call.arithmetic.from_integer(call.operands[0], signed, call.kinds[0], call.result)


def _float_cast(call: Call) -> Array:
    return call.arithmetic.convert(call.operands[0], call.kinds[0], call.result)


def _float_cast_to_zero(call: Call) -> Array:
    return call.arithmetic.convert(call.operands[0], call.kinds[0], call.result, "rtz")


# ------------------------------------------------------------------------------------------------------ integers


def _count_leading_zeros(call: Call) -> Array:
    return integers.leading_zeros(call.operands[0]).astype(dtype_of(call.result))


def _population(call: Call) -> Array:
    return np.bitwise_count(integers.unsigned(call.operands[0])).astype(dtype_of(call.result))


def _first_set(call: Call) -> Array:
    a = call.operands[0]
    lowest = a & -a
    position = 8 * a.dtype.itemsize - integers.leading_zeros(lowest)
    return position.astype(dtype_of(call.result))


def _absolute(call: Call) -> Array:
    return np.abs(call.operands[0]) if not is_float(call.kinds[0]) else call.arithmetic.unary("absf", *_first(call))


def _first(call: Call) -> tuple[Array, Type]:
    return call.operands[0], call.kinds[0]


def _high(*, signed: bool) -> Implementation:
    return lambda call: integers.multiply_high(call.operands[0], call.operands[1], signed=signed)


def _permuted_bytes(call: Call) -> Array:
    x, y, selector = call.operands
    return integers.permute_bytes(x, y, selector)


def _reversed_bits(call: Call) -> Array:
    return integers.reverse_bits(call.operands[0])


_DIRECTIONS = {"rn": "roundeven", "rz": "trunc", "rd": "floor", "ru": "ceil"}

_OTHERS: dict[str, Implementation] = {
    "absi": _absolute,
    "fma": _fma,
    "frcp_rn": _reciprocal,
    "saturate": _saturated,
    "ldexp": _scaled,
    "pown": _integer_power,
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "isfinite": _is_finite,
    "signbit": _sign_bit,
    "ilogb": _exponent,
    "clz": _count_leading_zeros,
    "clzll": _count_leading_zeros,
    "popc": _population,
    "popcll": _population,
    "ffs": _first_set,
    "ffsll": _first_set,
    "brev": _reversed_bits,
    "brevll": _reversed_bits,
    "byte_perm": _permuted_bytes,
    "mulhi": _high(signed=True),
    "mul64hi": _high(signed=True),
    "umulhi": _high(signed=False),
    "umul64hi": _high(signed=False),
    "double2float_rn": _float_cast,
    "double2float_rz": _float_cast_to_zero,
    "llrint": _to_integer("roundeven", signed=True),
    "llround": _to_integer("round", signed=True),
    **dict.fromkeys(("float_as_int", "float_as_uint", "int_as_float", "uint_as_float"), _bits),
    **dict.fromkeys(("double_as_longlong", "longlong_as_double"), _bits),
    **{
        f"{source}2{target}_{direction}": _to_integer(function, signed=target in ("int", "ll"))
        for source in ("float", "double")
        for target in ("int", "uint", "ll", "ull")
        for direction, function in _DIRECTIONS.items()
    },
    **{
        f"{source}2{target}_rn": _from_integer(signed=source in ("int", "ll"))
        for source in ("int", "uint", "ll", "ull")
        for target in ("float", "double")
    },
}

_OCKL: dict[str, Implementation] = {
    "clz_u32": _count_leading_zeros,
    "clz_u64": _count_leading_zeros,
    "popcount_u32": _population,
    "popcount_u64": _population,
}
