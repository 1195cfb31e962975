"""Functions of the vendors' device libraries, by symbol."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulate.operations import F16, F32, F64, I32, I64, apply, of
from tt2gl.ir.types import Type
from tt2gl.simulate import libdevice
from tt2gl.simulate.field import Field
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.values import Array

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def call(symbol: str, *operands: Array, types: list[Type], to: Type, arithmetic: Any = None) -> Any:
    how = {"symbol": symbol, "libname": "", "libpath": "", "pure": True}
    return apply("tt.extern_elementwise", *operands, types=types, results=[to], arithmetic=arithmetic, **how)


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "log1p", "cos", "asinh", "lgamma", "erfc", "expm1"])
def test_functions_of_c(name: str) -> None:
    values = np.linspace(0.1, 3, 100)
    exact = np.array([getattr(math, name)(float(np.float32(value))) for value in values]).astype(np.float32)
    for symbol in (f"__nv_{name}f", f"__ocml_{name}_f32"):
        found = call(symbol, values.astype(np.float32), types=[F32], to=F32)
        assert np.array_equal(found, exact), symbol
    precise = call(f"__nv_{name}", values, types=[F64], to=F64)
    assert np.allclose(precise, [getattr(math, name)(value) for value in values], rtol=1e-14)


def test_fast_variants_and_half() -> None:
    assert call("__nv_fast_expf", of(F32, 0), types=[F32], to=F32).tolist() == [1]
    assert call("__nv_fast_fdividef", of(F32, 1), of(F32, 4), types=[F32] * 2, to=F32).tolist() == [0.25]
    assert call("__ocml_exp2_f16", of(F16, 3), types=[F16], to=F16).tolist() == [8]


@pytest.mark.parametrize(
    ("name", "amd", "at_half", "at_ten"),
    [
        ("cyl_bessel_i0", "i0", 1.0634833707413236, 2815.716628466254),
        ("cyl_bessel_i1", "i1", 0.25789430539089633, 2670.988303701255),
        ("j0", "j0", 0.938469807240813, -0.2459357644513483),
        ("j1", "j1", 0.2422684576748739, 0.04347274616886144),
    ],
)
def test_bessel_functions(name: str, amd: str, at_half: float, at_ten: float) -> None:
    found = call(f"__nv_{name}", of(F64, 0.5, 10), types=[F64], to=F64)
    assert np.allclose(found, [at_half, at_ten], rtol=1e-13)
    odd = call(f"__ocml_{amd}_f32", of(F32, -0.5, math.nan), types=[F32], to=F32)
    assert odd[0] == np.float32(at_half if name.endswith("0") else -at_half)
    assert math.isnan(odd[1])
    assert math.isinf(call(f"__nv_{name}", of(F64, 1000), types=[F64], to=F64)[0]) == ("bessel" in name)


def test_the_next_number() -> None:
    one, up = of(F32, 1, 1, 0), of(F32, 2, -2, 1)
    found = call("__nv_nextafterf", one, up, types=[F32] * 2, to=F32)
    assert found.tolist() == [1 + 2**-23, 1 - 2**-24, 2**-149]


def test_inverses_undo() -> None:
    y = np.array([-0.999999, -0.5, 1e-9, 0.3, 0.9, 0.99999999])
    x = call("__nv_erfinv", y, types=[F64], to=F64)
    assert np.allclose([math.erf(value) for value in x], y, rtol=1e-14)
    assert call("__nv_erfinv", of(F64, 1, -1, 2), types=[F64], to=F64).tolist()[:2] == [math.inf, -math.inf]
    p = np.array([1e-10, 0.1, 0.5, 0.9])
    quantile = call("__nv_normcdfinv", p, types=[F64], to=F64)
    assert np.allclose(call("__nv_normcdf", quantile, types=[F64], to=F64), p, rtol=1e-9)
    small = call("__nv_erfcinv", p, types=[F64], to=F64)
    assert np.allclose([math.erfc(value) for value in small], p, rtol=1e-9)
    scaled = call("__nv_erfcx", of(F64, 1, 9.99, 10.01, 1e6), types=[F64], to=F64)
    assert np.allclose(
        scaled[:3] * np.exp(-(np.array([1, 9.99, 10.01]) ** 2)), [math.erfc(v) for v in (1, 9.99, 10.01)]
    )
    assert scaled[3] == pytest.approx(1 / (1e6 * math.sqrt(math.pi)))


def test_functions_of_two_and_three() -> None:
    assert call("__nv_powf", of(F32, 2), of(F32, 10), types=[F32] * 2, to=F32).tolist() == [1024]
    assert call("__nv_powif", of(F32, 2), of(I32, -1), types=[F32, I32], to=F32).tolist() == [0.5]
    assert call("__nv_fmaf", *(of(F32, v) for v in (2, 3, 4)), types=[F32] * 3, to=F32).tolist() == [10]
    assert call("__ocml_fmod_f32", of(F32, -5.5), of(F32, 2), types=[F32] * 2, to=F32).tolist() == [-1.5]
    assert call("__nv_ldexpf", of(F32, 1.5), of(I32, 3), types=[F32, I32], to=F32).tolist() == [12]
    assert call("__nv_fdimf", of(F32, 1, 3), of(F32, 2, 1), types=[F32] * 2, to=F32).tolist() == [0, 2]
    x, y = np.random.default_rng(0).standard_normal((2, 50))
    found = call("__nv_remainder", x, y, types=[F64] * 2, to=F64)
    assert found.tolist() == [math.remainder(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    halves = call("__nv_remainder", of(F64, 3, 5, -3), of(F64, 2, 2, 2), types=[F64] * 2, to=F64)
    assert halves.tolist() == [-1, 1, 1]


def test_tests_give_integers() -> None:
    x = of(F32, math.nan, math.inf, -math.inf, -0.0, 1)
    for symbol, expected in (
        ("__nv_isnanf", [1, 0, 0, 0, 0]),
        ("__ocml_isinf_f32", [0, 1, 1, 0, 0]),
        ("__nv_finitef", [0, 0, 0, 1, 1]),
    ):
        assert call(symbol, x, types=[F32], to=I32).tolist() == expected, symbol
    assert call("__nv_signbitf", x[1:], types=[F32], to=I32).tolist() == [0, 1, 1, 0]


def test_conversions_with_a_direction() -> None:
    x = of(F32, -2.5, 2.5)
    for direction, expected in (("rn", [-2, 2]), ("rz", [-2, 2]), ("rd", [-3, 2]), ("ru", [-2, 3])):
        assert call(f"__nv_float2int_{direction}", x, types=[F32], to=I32).tolist() == expected
    assert call("__nv_uint2float_rn", of(I32, -1), types=[I32], to=F32).tolist() == [2.0**32]
    assert call("__nv_float_as_int", of(F32, 1), types=[F32], to=I32).tolist() == [0x3F800000]
    assert call("__nv_llrintf", of(F32, 3.5), types=[F32], to=I64).tolist() == [4]


def test_integers() -> None:
    x = of(I32, 0, 1, -1, 0x50)
    assert call("__nv_clz", x, types=[I32], to=I32).tolist() == [32, 31, 0, 25]
    assert call("__nv_popc", x, types=[I32], to=I32).tolist() == [0, 1, 32, 2]
    assert call("__nv_ffs", x, types=[I32], to=I32).tolist() == [0, 1, 1, 5]
    assert call("__nv_brev", x, types=[I32], to=I32).view(np.uint32).tolist() == [0, 1 << 31, 2**32 - 1, 0x0A000000]
    assert call("__nv_umulhi", x, x, types=[I32] * 2, to=I32).tolist() == [0, 0, -2, 0]
    assert call("__ockl_clz_u64", of(I64, 1), types=[I64], to=I64).tolist() == [63]
    perm = call("__nv_byte_perm", of(I32, 0x33221100), of(I32, 0x77665544), of(I32, 0x7531), types=[I32] * 3, to=I32)
    assert perm.tolist() == [0x77553311]


def test_the_field_takes_a_function_for_its_name() -> None:
    field, x = Field(), np.array([3, 4])
    ours = apply("math.tanh", x, types=[F32], results=[F32], arithmetic=field)
    for symbol in ("__nv_tanhf", "__ocml_tanh_f32"):
        assert np.array_equal(call(symbol, x, types=[F32], to=F32, arithmetic=field), ours)
    assert call("__nv_ldexpf", x, of(I32, -1), types=[F32, I32], to=F32, arithmetic=field)[1] == 2
    assert call("__nv_frcp_rn", np.array([1]), types=[F32], to=F32, arithmetic=field).tolist() == [1]


def test_an_unknown_symbol_is_an_error() -> None:
    for symbol in ("__nv_y0f", "__nv_fadd_rz", "__my_function"):
        with pytest.raises(Unsupported, match=symbol):
            call(symbol, of(F32, 1), types=[F32], to=F32)


def test_most_of_triton_s_library_is_known() -> None:
    import triton

    symbols: set[str] = set()
    for file in Path(triton.__file__).parent.glob("language/extra/*/libdevice.py"):
        symbols |= set(re.findall(r'"(__(?:nv|ocml|ockl|triton_hip)_\w+)"', file.read_text("utf-8")))
    unknown = {symbol for symbol in symbols if libdevice.find(symbol) is None}
    # Directed rounding, Bessel functions, norms, and packed averages.
    families = (
        r"__nv_\w+_r[duz]",
        r"__(nv|ocml)_(cyl_bessel_)?[ijy][01n]\w*",
        r"__nv_r?norm[34]df?",
        r"\w+nextafter\w*",
        r"__nv_u?(r?hadd|sad|mul24)",
    )
    rest = {symbol for symbol in unknown if not re.fullmatch("|".join(families), symbol)}
    assert rest <= {"__nv_double2hiint", "__nv_double2loint", "__nv_hiloint2double", "__nv_rcp64h"}
