"""Comparison of what two simulated kernels left in memory."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tt2gl.ir.types import FloatType, IntegerType
from tt2gl.launches import TensorArg
from tt2gl.simulate.api import TensorOutput
from tt2gl.verify.outputs import AGREED, Agreement, combine, compare, compare_exactly, distances

MATRIX = TensorArg("float32", (4, 8), (8, 1))


def output(values: Any, written: Any = True) -> TensorOutput:
    elements = np.array(values)
    return TensorOutput("y", FloatType("f32"), elements, np.broadcast_to(written, elements.shape).copy(), True)


ONES = np.ones(32, np.float32)


def changed(position: int, value: Any, base: Any = ONES) -> TensorOutput:
    values = base.copy()
    values[position] = value
    return output(values)


def test_the_same_is_bitwise() -> None:
    assert compare(MATRIX, output(ONES), output(ONES)) == AGREED
    assert compare_exactly(MATRIX, output(ONES), output(ONES)) == AGREED


def test_a_unit_in_the_last_place_is_within_the_bounds() -> None:
    found = compare(MATRIX, output(ONES), changed(13, np.nextafter(np.float32(1), np.float32(2))))
    assert found == Agreement(True, False, 1.0)


def test_a_wrong_value_is_told_with_its_index() -> None:
    found = compare(MATRIX, output(ONES), changed(13, 2.0))
    assert (found.equal, found.bitwise, found.max_ulps) == (False, False, 2.0**23)
    assert found.reason == "y[1, 5] is 2.0 and should be 1.0 (error 1, allowed 1e-05)"


def test_the_sign_of_zero_and_the_bits_of_nan_do_not_matter() -> None:
    zeros = np.zeros(32, np.float32)
    assert compare(MATRIX, output(zeros), changed(3, -0.0, zeros)) == Agreement(True, False, 0.0)
    other = np.array([0xFFC00001], np.uint32).view(np.float32)[0]
    assert compare(MATRIX, changed(3, np.nan), changed(3, other)).equal


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_is_no_nan_and_no_infinity(value: float) -> None:
    found = compare(MATRIX, output(ONES), changed(0, value))
    assert not found.equal
    assert "y[0, 0]" in found.reason


def test_small_values_count_by_the_size_of_the_others() -> None:
    big = np.full(32, 1000, np.float32)
    assert compare(MATRIX, changed(1, 1e-4, big), changed(1, 2e-4, big)).equal


def test_what_one_alone_writes_differs() -> None:
    most = np.arange(32) != 9
    found = compare(MATRIX, output(ONES), output(ONES, most))
    assert (found.equal, found.max_ulps) == (False, math.inf)
    assert found.reason == "y[1, 1] is written by the Triton kernel alone"
    assert "by the Gluon kernel alone" in compare(MATRIX, output(ONES, most), output(ONES)).reason
    assert "alone" in compare_exactly(MATRIX, output(ONES), output(ONES, most)).reason


def test_what_nobody_writes_does_not_count() -> None:
    assert compare(MATRIX, output(ONES, False), output(2 * ONES, False)) == AGREED


@pytest.mark.parametrize(
    ("shape", "stride", "position", "index"),
    [
        ((4, 8), (8, 1), 13, "[1, 5]"),
        ((4, 8), (1, 4), 13, "[1, 3]"),
        ((2, 1, 3), (10, 7, 2), 14, "[1, 0, 2]"),
        ((4, 8), (0, 1), 5, "[0, 5]"),
        ((2, 3), (10, 1), 4, " (element 4 in memory, between those of the tensor)"),
        ((), (), 0, "[]"),
    ],
)
def test_the_index_follows_the_strides(
    shape: tuple[int, ...], stride: tuple[int, ...], position: int, index: str
) -> None:
    count = 32
    arg = TensorArg("float32", shape, stride)
    found = compare(arg, output(ONES[:count]), changed(position, 3.0))
    assert found.reason.startswith(f"y{index} is 3.0")


def test_integers_differ_by_one_and_are_not_equal() -> None:
    arg = TensorArg("int64", (4,), (1,))
    one = np.array([0, 2**62, 0, 0])
    elements = TensorOutput("y", IntegerType(64), one, np.ones(4, bool), False)
    other = TensorOutput("y", IntegerType(64), one + 1, np.ones(4, bool), False)
    assert not compare(arg, elements, other).equal
    assert compare(arg, elements, elements) == AGREED


def test_elements_are_of_the_launch_s_type() -> None:
    arg = TensorArg("uint8", (2,), (1,))
    one = TensorOutput("y", IntegerType(8), np.array([-1, 0], np.int8), np.ones(2, bool), False)
    two = TensorOutput("y", IntegerType(8), np.array([-2, 0], np.int8), np.ones(2, bool), False)
    assert "y[0] is 254 and should be 255" in compare(arg, one, two).reason


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_neighbours_are_one_apart(dtype: Any) -> None:
    bits = np.arange(0x10, 0x14, dtype=f"i{np.dtype(dtype).itemsize}")
    values = bits.view(dtype)
    assert distances(values[1:], values[:-1]).tolist() == [1.0, 1.0, 1.0]
    assert distances(-values[:1], values[:1]).tolist() == [32.0]


@given(st.floats(width=32), st.floats(width=32))
def test_distances_are_symmetric_and_zero_for_equals(one: float, two: float) -> None:
    a, b = np.array([one], np.float32), np.array([two], np.float32)
    assert distances(a, b) == distances(b, a)
    assert (distances(a, b)[0] == 0) == (one == two or (math.isnan(one) and math.isnan(two)))


def test_combining_keeps_the_worst() -> None:
    parts = [AGREED, Agreement(True, False, 2.0), Agreement(False, False, 1.0, "here")]
    assert combine(parts) == Agreement(False, False, 2.0, "here")
    assert combine([]) == AGREED
