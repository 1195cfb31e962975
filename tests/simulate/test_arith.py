"""Operations of `arith`, `math` and their like in `tt`: constants, choices, comparisons, casts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulate.operations import BF16, F8E4M3, F16, F32, F64, I1, I8, I16, I32, I64, apply, of
from tt2gl.ir.attributes import Dense, FloatAttr
from tt2gl.ir.operations import Operation, Value
from tt2gl.ir.types import FloatType, PointerType, TensorType, Type
from tt2gl.simulate.field import Field
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.ops.arith import literal
from tt2gl.simulate.registry import HANDLERS

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (5, I32, 5),
        (True, I1, True),
        (-1, I64, -1),
        (FloatAttr("f32", 1.44269504), F32, np.float32(1.44269504)),
        (FloatAttr("f16", math.inf, 0x7C00), F16, math.inf),
        (FloatAttr("bf16", 0.1), BF16, 0.10009765625),
        (FloatAttr("f8E4M3FN", 448.0), F8E4M3, 448),
        (FloatAttr("f32", -math.inf, 0xFF800000), F32, -math.inf),
    ],
)
def test_constants(value: Any, kind: Type, expected: Any) -> None:
    found = literal(value, kind)
    assert found.shape == (1,)
    assert float(found[0]) == float(expected)


def test_constant_tensors() -> None:
    kind = TensorType((2, 2), F16)
    splat = literal(Dense(kind, (FloatAttr("f16", 0.5),)), kind)
    assert splat.tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    full = literal(Dense(kind, tuple(FloatAttr("f16", value) for value in (1.0, 2.0, 3.0, 4.0))), kind)
    assert full.tolist() == [[[1, 2], [3, 4]]]
    whole = TensorType((3,), I8)
    assert literal(Dense(whole, (1, -1, 255)), whole).tolist() == [[1, -1, -1]]
    flags = TensorType((2,), I1)
    assert literal(Dense(flags, (True, False)), flags).tolist() == [[True, False]]


def test_a_nan_constant_keeps_its_bits() -> None:
    found = literal(FloatAttr("f32", math.nan, 0x7FC00001), F32)
    assert found.view(np.uint32).tolist() == [0x7FC00001]


def test_a_scalar_condition_chooses_whole_tensors() -> None:
    kind = TensorType((2, 3), I32)
    names = [Value("c", I1), Value("a", kind), Value("b", kind)]
    operation = Operation("arith.select", tuple(names), (Value("r", kind),))
    a, b = np.zeros((1, 2, 3), np.int32), np.ones((4, 2, 3), np.int32)
    found = HANDLERS["arith.select"](None, operation, np.array([True, False, True, False]), a, b)
    assert found[:, 0, 0].tolist() == [0, 1, 0, 1]
    assert found.shape == (4, 2, 3)


def test_a_choice_of_views_must_be_the_same_for_all_programs() -> None:
    operation = Operation("arith.select", (), ())
    first, second = object(), object()
    assert HANDLERS["arith.select"](None, operation, np.array([False]), first, second) is second
    with pytest.raises(Unsupported, match="views"):
        HANDLERS["arith.select"](None, operation, np.array([True, False]), first, second)


def test_clamps() -> None:
    x, low, high = of(F32, -5, 0.5, 5, math.nan), of(F32, 0), of(F32, 1)
    some = apply("tt.clampf", x, low, high, types=[F32] * 3, results=[F32], propagateNan=0)
    assert some.tolist() == [0, 0.5, 1, 0]
    every = apply("tt.clampf", x, low, high, types=[F32] * 3, results=[F32], propagateNan=0xFFFF)
    assert every[:3].tolist() == [0, 0.5, 1]
    assert np.isnan(every[3])


@pytest.mark.parametrize("name", ["arith.divf", "tt.precise_divf", "tt.approx_divf"])
def test_divisions(name: str) -> None:
    assert apply(name, of(F32, 1, -1), of(F32, 4, 0), types=[F32] * 2, results=[F32]).tolist() == [0.25, -math.inf]


def test_remainders_have_the_dividend_s_sign() -> None:
    found = apply("arith.remf", of(F32, -5.5, 5.5), of(F32, 2, -2), types=[F32] * 2, results=[F32])
    assert found.tolist() == [-1.5, 1.5]


def test_comparisons_that_always_hold_or_never() -> None:
    a = of(F32, 1, math.nan)
    for predicate, expected in ((0, False), (15, True)):
        found = apply("arith.cmpf", a, a, types=[F32] * 2, results=[I1], predicate=predicate)
        assert found.tolist() == [expected] * 2
    assert apply("arith.cmpf", a, a, types=[F32] * 2, results=[I1], predicate=1).tolist() == [True, False]
    assert apply("arith.cmpf", a, a, types=[F32] * 2, results=[I1], predicate=14).tolist() == [False, True]


def test_rounding_modes_of_casts() -> None:
    value = of(F32, 1 + 2.0**-10 * 0.75)
    nearest = apply("tt.fp_to_fp", value, types=[F32], results=[F16], rounding=1)
    assert nearest.astype(np.float32).tolist() == [1 + 2.0**-10]
    truncated = apply("tt.fp_to_fp", value, types=[F32], results=[F16], rounding=0)
    assert truncated.astype(np.float32).tolist() == [1]
    wider = apply("tt.fp_to_fp", of(F8E4M3, 448), types=[F8E4M3], results=[F32])
    assert wider.tolist() == [448]


def test_bits_as_another_type() -> None:
    assert apply("tt.bitcast", of(F32, 1), types=[F32], results=[I32]).tolist() == [0x3F800000]
    assert apply("arith.bitcast", of(I16, 0x3C00), types=[I16], results=[F16]).tolist() == [1]
    flag = apply("tt.bitcast", of(I1, 1), types=[I1], results=[I8])
    assert flag.dtype == np.int8
    pointers = [PointerType(I1), PointerType(I8)]
    assert apply("tt.bitcast", of(I64, 77), types=pointers[:1], results=pointers[1:]).tolist() == [77]
    assert apply("tt.ptr_to_int", of(I64, 5), types=pointers[:1], results=[I64]).tolist() == [5]
    assert apply("tt.int_to_ptr", of(I64, 5), types=[I64], results=pointers[:1]).tolist() == [5]


def test_functions() -> None:
    assert apply("math.exp2", of(F32, 3), types=[F32], results=[F32]).tolist() == [8]
    assert apply("tt.precise_sqrt", of(F32, 9), types=[F32], results=[F32]).tolist() == [3]
    fused = apply("math.fma", of(F64, 2), of(F64, 3), of(F64, 4), types=[F64] * 3, results=[F64])
    assert fused.tolist() == [10]
    assert apply("math.powf", of(F32, 2), of(F32, 5), types=[F32] * 2, results=[F32]).tolist() == [32]
    assert apply("math.copysign", of(F16, 2), of(F16, -0.0), types=[F16] * 2, results=[F16]).tolist() == [-2]


def test_poison() -> None:
    found = HANDLERS["ub.poison"](_Run(), Operation("ub.poison", (), (Value("p", TensorType((2,), F32)),)))
    assert np.isnan(found).all()
    assert found.shape == (1, 2)


class _Run:
    def __init__(self) -> None:
        from tt2gl.simulate.ieee import Ieee

        self.arithmetic = Ieee()


def test_the_field_takes_the_same_operations() -> None:
    field = Field()
    a, b = np.array([6, 7]), np.array([3, 7])
    assert apply("arith.divf", a, b, types=[F32] * 2, results=[F32], arithmetic=field).tolist() == [2, 1]
    assert apply("arith.truncf", a, types=[F32], results=[F16], arithmetic=field).tolist() == [6, 7]
    assert apply("arith.sitofp", of(I32, 5), types=[I32], results=[FloatType("bf16")], arithmetic=field).tolist() == [5]
    assert apply("arith.cmpf", a, b, types=[F32] * 2, results=[I1], arithmetic=field, predicate=2).tolist() == [
        True,
        False,
    ]
