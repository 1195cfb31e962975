"""The prime field: its laws, the numbers in it, and what it makes of functions, orders and casts."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.operations import BF16, F8E4M3, F16, F32, F64, I1, I8, I16, I32, I64, of
from tt2gl.ir.types import FloatType, IntegerType
from tt2gl.simulate.field import INFINITY, NAN, Field
from tt2gl.simulate.formats import integer_of
from tt2gl.simulate.modular import HALF, P, hashed, inverse, power
from tt2gl.simulate.values import Array, dtype_of

pytestmark = pytest.mark.once

FIELD = Field()
RESIDUES = st.integers(-HALF, HALF)
FLOATS32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def held(*values: int) -> Array:
    return np.array(values, np.int64)


def image(value: Fraction) -> int:
    """The residue of a rational number."""
    residue = value.numerator * pow(value.denominator, -1, P) % P
    return residue - P if residue > HALF else residue


def residues(kind: FloatType, *values: float) -> Array:
    return FIELD.from_bits(of(kind, *values), kind)


def test_two_generates_the_field() -> None:
    # P - 1 is twice a prime, so an element that is neither 1 nor -1 generates all or half of the field.
    assert all((P - 1) // 2 % divisor for divisor in range(2, 40_000))
    assert pow(2, (P - 1) // 2, P) == P - 1


@given(FLOATS32)
def test_numbers_become_their_image(value: float) -> None:
    assert residues(F32, value).tolist() == [image(Fraction(value))]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float64_too(value: float) -> None:
    assert residues(F64, value).tolist() == [image(Fraction(value))]


@pytest.mark.parametrize("kind", [F8E4M3, F16, BF16], ids=str)
def test_the_same_number_in_every_format(kind: FloatType) -> None:
    dtype = dtype_of(kind)
    values = np.arange(1 << 8 * dtype.itemsize).astype(integer_of(dtype)).view(dtype)
    with np.errstate(all="ignore"):
        wide = values.astype(np.float32)
    assert np.array_equal(FIELD.from_bits(values, kind), FIELD.from_bits(wide, F32))


@pytest.mark.parametrize(("kind", "bits"), [(F8E4M3, I8), (F16, I16), (BF16, I16)], ids=str)
def test_numbers_of_narrow_formats_survive_their_bits(kind: FloatType, bits: IntegerType) -> None:
    patterns = np.arange(1 << bits.width).astype(integer_of(dtype_of(kind)))
    values = FIELD.from_bits(patterns.view(dtype_of(kind)), kind)
    found = FIELD.bitcast(values, kind, bits)
    assert found.dtype == dtype_of(bits)
    assert np.array_equal(FIELD.bitcast(found, bits, kind), values)
    # All but -0 and the NaNs, of which one stands for the others.
    distinct = np.unique(values, return_index=True)[1]
    assert np.array_equal(found.view(patterns.dtype)[distinct], patterns[distinct])


def test_other_numbers_have_fixed_bits_of_narrow_formats() -> None:
    values = residues(F32, 1 / 3, 1 / 3, 0.1)
    first, second, third = FIELD.bitcast(values, F16, I16).tolist()
    assert first == second != third


@given(RESIDUES, RESIDUES, RESIDUES)
def test_the_laws_of_a_field(x: int, y: int, z: int) -> None:
    a, b, c = held(x), held(y), held(z)

    def add(p: Array, q: Array) -> Array:
        return FIELD.binary("add", p, q, F32)

    def mul(p: Array, q: Array) -> Array:
        return FIELD.binary("mul", p, q, F32)

    assert add(add(a, b), c) == add(a, add(b, c))
    assert mul(mul(a, b), c) == mul(a, mul(b, c))
    assert mul(a, add(b, c)) == add(mul(a, b), mul(a, c))
    assert FIELD.binary("sub", a, b, F32) == add(a, FIELD.unary("neg", b, F32))
    assert FIELD.fma(a, b, c, F32) == add(mul(a, b), c)
    assert add(a, b) == image(Fraction(x + y))
    assert mul(a, b) == image(Fraction(x * y))
    if y:
        assert mul(FIELD.binary("div", a, b, F32), b) == a


def test_many_residues_at_once_are_what_they_are_one_by_one() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-HALF, HALF, (2, 3, 40_000))
    for name, exact in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
        found = FIELD.binary(name, a, b, F32)
        assert np.abs(found).max() <= HALF
        for index in range(0, 40_000, 997):
            assert int(found[1, index] - exact(int(a[1, index]), int(b[1, index]))) % P == 0
    assert (FIELD.binary("mul", inverse(a), a, F32) == (a != 0)).all()
    assert (power(a[0, :50], P - 1) == 1).all()


def test_residues_at_the_edges_stay_in_range() -> None:
    edges = held(-HALF, -HALF + 1, -1, 0, 1, HALF - 1, HALF)
    a, b = (side.ravel() for side in np.meshgrid(edges, edges))
    for name, exact in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        found = FIELD.binary(name, a, b, F32)
        assert np.abs(found).max() <= HALF
        assert ((found - exact(a, b)) % P == 0).all()
    for value in FIELD.fma(a, b, edges[-1:], F32):
        assert abs(value) <= HALF


def test_sums_and_quotients_of_numbers_are_exact() -> None:
    tenth, ten = residues(F32, 0.1), residues(F32, 10)
    assert FIELD.binary("mul", residues(F32, 0.5), residues(F32, 2), F32).tolist() == [1]
    assert FIELD.binary("add", residues(F32, 1e30), residues(F32, 1e-30), F32).tolist() == [
        image(Fraction(float(np.float32(1e30))) + Fraction(float(np.float32(1e-30))))
    ]
    # The float nearest to a tenth is not a tenth.
    assert FIELD.binary("mul", tenth, ten, F32).tolist() != [1]
    assert FIELD.binary("mul", FIELD.binary("div", held(1), ten, F32), ten, F32).tolist() == [1]


def test_a_quotient_by_zero_depends_on_the_dividend() -> None:
    by_zero = FIELD.binary("div", held(1, 2, 2), held(0, 0, 0), F32)
    assert by_zero[0] != by_zero[1]
    assert by_zero[1] == by_zero[2]


def test_infinities_bound_the_order() -> None:
    values = residues(F32, 0, 1e38, -1e-38, 0.1, 12345)
    low = np.full(values.shape, residues(F32, -math.inf))
    assert np.array_equal(FIELD.binary("maxnum", values, low, F32), values)
    assert np.array_equal(FIELD.binary("minimum", values, -low, F32), values)
    assert FIELD.unary("neg", residues(F32, math.inf), F32) == residues(F32, -math.inf)
    assert FIELD.compare("olt", low, values, F32).all()


@given(RESIDUES, RESIDUES)
def test_orders_agree_with_one_another(x: int, y: int) -> None:
    a, b = held(x), held(y)
    if NAN in (x, y):
        return
    less = FIELD.compare("olt", a, b, F32)
    assert FIELD.binary("minnum", a, b, F32) == np.where(less, a, b)
    assert FIELD.binary("maximum", a, b, F32) == np.where(less, b, a)
    assert FIELD.compare("uge", a, b, F32) == ~less
    negative = FIELD.compare("olt", a, held(0), F32)
    assert FIELD.unary("absf", a, F32) == np.where(negative, FIELD.unary("neg", a, F32), a)


def test_nan_is_unordered_and_loses_to_numbers() -> None:
    nan, one = residues(F32, math.nan), residues(F32, 1)
    assert not FIELD.compare("oeq", nan, nan, F32)
    assert FIELD.compare("une", nan, nan, F32)
    assert FIELD.compare("uno", nan, one, F32)
    assert FIELD.binary("maxnum", nan, one, F32) == one
    assert FIELD.binary("maximum", nan, one, F32) == nan


def test_functions_are_fixed_and_differ() -> None:
    values = held(3, 4, 3)
    for name in ("exp", "log", "sin", "tanh", "erf", "sqrt"):
        found = FIELD.unary(name, values, F32)
        assert found[0] == found[2] != found[1]
    assert FIELD.unary("exp", values, F32)[0] != FIELD.unary("sin", values, F32)[0]
    assert FIELD.unary("exp", residues(F32, 0, -math.inf), F32).tolist() == [1, 0]
    root = FIELD.unary("sqrt", values, F32)
    assert FIELD.binary("mul", FIELD.unary("rsqrt", values, F32), root, F32).tolist() == [1, 1, 1]
    assert FIELD.binary("pow", values, held(2, 2, 2), F32)[0] != FIELD.binary("atan2", values, held(2, 2, 2), F32)[0]
    assert FIELD.binary("pow", held(2), held(3), F32) != FIELD.binary("pow", held(3), held(2), F32)


def test_hashes_spread() -> None:
    found = hashed(np.arange(100_000), 7)
    assert len(np.unique(found)) > 99_990
    assert abs(float(found.mean())) < 0.02 * HALF
    assert np.abs(found).max() <= HALF


def test_casts_between_floats_change_nothing() -> None:
    values = residues(F32, 0.1, 1e30, 3)
    assert FIELD.convert(values, F32, F16) is values
    assert FIELD.convert(values, F32, F8E4M3, "rtz") is values


def test_integers_and_back() -> None:
    assert FIELD.from_integer(of(I32, 7, -7), True, I32, F32).tolist() == [7, -7]
    assert FIELD.from_integer(of(I8, -1), False, I8, F32).tolist() == [255]
    assert FIELD.from_integer(of(I64, -1), False, I64, F32).tolist() == [image(Fraction(2**64 - 1))]
    assert FIELD.from_integer(of(I64, -(2**63)), True, I64, F32).tolist() == [image(Fraction(-(2**63)))]
    assert FIELD.from_integer(of(I1, 1), False, I1, F32).tolist() == [1]
    assert FIELD.to_integer(held(7, -7), True, F32, I32).tolist() == [7, -7]
    other = FIELD.to_integer(residues(F32, 0.1, 0.1), True, F32, I32)
    assert other[0] == other[1]
    assert 0 <= other[0] < 97


def test_bits_of_a_float_cast_back_to_it() -> None:
    values = residues(F32, 0.1, -3, 1e20)
    bits = FIELD.bitcast(values, F32, I32)
    assert bits.dtype == np.int32
    assert np.array_equal(FIELD.bitcast(bits, I32, F32), values)
    assert FIELD.bitcast(of(I16, 0x3C00), I16, F16).tolist() == [1]


def test_products_of_matrices_are_exact() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-HALF, HALF, (3, 16, 100)), rng.integers(-HALF, HALF, (1, 100, 8))
    c = rng.integers(-HALF, HALF, (3, 16, 8))
    found = FIELD.matmul(a, b, c, (F32, F32, F32), "tf32")
    exact = (a.astype(object) @ b.astype(object) + c.astype(object)) % P
    assert ((found - exact) % P == 0).all()
    assert np.abs(found).max() <= HALF
    extreme = FIELD.matmul(np.full((1, 2, 5000), HALF), np.full((1, 5000, 2), -HALF), None, (F32, F32, F32), "ieee")
    assert ((extreme + 5000 * HALF * HALF % P) % P == 0).all()


def test_a_product_of_matrices_in_parts_is_the_whole() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-HALF, HALF, (1, 8, 64)), rng.integers(-HALF, HALF, (1, 64, 8))
    kinds = (F16, F16, F32)
    first = FIELD.matmul(a[..., :32], b[:, :32], None, kinds, "tf32")
    assert np.array_equal(
        FIELD.matmul(a[..., 32:], b[:, 32:], first, kinds, "ieee"), FIELD.matmul(a, b, None, kinds, "tf32")
    )


def test_constants_are_images_of_the_floats_they_are() -> None:
    assert residues(F32, 1.44269504).tolist() == [image(Fraction(float(np.float32(1.44269504))))]
    assert residues(F32, math.inf).tolist() == [INFINITY]
