"""Formats: every pattern of the small ones, both ways, against ml_dtypes and against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tt2gl.simulate.formats import UNSIGNED_ZERO, integer_of, narrow, to_odd, widen
from tt2gl.simulate.values import Array

# numpy warns of the overflows and NaN that these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BYTES = [
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3b11fnuz,
]
SMALL = [np.float16, ml_dtypes.bfloat16, *BYTES]


def patterns(kind: Any) -> Array:
    """Every value of a format."""
    dtype = np.dtype(kind)
    return np.arange(1 << 8 * dtype.itemsize).astype(integer_of(dtype)).view(dtype)


def interesting() -> Array:
    """float32 at, and just beside, everything representable in a small format and halfway between, and all else."""
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)]
    values.append(
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 464, 465, 57344, 61440, 65504, 65519, 65520], np.float32)
    )
    for kind in SMALL:
        found = np.sort(widen(patterns(kind))[np.isfinite(widen(patterns(kind)))].astype(np.float64))
        middles = ((found[1:] + found[:-1]) / 2).astype(np.float32)
        for near in (found.astype(np.float32), middles):
            values += [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return np.concatenate(values)


def same(a: Array, b: Array) -> bool:
    """Equal bit for bit, any NaN being as good as another."""
    bits = integer_of(a.dtype)
    nan = np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32))
    return a.dtype == b.dtype and bool(((a.view(bits) == b.view(bits)) | nan).all())


@pytest.mark.parametrize("kind", SMALL)
def test_widening_is_exact_and_narrowing_undoes_it(kind: Any) -> None:
    values = patterns(kind)
    assert np.array_equal(widen(values), values.astype(np.float32), equal_nan=True)
    assert same(narrow(widen(values), np.dtype(kind)), values)
    assert same(narrow(widen(values).astype(np.float64), np.dtype(kind)), values)


@pytest.mark.parametrize("kind", SMALL)
def test_narrowing_rounds_to_nearest_even(kind: Any) -> None:
    values = interesting()
    with np.errstate(all="ignore"):
        assert same(narrow(values, np.dtype(kind)), values.astype(kind))


@pytest.mark.parametrize("kind", SMALL)
def test_narrowing_towards_zero_never_grows_and_loses_less_than_a_step(kind: Any) -> None:
    values = interesting()
    values = values[np.isfinite(values)]
    with np.errstate(all="ignore"):
        found = widen(narrow(values, np.dtype(kind), "rtz"))
    ladder = np.unique(np.abs(widen(patterns(kind))[np.isfinite(widen(patterns(kind)))]))
    expected = ladder[np.searchsorted(ladder, np.abs(values), side="right") - 1]
    assert np.array_equal(np.abs(found), expected)
    assert ((found == 0) | (np.sign(found) == np.sign(values))).all()


@pytest.mark.parametrize("kind", SMALL)
def test_saturation_makes_the_largest_number_of_what_is_too_large(kind: Any) -> None:
    finfo: Any = ml_dtypes.finfo
    largest = float(finfo(kind).max)
    values = np.array([np.inf, -np.inf, 3.4e38, -3.4e38, largest, np.nan], np.float32)
    with np.errstate(all="ignore"):
        found = widen(narrow(values, np.dtype(kind), saturate=True))
    assert found[2:5].tolist() == [largest, -largest, largest]
    if np.dtype(kind) in UNSIGNED_ZERO:
        assert np.isnan(found[:2]).all()
    else:
        assert found[:2].tolist() == [largest, -largest]
    assert np.isnan(found[5])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_float64_towards_zero(kind: Any) -> None:
    values = np.random.default_rng(1).standard_normal(1000)
    found = narrow(values, np.dtype(kind), "rtz").astype(np.float64)
    assert (np.abs(found) <= np.abs(values)).all()
    assert np.array_equal(found, values.astype(kind)) is False
    nearest = values.astype(kind).astype(np.float64)
    assert (found[np.abs(nearest) <= np.abs(values)] == nearest[np.abs(nearest) <= np.abs(values)]).all()


def test_float64_to_bfloat16_is_rounded_once() -> None:
    # Just above the middle of two bfloat16, by less than float32 can tell: rounding twice would give 1.
    value = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40])
    found = narrow(value, np.dtype(ml_dtypes.bfloat16)).astype(np.float64)
    assert found.tolist() == [1 + 2.0**-7, 1, 1]


def test_rounding_to_odd_keeps_what_is_exact_and_marks_what_is_not() -> None:
    values = np.array([1.5, 1 + 2.0**-40, 1 - 2.0**-40, -1 - 2.0**-40, 0.1, 2.0**-160, np.inf, np.nan])
    found = to_odd(values)
    assert found[0] == 1.5
    assert np.isinf(found[6])
    assert np.isnan(found[7])
    for value, odd in zip(values[1:6], found[1:6], strict=True):
        assert odd.view(np.uint32) & 1
        step = Fraction(2) ** -149 if odd == 0 else Fraction(float(np.spacing(np.abs(odd))))
        assert abs(Fraction(float(odd)) - Fraction(float(value))) < step
