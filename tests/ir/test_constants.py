"""Floats by their bits, against formats that others decode."""

from __future__ import annotations

import math
import struct
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tt2gl.ir.constants import dense_elements, float_from_bits
from tt2gl.ir.types import IntegerType, TensorType

# Two names of MLIR, ml_dtypes and the number of bit patterns.
EIGHT_BITS = {
    "f8E5M2": "float8_e5m2",
    "f8E4M3": "float8_e4m3",
    "f8E3M4": "float8_e3m4",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f6E3M2FN": "float6_e3m2fn",
    "f6E2M3FN": "float6_e2m3fn",
    "f4E2M1FN": "float4_e2m1fn",
}


@pytest.fixture(scope="module")
def ml_dtypes() -> ModuleType:
    """The package, where it is installed."""
    module: ModuleType = pytest.importorskip("ml_dtypes")
    return module


def same(first: float, second: float) -> bool:
    """Equal, NaN too, and of the same sign where they are zero."""
    return (
        math.isnan(first)
        and math.isnan(second)
        or (first, math.copysign(1, first)) == (second, math.copysign(1, second))
    )


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_every_pattern_of_a_small_format(name: str, ml_dtypes: ModuleType) -> None:
    dtype = np.dtype(getattr(ml_dtypes, EIGHT_BITS[name]))
    patterns = range(1 << int(name[1]))
    expected = np.array(patterns, np.uint8).view(dtype).astype(np.float64)
    assert [bits for bits in patterns if not same(float_from_bits(name, bits).value, float(expected[bits]))] == []


@given(st.integers(0, 2**16 - 1))
def test_half(bits: int) -> None:
    assert same(float_from_bits("f16", bits).value, struct.unpack("<e", bits.to_bytes(2, "little"))[0])


@given(st.integers(0, 2**16 - 1))
def test_bfloat(bits: int) -> None:
    assert same(float_from_bits("bf16", bits).value, struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])


@given(st.integers(0, 2**32 - 1))
def test_single(bits: int) -> None:
    assert same(float_from_bits("f32", bits).value, struct.unpack("<f", bits.to_bytes(4, "little"))[0])


@given(st.integers(0, 2**64 - 1))
def test_double(bits: int) -> None:
    assert same(float_from_bits("f64", bits).value, struct.unpack("<d", bits.to_bytes(8, "little"))[0])


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=9))
def test_integers_from_their_bytes(numbers: list[int]) -> None:
    raw = "0x" + np.array(numbers, "<i4").tobytes().hex()
    kind = TensorType((len(numbers),), IntegerType(32))
    assert dense_elements(kind, (), raw).elements == tuple(numbers)
