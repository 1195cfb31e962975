"""Matrix products: what each precision does to the operands, exact integers, one order for one shape."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulate.operations import BF16, F8E5M2, F16, F32, F64, I8, I32, of
from tt2gl.ir.types import Type
from tt2gl.simulate.dots import to_tf32, truncated_to_tf32
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.values import Array, dtype_of

IEEE = Ieee()


def random(shape: tuple[int, ...], kind: Type, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype_of(kind))


def test_small_integers_in_floats_are_multiplied_exactly() -> None:
    rng = np.random.default_rng(1)
    for kind in (F8E5M2, F16, BF16, F32, F64):
        a, b = (rng.integers(-4, 5, shape).astype(dtype_of(kind)) for shape in ((2, 16, 32), (2, 32, 8)))
        c = rng.integers(-100, 100, (2, 16, 8)).astype(np.float32)
        out = F64 if kind == F64 else F32
        found = IEEE.matmul(a, b, c.astype(dtype_of(out)), (kind, kind, out), "tf32")
        assert np.array_equal(found, a.astype(np.float64) @ b.astype(np.float64) + c)


def test_equal_operands_give_equal_bits_whatever_their_strides() -> None:
    for kind in (F16, F32):
        a, b = random((2, 64, 64), kind), random((2, 64, 32), kind, 1)
        plain = IEEE.matmul(a, b, None, (kind, kind, F32), "ieee")
        turned = IEEE.matmul(
            a.transpose(0, 2, 1).copy().transpose(0, 2, 1), b[:, ::-1].copy()[:, ::-1], None, (kind, kind, F32), "ieee"
        )
        alone = IEEE.matmul(a[1:], b[1:], None, (kind, kind, F32), "ieee")
        assert np.array_equal(plain, turned)
        assert np.array_equal(plain[1:], alone)


def test_operands_the_same_for_all_programs() -> None:
    a, b = random((4, 16, 16), F16), random((1, 16, 16), F16, 1)
    found = IEEE.matmul(a, b, None, (F16, F16, F32), "ieee")
    one_by_one = [IEEE.matmul(a[i : i + 1], b, None, (F16, F16, F32), "ieee")[0] for i in range(4)]
    assert np.array_equal(found, np.stack(one_by_one))


def test_the_accumulator_s_type_rounds_the_sum() -> None:
    a, b, c = of(F16, 1).reshape(1, 1, 1), of(F16, 1).reshape(1, 1, 1), of(F16, 2048).reshape(1, 1, 1)
    assert IEEE.matmul(a, b, c, (F16, F16, F16), "ieee").astype(np.float32).ravel().tolist() == [2048]
    assert IEEE.matmul(a, b, c.astype(np.float32), (F16, F16, F32), "ieee").ravel().tolist() == [2049]


def test_bytes_are_multiplied_exactly_and_wrap() -> None:
    rng = np.random.default_rng(2)
    for terms in (64, 2048):
        a, b = rng.integers(-128, 128, (1, 16, terms)), rng.integers(-128, 128, (1, terms, 16))
        c = np.full((1, 16, 16), 2**31 - 1, np.int32)
        found = IEEE.matmul(a.astype(np.int8), b.astype(np.int8), c, (I8, I8, I32), "ieee")
        assert np.array_equal(found, (a @ b + c).astype(np.int32))
    extreme = np.full((1, 4, 512), -128, np.int8)
    found = IEEE.matmul(extreme, extreme.transpose(0, 2, 1), None, (I8, I8, I32), "ieee")
    assert (found == 512 * 128 * 128).all()


def test_tf32_drops_the_lower_bits_and_its_conversion_rounds() -> None:
    values = of(F32, 1 + 2.0**-11, 1 + 2.0**-10 - 2.0**-23, -1 - 2.0**-11, 1 + 2.0**-12)
    assert truncated_to_tf32(values).tolist() == [1, 1, -1, 1]
    assert to_tf32(values).tolist() == [1 + 2.0**-10, 1 + 2.0**-10, -1 - 2.0**-10, 1]
    assert np.isnan(to_tf32(of(F32, np.nan)))[0]
    assert IEEE.matmul(values[None, :1, None], of(F32, 1).reshape(1, 1, 1), None, (F32, F32, F32), "tf32") == 1


def test_split_precisions_come_closer_to_the_truth() -> None:
    a, b = random((1, 64, 64), F32), random((1, 64, 64), F32, 1)
    truth = a.astype(np.float64) @ b.astype(np.float64)

    def error(precision: str) -> float:
        return float(np.abs(IEEE.matmul(a, b, None, (F32, F32, F32), precision) - truth).max())

    assert error("tf32") > 100 * error("tf32x3")
    assert error("tf32x3") < 1e-4
    assert error("bf16x6") < error("bf16x3") < error("tf32")
    assert error("ieee") < 1e-5


def test_infinite_operands_leave_no_nan_behind_in_split_products() -> None:
    a, b = of(F32, np.inf).reshape(1, 1, 1), of(F32, 2).reshape(1, 1, 1)
    with np.errstate(invalid="ignore"):
        for precision in ("tf32x3", "bf16x3", "bf16x6"):
            assert IEEE.matmul(a, b, None, (F32, F32, F32), precision) == np.inf


def test_an_unknown_precision_is_an_error() -> None:
    a = of(F32, 1).reshape(1, 1, 1)
    with pytest.raises(ValueError, match="fp7"):
        IEEE.matmul(a, a, None, (F32, F32, F32), "fp7")
