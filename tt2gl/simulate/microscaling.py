"""Microscaling formats (OCP MX, and NVIDIA's): 4-bit floats, two to a byte, and scales shared by blocks of elements.

All of these formats fit into float32, and an element times its scale does too, so that is what they become.
"""

from __future__ import annotations

import math

import numpy as np

from tt2gl.ir.types import FloatType, IntegerType, Type, element_type
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.values import Array, UnknownType

F32 = FloatType("f32")

# Formats of operands, by the number that attributes have for them.
FORMATS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16")
_TYPES = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "bf16": "bf16", "fp16": "f16"}

# What the 16 patterns of e2m1 mean.
_E2M1: Array = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def nibbles(packed: Array, axis: int) -> Array:
    """The halves of bytes, the lower one first, side by side along an axis of the array: that axis doubles."""
    parts = packed.view(np.uint8)
    pairs = np.stack([parts & 15, parts >> 4], axis=axis + 1)
    shape = list(packed.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def packed(codes: Array, axis: int) -> Array:
    """The reverse of `nibbles`, as int8: that axis halves."""
    shape = [*codes.shape[:axis], codes.shape[axis] // 2, 2, *codes.shape[axis + 1 :]]
    pairs = codes.astype(np.uint8).reshape(shape)
    low, high = np.take(pairs, 0, axis + 1), np.take(pairs, 1, axis + 1)
    joined: Array = low | high << 4
    return joined.view(np.int8)


def e2m1_values(codes: Array, arithmetic: Arithmetic) -> Array:
    """4-bit floats, one to an element, as the arithmetic holds f32."""
    return arithmetic.from_bits(_E2M1[codes], F32)


def e2m1_codes(values: Array) -> Array:
    """float32 rounded to 4-bit floats: to nearest even, what is too large to the largest, NaN to it too."""
    magnitudes = np.abs(values)
    # Between two neighbours lies one bound; at the bound itself the even pattern wins.
    bounds = (_E2M1[:7] + _E2M1[1:8]) / 2
    below = np.searchsorted(bounds, magnitudes, side="left")
    above = np.searchsorted(bounds, magnitudes, side="right")
    codes = np.where(below & 1, above, below)
    codes = np.where(np.isnan(values), 7, codes)
    signed: Array = codes | np.signbit(values) << 3
    return signed.astype(np.uint8)


Ends = tuple[float, float]
"""What the smallest exponent and the largest stand for as scales."""
OCP: Ends = (2.0**-127, math.nan)
"""As the format defines them."""


def scale_values(scales: Array, kind: Type, arithmetic: Arithmetic, ends: Ends = OCP) -> Array:
    """Scales as the arithmetic holds f32: i8 is an exponent alone (e8m0), a float is what it says.

    `ends`: zero and infinity where exponents are put into the bits of a float, and nothing is said of 255.
    """
    element = element_type(kind)
    if not isinstance(element, IntegerType):
        return arithmetic.convert(scales, element, F32)
    exponents = scales.view(np.uint8).astype(np.int32)
    # The smallest exponent is a subnormal number of float32, and has no bit pattern like the others.
    least, greatest = map(np.float32, ends)
    powers = np.where(exponents == 0, least, (exponents << 23).view(np.float32))
    return arithmetic.from_bits(np.where(exponents == 255, greatest, powers), F32)


def spread(scales: Array, axis: int, extent: int) -> Array:
    """Scales repeated along an axis of the array until it has `extent` elements: each serves a block."""
    return scales if scales.shape[axis] == extent else np.repeat(scales, extent // scales.shape[axis], axis)


def operand_values(elements: Array, kind: Type, form: str, packed_along: int, arithmetic: Arithmetic) -> Array:
    """Elements of a form as the arithmetic holds f32; those of e2m1 come two to a byte, along an axis of the array.

    Elements of another type of that width are taken for what the form says. Raises UnknownType.
    """
    if form == "e2m1":
        return e2m1_values(nibbles(elements, packed_along), arithmetic)
    if form not in _TYPES:
        raise UnknownType(f"there is no array of {form}")
    meant = FloatType(_TYPES[form])
    if element_type(kind) != meant:
        elements = arithmetic.bitcast(elements, element_type(kind), meant)
    return arithmetic.convert(elements, meant, F32)


def scaled_operand(
    elements: Array,
    kind: Type,
    form: str,
    scales: Array | None,
    scale_kind: Type | None,
    axes: tuple[int, int],
    arithmetic: Arithmetic,
    ends: Ends = OCP,
) -> Array:
    """An operand of a scaled product as the arithmetic holds f32, its scales folded in; `ends`: see `scale_values`.

    `form` is one of `FORMATS`; `axes` are the axis of the array that is summed over, and the one along which e2m1 is
    packed. `scales` are (P, rows, blocks), or (P, columns, blocks) where the axis summed over is not the last.
    Raises UnknownType for a form that has no array.
    """
    values = operand_values(elements, kind, form, axes[1], arithmetic)
    if scales is None or scale_kind is None:
        return values
    factors = scale_values(scales, scale_kind, arithmetic, ends)
    if axes[0] != values.ndim - 1:
        factors = factors.swapaxes(-1, -2)
    return arithmetic.binary("mul", values, spread(factors, axes[0], values.shape[axes[0]]), F32)
