"""Inline assembly: the texts of Triton's own library and of kernels, and what is not known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulate.operations import BF16, F8E4M3, F8E5M2, F16, F32, I1, I8, I16, I32, I64, apply, of
from tt2gl.ir.types import FloatType, Type
from tt2gl.simulate.field import Field
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.values import Array, dtype_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def run(text: str, *operands: tuple[Type, Array], to: Type | list[Type], pack: int = 1, arithmetic: Any = None) -> Any:
    """What a text makes of operands, each with its type."""
    return apply(
        "tt.elementwise_inline_asm",
        *(array for _, array in operands),
        types=[kind for kind, _ in operands],
        results=to if isinstance(to, list) else [to],
        arithmetic=arithmetic,
        asm_string=text,
        constraints="",
        packed_element=pack,
    )


def test_approximate_functions_give_the_nearest_value() -> None:
    x = of(F32, 0.5, 2)
    for name, exact in (
        ("ex2.approx.ftz", np.exp2),
        ("lg2.approx", np.log2),
        ("rcp.approx", np.reciprocal),
        ("rsqrt.approx.ftz", lambda v: 1 / np.sqrt(v)),
        ("sqrt.rn", np.sqrt),
        ("tanh.approx", np.tanh),
        ("sin.approx", np.sin),
    ):
        found = run(f"{name}.f32 $0, $1;", (F32, x), to=F32)
        assert np.array_equal(found, exact(x.astype(np.float64)).astype(np.float32)), name


def test_flushing_subnormals() -> None:
    x = of(F32, 1e-40, -1e-40, 1)
    assert run("abs.ftz.f32 $0, $1;", (F32, x), to=F32).tolist() == [0, 0, 1]
    assert run("neg.ftz.f32 $0, $1;", (F32, x), to=F32).view(np.uint32).tolist() == [1 << 31, 0, 0xBF800000]
    assert run("add.f32 $0, $1, $1;", (F32, x), to=F32)[0] == np.float32(1e-40) * 2


def test_arithmetic() -> None:
    x, y = of(F32, 7, -7), of(F32, 2, 2)
    assert run("div.full.f32 $0, $1, $2;", (F32, x), (F32, y), to=F32).tolist() == [3.5, -3.5]
    assert run("fma.rn.f32 $0, $1, $2, 0f3F800000;", (F32, x), (F32, y), to=F32).tolist() == [15, -13]
    assert run("max.f32 $0, $1, 1.5;", (F32, x), to=F32).tolist() == [7, 1.5]
    a, b = of(I32, 7, -7), of(I32, 2, 2)
    assert run("div.s32 $0, $1, $2;", (I32, a), (I32, b), to=I32).tolist() == [3, -3]
    assert run("div.u32 $0, $1, $2;", (I32, a), (I32, b), to=I32).tolist() == [3, (2**32 - 7) // 2]
    assert run("mad.lo.s32 $0, $1, $2, 5;", (I32, a), (I32, b), to=I32).tolist() == [19, -9]
    assert run("mul.hi.u32 $0, $1, $2;", (I32, a), (I32, b), to=I32).tolist() == [0, 1]
    assert run("mul.wide.s32 $0, $1, $2;", (I32, a), (I32, b), to=I64).tolist() == [14, -14]


def test_shifts_clamp_their_amount() -> None:
    a = of(I32, -8)
    assert run("shr.s32 $0, $1, 40;", (I32, a), to=I32).tolist() == [-1]
    assert run("shr.u32 $0, $1, 28;", (I32, a), to=I32).tolist() == [15]
    assert run("shr.b32 $0, $1, 32;", (I32, a), to=I32).tolist() == [0]
    assert run("bfe.u32 $0, $1, 4, 8;", (I32, of(I32, 0x12345678)), to=I32).tolist() == [0x67]


def test_logic_of_three_operands_follows_its_table() -> None:
    a, b, c = of(I32, 0b11110000), of(I32, 0b11001100), of(I32, 0b10101010)
    for table in (0xF8, 0xEA, 0x96, 0xC0):
        found = run(f"lop3.b32 $0, $1, $2, $3, {table:#x};", (I32, a), (I32, b), (I32, c), to=I32)
        assert found[0] & 0xFF == table


def test_the_table_of_three_operands_may_be_an_argument() -> None:
    a, b, c = of(I32, 0b11110000), of(I32, 0b11001100), of(I32, 0b10101010)
    tables = of(I32, 0xF8, 0x96)
    found = run("lop3.b32 $0, $1, $2, $3, $4;", *((I32, np.repeat(x, 2)) for x in (a, b, c)), (I32, tables), to=I32)
    assert (found & 0xFF).tolist() == tables.tolist()


def test_bytes_of_an_integer_as_halves_by_arguments_that_are_constants() -> None:
    """Four bits to halves, as quantised weights are read: a mask, a number and a table come as constant arguments."""
    text = """{
        .reg .b32 tmp;
        lop3.b32 tmp, $2, $3, $4, $5;
        sub.f16x2 tmp, tmp, $6;
        mov.b32 {$0, $1}, tmp;
    }"""
    constants = [(I32, of(I32, number)) for number in (0x000F000F, 0x64006400, (0xF0 & 0xCC) | 0xAA, 0x64006400)]
    low, high = run(text, (I32, of(I32, 0x00070003)), *constants, to=[F16, F16])
    assert (low.tolist(), high.tolist()) == ([3], [7])


def test_bytes_are_permuted() -> None:
    a, b = of(I32, 0x33221100), of(I32, 0x77665544)
    assert run("prmt.b32 $0, $1, $2, 0x7531;", (I32, a), (I32, b), to=I32).tolist() == [0x77553311]
    assert run("prmt.b32 $0, $1, $2, 0x8000;", (I32, of(I32, 0x80)), (I32, b), to=I32).view(np.uint32)[0] == 0xFF808080


def test_predicates_select_and_guard() -> None:
    text = """{
        .reg .pred p;
        setp.lt.s32 p, $1, $2;   // smaller?
        selp.b32 $0, $1, $2, p;
        @!p add.s32 $0, $0, 100;
    }"""
    found = run(text, (I32, of(I32, 1, 5)), (I32, of(I32, 3, 2)), to=I32)
    assert found.tolist() == [1, 102]
    ordered = run(
        "{ .reg .pred p; setp.neu.f32 p, $1, 0.0; selp.b32 $0, 1, 0, p; }", (F32, of(F32, math.nan, 0)), to=I32
    )
    assert ordered.tolist() == [1, 0]


@pytest.mark.parametrize(("kind", "name"), [(F8E4M3, "e4m3x2"), (F8E5M2, "e5m2x2")])
def test_conversions_to_bytes_and_back(kind: FloatType, name: str) -> None:
    x = of(F32, 1.1, -3.3, 1e9, 0)
    packed = run(f"cvt.rn.satfinite.{name}.f32 $0, $2, $1;", (F32, x[0::2]), (F32, x[1::2]), to=I16)
    expected = Ieee().convert(x, F32, kind)
    assert packed.view(np.uint8).tolist() == expected.view(np.uint8).tolist()
    halves = run(f"cvt.rn.f16x2.{name} $0, $1;", (kind, expected), to=F16, pack=2)
    assert halves.astype(np.float32).tolist() == expected.astype(np.float32).tolist()


def test_conversions_of_numbers() -> None:
    x = of(F32, 2.5, -2.5, 1e10, math.nan)
    assert run("cvt.rni.s32.f32 $0, $1;", (F32, x), to=I32).tolist() == [2, -2, 2**31 - 1, 0]
    assert run("cvt.rzi.u32.f32 $0, $1;", (F32, x), to=I32).tolist() == [2, 0, -1, 0]
    assert run("cvt.rn.f32.s32 $0, $1;", (I32, of(I32, -3)), to=F32).tolist() == [-3]
    assert run("cvt.rn.bf16x2.f32 $0, $2, $1;", (F32, x[:1]), (F32, x[1:2]), to=I32).view(np.uint32)[0] == 0xC0204020
    assert run("cvt.rna.tf32.f32 $0, $1;", (F32, of(F32, 1 + 2.0**-11)), to=F32).tolist() == [1 + 2.0**-10]
    assert run("cvt.rz.f16.f32 $0, $1;", (F32, of(F32, 70000)), to=F16).tolist() == [65504]
    assert run("cvt.s32.s8 $0, $1;", (I8, of(I8, -3)), to=I32).tolist() == [-3]


TO_E4B15 = """{
    .reg .b32 a<2>, b<2>;
    and.b32 a0, $1, 0x7fff7fff;
    and.b32 a1, $2, 0x7fff7fff;
    {0}
    mad.lo.u32 a0, a0, 2, 0x00800080;
    mad.lo.u32 a1, a1, 2, 0x00800080;
    lop3.b32 b0, $1, 0x80008000, a0, 0xea;
    lop3.b32 b1, $2, 0x80008000, a1, 0xea;
    prmt.b32 $0, b0, b1, 0x7531;
}"""
MINIMA = "min.f16x2 a0, a0, 0x3F003F00; min.f16x2 a1, a1, 0x3F003F00;"
SELECTED = """.reg .pred p<4>; .reg .b16 c<4>, m; .reg .b32 mm;
    mov.b16 m, 0x3F00; mov.b32 mm, 0x3F003F00;
    setp.lt.f16x2 p0|p1, a0, mm; setp.lt.f16x2 p2|p3, a1, mm;
    mov.b32 {c0, c1}, a0; mov.b32 {c2, c3}, a1;
    selp.b16 c0, c0, m, p0; selp.b16 c1, c1, m, p1; selp.b16 c2, c2, m, p2; selp.b16 c3, c3, m, p3;
    mov.b32 a0, {c0, c1}; mov.b32 a1, {c2, c3};"""
FROM_E4B15 = """{
    .reg .b32 a<2>, b<2>;
    prmt.b32 a0, 0, $2, 0x5746;
    and.b32 b0, a0, 0x7f007f00;
    and.b32 b1, a0, 0x00ff00ff;
    and.b32 a1, a0, 0x00800080;
    shr.b32  b0, b0, 1;
    add.u32 b1, b1, a1;
    lop3.b32 $0, b0, 0x80008000, a0, 0xf8;
    shl.b32 $1, b1, 7;
}"""


def test_a_custom_byte_format_by_bit_tricks() -> None:
    # Sign, four bits of exponent with bias 15, three of fraction, no special values: float16's upper bits.
    codes = np.arange(256, dtype=np.uint8).view(np.int8)
    halves = run(FROM_E4B15, (I8, codes), to=F16, pack=4).astype(np.float64)
    for code, value in zip(range(256), halves.tolist(), strict=True):
        exponent, fraction = code >> 3 & 15, code & 7
        size = fraction / 8 * 2.0**-14 if not exponent else (1 + fraction / 8) * 2.0 ** (exponent - 15)
        assert value == (-size if code & 128 else size)
    for way in (MINIMA, SELECTED):
        back = run(TO_E4B15.replace("{0}", way), (F16, halves.astype(np.float16)), to=I8, pack=4)
        # The largest two values are cut to the third.
        assert np.array_equal(back.view(np.uint8) & 0x7F, np.minimum(np.arange(256) & 0x7F, 0x7E))


def test_pairs_of_floats_in_64_bits() -> None:
    for arithmetic, one in ((Ieee(), np.float32), (Field(), np.int64)):
        a, b = np.array([1, 2], one), np.array([3, 4], one)
        pair = run("mov.b64 $0, { $1, $2 };", (F32, a), (F32, b), to=I64, arithmetic=arithmetic)
        doubled = run("add.f32x2 $0, $1, $2;", (I64, pair), (I64, pair), to=I64, arithmetic=arithmetic)
        low, high = run("mov.b64 { $0, $1 }, $2;", (I64, doubled), to=[F32, F32], arithmetic=arithmetic)
        assert low.tolist() == [2, 4]
        assert high.tolist() == [6, 8]


def test_a_text_in_the_field() -> None:
    x = np.array([5, 6])
    found = run("fma.rn.f32 $0, $1, $1, 1.0;", (F32, x), to=F32, arithmetic=Field())
    assert found.tolist() == [26, 37]
    assert run("mov.b32 $0, $1;", (F32, x), to=F32, arithmetic=Field()).tolist() == [5, 6]


def test_the_clock_stands_still_and_waiting_for_other_kernels_is_nothing() -> None:
    for text in ("mov.u64 $0, %globaltimer;", "s_memrealtime $0\n s_waitcnt vmcnt(0)"):
        assert run(text, to=I64).tolist() == 0
    assert run("griddepcontrol.wait; // dummy $0", to=I32).tolist() == 0
    assert run("mov.u32 $0, %smid;", to=I32).tolist() == 0


def test_amd_s_instructions() -> None:
    x = of(F32, 3, -1)
    assert run("v_exp_f32 $0, $1", (F32, x), to=F32).tolist() == [8, 0.5]
    assert run("v_mul_f32_e32 $0, $1, $1\ns_nop 0\nv_add_f32 $0, $0, 1.0", (F32, x), to=F32).tolist() == [10, 2]
    assert run("s_getreg_b32 $0, hwreg(4, 8, 8)", to=I32).tolist() == 0


def test_pairs_of_four_bit_floats() -> None:
    text = """{
        .reg .b8 byte0, byte1, byte2, byte3;
        cvt.rn.satfinite.e2m1x2.f32 byte0, $5, $1;
        cvt.rn.satfinite.e2m1x2.f32 byte1, $6, $2;
        cvt.rn.satfinite.e2m1x2.f32 byte2, $7, $3;
        cvt.rn.satfinite.e2m1x2.f32 byte3, $8, $4;
        mov.b32 $0, {byte0, byte1, byte2, byte3};
    }"""
    low, high = of(F32, 0, 0.5, -1, 2.5), of(F32, 6, 100, -0.25, 1.6)
    found = run(text, (F32, low), (F32, high), to=I8, pack=4).view(np.uint8)
    assert found.tolist() == [0x70, 0x71, 0x8A, 0x34]
    halves = run("{ .reg .b8 b; mov.b16 {b, _}, $1; cvt.rn.f16x2.e2m1x2 $0, b; }", (I16, of(I16, 0x34)), to=I32)
    assert halves.view(np.float16).tolist() == [2, 1.5]
    in_field = run(text, (F32, np.arange(4)), (F32, np.arange(4)), to=I8, pack=4, arithmetic=Field())
    assert len(np.unique(in_field)) > 1


def test_elements_that_do_not_fill_the_last_register() -> None:
    x = of(I8, *range(6))
    found = run("and.b32 $0, $1, 0x0f0f0f0f;", (I8, x), to=I8, pack=4)
    assert found.tolist() == list(range(6))


def test_bfloat16_by_placing_bytes() -> None:
    low, high = of(I8, 0x80 - 256, 0), of(I8, 0x3F, 0x40)
    text = "prmt.b32 $0, $1, $2, 0x5140;"
    assert run(text, (I8, low), (I8, high), to=BF16, pack=2).astype(np.float32).tolist() == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "frobnicate.b32 $0, $1;",
        "add.rz.f32 $0, $1, $1;",
        "bra somewhere;",
        "ld.global.b32 $0, [$1];",
        "mov.u32 $0, %laneid;",
        "add.f32 $0, $1;",
        "add.f32 $0, nowhere, $1;",
        "v_dance_b32 $0, $1",
    ],
)
def test_what_is_not_known_is_an_error(text: str) -> None:
    with pytest.raises(Unsupported, match="does not know"):
        run(text, (F32, of(F32, 1)), to=F32)


def test_a_boolean_result() -> None:
    text = "{ .reg .pred p; setp.gt.f32 p, $1, 0f00000000; selp.u32 $0, 1, 0, p; }"
    found = run(text, (F32, of(F32, 1, -1)), to=I1)
    assert found.dtype == dtype_of(I1)
    assert found.tolist() == [True, False]
