"""IEEE arithmetic: rounded once, whatever the format, and NaN, infinities and signed zeros as the hardware has them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.operations import BF16, F8E4M3, F8E5M2, F16, F32, F64, I1, I8, I16, I32, I64, of
from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate.formats import integer_of
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.values import Array, dtype_of

# numpy warns of the overflows and NaN that these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

IEEE = Ieee()
FLOATS32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def rounded(value: Fraction, kind: Type) -> Any:
    """A fraction to nearest even in a format with an exponent like float32's or smaller, by exact comparison."""
    dtype = dtype_of(kind)
    if not value:
        return 0.0
    finfo: Any = ml_dtypes.finfo
    info = finfo(dtype)
    exponent = max(math.floor(math.log2(abs(value))) - 1, int(info.minexp))
    while Fraction(2) ** (exponent + 1) <= abs(value):
        exponent += 1
    step = Fraction(2) ** (exponent - int(info.nmant))
    result = round(value / step) * step
    return float(result) if abs(result) <= Fraction(float(info.max)) else math.copysign(math.inf, value)


@pytest.mark.parametrize("kind", [F16, BF16, F32], ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_sums_products_and_quotients_are_rounded_once(name: str, kind: FloatType) -> None:
    rng = np.random.default_rng(3)
    dtype = dtype_of(kind)
    a, b = (rng.integers(0, 1 << 8 * dtype.itemsize, 1500).astype(integer_of(dtype)).view(dtype) for _ in range(2))
    with np.errstate(all="ignore"):
        found = IEEE.binary(name, a, b, kind).astype(np.float64)
    exact = {"add": Fraction.__add__, "sub": Fraction.__sub__, "mul": Fraction.__mul__, "div": Fraction.__truediv__}
    x, y = a.astype(np.float64), b.astype(np.float64)
    for left, right, result in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
        if math.isfinite(left) and math.isfinite(right) and (name != "div" or right):
            assert result == rounded(exact[name](Fraction(left), Fraction(right)), kind), (left, right)


@pytest.mark.parametrize("kind", [F16, BF16, F32], ids=str)
def test_fma_is_rounded_once(kind: FloatType) -> None:
    rng = np.random.default_rng(4)
    dtype = dtype_of(kind)
    a, b = (rng.standard_normal(1000).astype(dtype) for _ in range(2))
    # Sums that cancel, and that come close to the middle between two numbers.
    c = np.concatenate([-(a[:500] * b[:500]), (rng.standard_normal(500) * 2.0**-12).astype(dtype)]).astype(dtype)
    found = IEEE.fma(a, b, c, kind).astype(np.float64)
    for index in range(1000):
        x, y, z = (Fraction(float(side[index])) for side in (a, b, c))
        assert found[index] == rounded(x * y + z, kind)


@given(FLOATS32, FLOATS32, FLOATS32)
def test_fma_of_any_float32(x: float, y: float, z: float) -> None:
    with np.errstate(all="ignore"):
        found = IEEE.fma(of(F32, x), of(F32, y), of(F32, z), F32)
    assert float(found[0]) == rounded(Fraction(x) * Fraction(y) + Fraction(z), F32)


@given(*(st.floats(min_value=-1e90, max_value=1e90) for _ in range(3)))
def test_fma_of_float64(x: float, y: float, z: float) -> None:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    found = float(IEEE.fma(of(F64, x), of(F64, y), of(F64, z), F64)[0])
    if abs(exact) > Fraction(10) ** -250 and abs(Fraction(x) * Fraction(y)) > Fraction(10) ** -250:
        assert found == float(exact)


def test_a_bfloat16_product_below_the_smallest_normal_float_is_rounded_once() -> None:
    # 2**-134 (1 + 2**-20) is just above half of the smallest bfloat16; in float32 it would be exactly half.
    found = IEEE.binary("mul", of(BF16, 2.0**-67 * (1 + 2.0**-7)), of(BF16, 2.0**-67), BF16)
    assert float(found[0]) == 2.0**-133


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
def test_minima_and_maxima(kind: FloatType) -> None:
    nan, inf = math.nan, math.inf
    a, b = of(kind, 0.0, -0.0, nan, 1, -0.0, nan, -inf), of(kind, -0.0, 0.0, 2, nan, -0.0, nan, 3)

    def result(name: str) -> list[str]:
        return [str(float(value)) for value in IEEE.binary(name, a, b, kind)]

    assert result("minnum") == ["-0.0", "-0.0", "2.0", "1.0", "-0.0", "nan", "-inf"]
    assert result("maxnum") == ["0.0", "0.0", "2.0", "1.0", "-0.0", "nan", "3.0"]
    assert result("minimum") == ["-0.0", "-0.0", "nan", "nan", "-0.0", "nan", "-inf"]
    assert result("maximum") == ["0.0", "0.0", "nan", "nan", "-0.0", "nan", "3.0"]


@pytest.mark.parametrize("kind", [F8E4M3, F16, BF16, F32, F64], ids=str)
def test_comparisons(kind: FloatType) -> None:
    a, b = of(kind, 1, 2, 2, math.nan, 0.0), of(kind, 2, 1, 2, 1, -0.0)
    table = {
        "oeq": "FFTFT",
        "ogt": "FTFFF",
        "oge": "FTTFT",
        "olt": "TFFFF",
        "ole": "TFTFT",
        "one": "TTFFF",
        "ord": "TTTFT",
        "ueq": "FFTTT",
        "ugt": "FTFTF",
        "uge": "FTTTT",
        "ult": "TFFTF",
        "ule": "TFTTT",
        "une": "TTFTF",
        "uno": "FFFTF",
    }
    for predicate, expected in table.items():
        found = IEEE.compare(predicate, a, b, kind)
        assert "".join("FT"[int(value)] for value in found) == expected, predicate


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
def test_negation_and_absolute_value_touch_the_sign_alone(kind: FloatType) -> None:
    values = of(kind, 0.0, -1.5, math.inf, math.nan)
    assert [str(float(value)) for value in IEEE.unary("neg", values, kind)] == ["-0.0", "1.5", "-inf", "nan"]
    assert [str(float(value)) for value in IEEE.unary("absf", values, kind)] == ["0.0", "1.5", "inf", "nan"]


def test_a_format_without_minus_zero_has_none_after_negation() -> None:
    kind = FloatType("f8E4M3FNUZ")
    assert IEEE.unary("neg", of(kind, 0.0), kind).astype(np.float32).tolist() == [0.0]


def test_functions_are_the_nearest_value() -> None:
    values = np.linspace(0.1, 3, 500, dtype=np.float32)
    for name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "erf", "log1p"):
        exact = [getattr(math, name)(float(value)) for value in values]
        assert IEEE.unary(name, values, F32).tolist() == np.array(exact).astype(np.float32).tolist(), name
    assert IEEE.unary("exp2", of(F32, 3, -1, -math.inf), F32).tolist() == [8, 0.5, 0]
    with np.errstate(divide="ignore"):
        assert IEEE.unary("rsqrt", of(F32, 4, 0, math.inf), F32).tolist() == [0.5, math.inf, 0]


def test_whole_numbers() -> None:
    values = of(F32, -1.5, -0.5, 0.5, 1.5, 2.5)
    assert IEEE.unary("floor", values, F32).tolist() == [-2, -1, 0, 1, 2]
    assert IEEE.unary("ceil", values, F32).tolist() == [-1, 0, 1, 2, 3]
    assert IEEE.unary("trunc", values, F32).tolist() == [-1, 0, 0, 1, 2]
    assert IEEE.unary("round", values, F32).tolist() == [-2, -1, 1, 2, 3]
    assert IEEE.unary("roundeven", values, F32).tolist() == [-2, 0, 0, 2, 2]


# ----------------------------------------------------------------------------------------------- conversions


def test_float16_and_bfloat16_overflow_to_infinity_but_bytes_saturate() -> None:
    big = of(F32, 1e6, -1e6, math.inf)
    with np.errstate(over="ignore"):
        assert IEEE.convert(big, F32, F16).astype(np.float32).tolist() == [math.inf, -math.inf, math.inf]
    assert IEEE.convert(of(F32, 3.4e38), F32, BF16).astype(np.float32).tolist() == [math.inf]
    assert IEEE.convert(big, F32, F8E4M3).astype(np.float32).tolist() == [448, -448, 448]
    assert IEEE.convert(big, F32, F8E5M2).astype(np.float32).tolist() == [57344, -57344, 57344]


def test_truncation_keeps_infinities_and_the_largest_number() -> None:
    found = IEEE.convert(of(F32, 65519, 1e30, math.inf, -1.9999999), F32, F16, "rtz").astype(np.float32)
    assert found.tolist() == [65504, 65504, math.inf, -np.float32(np.nextafter(np.float16(2), np.float16(0)))]


@pytest.mark.parametrize("kind", [F16, BF16, F32, F64], ids=str)
@given(number=st.integers(-(2**63), 2**63 - 1))
def test_integers_become_the_nearest_float(kind: FloatType, number: int) -> None:
    with np.errstate(over="ignore"):
        signed = float(IEEE.from_integer(of(I64, number), True, I64, kind)[0])
        other = float(IEEE.from_integer(of(I64, number), False, I64, kind)[0])
    if kind != F64:
        assert signed == rounded(Fraction(number), kind)
        assert other == rounded(Fraction(number % 2**64), kind)
    else:
        assert (signed, other) == (float(number), float(number % 2**64))


def test_a_true_i1_is_one_unsigned_and_minus_one_signed() -> None:
    assert IEEE.from_integer(of(I1, 1, 0), False, I1, F16).tolist() == [1, 0]
    assert IEEE.from_integer(of(I1, 1, 0), True, I1, F16).tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("kind", "signed", "expected"),
    [
        (I8, True, [-100, 44, 0, -1, 0, 1]),
        (I8, False, [0, 44, 0, -1, 0, 1]),
        (I16, True, [-100, 300, 0, 32767, -32768, 1]),
        (I16, False, [0, 300, 0, -1, 0, 1]),
        (I32, True, [-100, 300, 0, 2**31 - 1, -(2**31), 1]),
        (I32, False, [0, 300, 0, -1, 0, 1]),
        (I64, True, [-100, 300, 0, 2**63 - 1, -(2**63), 1]),
        (I64, False, [0, 300, 0, -1, 0, 1]),
    ],
)
def test_floats_become_integers_as_cvt_rzi_makes_them(kind: IntegerType, signed: bool, expected: list[int]) -> None:
    values = of(F32, -100.7, 300.9, math.nan, 1e30, -1e30, 1.99)
    assert IEEE.to_integer(values, signed, F32, kind).tolist() == expected


@given(FLOATS32)
def test_floats_in_range_are_truncated(value: float) -> None:
    if abs(value) < 2**31:
        assert IEEE.to_integer(of(F32, value), True, F32, I32).tolist() == [int(value)]


def test_poison_is_nan_where_there_is_one() -> None:
    for name in ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"):
        assert np.isnan(np.float64(IEEE.poison(FloatType(name)))), name
    assert IEEE.poison(I32) == -1
    assert IEEE.poison(I1)


# ----------------------------------------------------------------------------------------------------- torch


def test_agrees_with_torch_on_half_formats() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    for kind, theirs in ((F16, torch.float16), (BF16, torch.bfloat16)):
        a, b = (rng.standard_normal(10_000).astype(dtype_of(kind)) for _ in range(2))
        x, y = (torch.from_numpy(side.astype(np.float32)).to(theirs) for side in (a, b))
        for name, result in (("add", x + y), ("mul", x * y), ("div", x / y), ("sub", x - y)):
            ours: Array = IEEE.binary(name, a, b, kind).astype(np.float32)
            assert np.array_equal(ours, result.float().numpy()), (name, kind)


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "sin", "tanh", "erf", "rsqrt", "log1p"])
def test_a_function_of_a_number_does_not_depend_on_its_neighbours(name: str) -> None:
    values = np.random.default_rng(6).standard_normal(257).astype(np.float32)
    together = IEEE.unary(name, values, F32)
    reverse = IEEE.unary(name, values[::-1], F32)[::-1]
    alone = np.concatenate([IEEE.unary(name, values[index : index + 1], F32) for index in range(257)])
    assert np.array_equal(together, alone, equal_nan=True)
    assert np.array_equal(together, reverse, equal_nan=True)
