"""Numbers as MLIR prints them: floats as decimals or as bits, and the elements of `dense<...>`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tt2gl.ir.attributes import Dense, FloatAttr
from tt2gl.ir.types import FloatType, IndexType, IntegerType, TensorType, Type, VectorType

# An element of `dense<...>` as it is printed.
DenseText = str

# Bits of exponent and fraction, bias, and what the largest exponents mean: as IEEE has it, "f" no infinity and one NaN
# a sign, "z" one NaN only, at what would be minus zero, "n" numbers throughout.
_FORMATS: dict[str, tuple[int, int, int, str]] = {
    "f64": (11, 52, 1023, "ieee"),
    "f32": (8, 23, 127, "ieee"),
    "tf32": (8, 10, 127, "ieee"),
    "f16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "f8E5M2": (5, 2, 15, "ieee"),
    "f8E4M3": (4, 3, 7, "ieee"),
    "f8E3M4": (3, 4, 3, "ieee"),
    "f8E4M3FN": (4, 3, 7, "f"),
    "f8E5M2FNUZ": (5, 2, 16, "z"),
    "f8E4M3FNUZ": (4, 3, 8, "z"),
    "f8E4M3B11FNUZ": (4, 3, 11, "z"),
    "f6E3M2FN": (3, 2, 3, "n"),
    "f6E2M3FN": (2, 3, 1, "n"),
    "f4E2M1FN": (2, 1, 1, "n"),
}


def float_from_text(kind: str, text: str) -> FloatAttr:
    """A float of type `kind` printed as a decimal."""
    return FloatAttr(kind, float(text))


def float_from_bits(kind: str, bits: int) -> FloatAttr:
    """A float of type `kind` printed as its bits. Raises KeyError for a type without a known format."""
    exponent_bits, fraction_bits, bias, special = _FORMATS[kind]
    fraction = bits & ((1 << fraction_bits) - 1)
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    negative = bool(bits >> (exponent_bits + fraction_bits) & 1)
    largest = exponent == (1 << exponent_bits) - 1
    lone_nans = {
        "f": largest and fraction == (1 << fraction_bits) - 1,
        "z": negative and not exponent and not fraction,
    }
    if special == "ieee" and largest:
        value = math.nan if fraction else math.inf
    elif lone_nans.get(special):
        value = math.nan
    else:
        whole = fraction | (bool(exponent) << fraction_bits)
        value = math.ldexp(whole, max(exponent, 1) - bias - fraction_bits)
    return FloatAttr(kind, value if math.isnan(value) or not negative else -value, bits)


def dense_elements(kind: Type, texts: Iterable[DenseText], raw: str | None) -> Dense:
    """The elements of `dense<...>` of type `kind`, from their texts or from the hexadecimal of all their bytes.

    Raises ValueError where they do not fit the type, KeyError where the type has no known format.
    """
    if not isinstance(kind, TensorType | VectorType):
        raise ValueError("not a tensor or vector")
    elements = _from_bytes(kind, raw) if raw is not None else tuple(_element(kind.element, text) for text in texts)
    if len(elements) not in (1, math.prod(kind.shape)):
        raise ValueError(f"{len(elements)} elements")
    return Dense(kind, elements)


def _element(kind: Type, text: DenseText) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if isinstance(kind, FloatType):
        return float_from_bits(kind.name, int(text, 16)) if text.startswith("0x") else float_from_text(kind.name, text)
    if not isinstance(kind, IntegerType | IndexType):
        raise ValueError(f"elements of type {kind}")
    return int(text, 0)


def _from_bytes(kind: TensorType | VectorType, raw: str) -> tuple[Any, ...]:
    """Elements from "0x...", each in little-endian bytes; those of i1 a byte each, or eight to a byte."""
    if not raw.startswith("0x"):
        raise ValueError("a string that is not hexadecimal")
    data, count, element = bytes.fromhex(raw[2:]), math.prod(kind.shape), kind.element
    if isinstance(element, FloatType):
        exponent_bits, fraction_bits, *_ = _FORMATS[element.name]
        size = (exponent_bits + fraction_bits + 8) // 8
        return tuple(float_from_bits(element.name, int.from_bytes(part, "little")) for part in _parts(data, size))
    if isinstance(element, IntegerType) and element.width == 1:
        if len(data) in (1, count):
            return tuple(byte != 0 for byte in data)
        return tuple(bool(data[index // 8] >> index % 8 & 1) for index in range(count))
    if not isinstance(element, IntegerType | IndexType):
        raise ValueError(f"elements of type {element}")
    size = 8 if isinstance(element, IndexType) else (element.width + 7) // 8
    signed = not (isinstance(element, IntegerType) and element.signedness == "u")
    return tuple(int.from_bytes(part, "little", signed=signed) for part in _parts(data, size))


def _parts(data: bytes, size: int) -> list[bytes]:
    if len(data) % size:
        raise ValueError(f"{len(data)} bytes")
    return [data[start : start + size] for start in range(0, len(data), size)]
