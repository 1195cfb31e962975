"""Attributes as Triton prints them, and the values that they become."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tt2gl.ir.attributes import UNIT, Dense, DialectAttr, FloatAttr, Symbol
from tt2gl.ir.operations import Location
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import FloatType, IntegerType, TensorType, VectorType

BLOCKED = DialectAttr("ttg.blocked", (("sizePerThread", (1, 8)), ("order", (1, 0))))
BLOCKED_TEXT = "#ttg.blocked<{sizePerThread = [1, 8], order = [1, 0]}>"


def tensor(size: int, element: str | int) -> TensorType:
    """A one-dimensional tensor of floats by name, or integers by width."""
    return TensorType((size,), FloatType(element) if isinstance(element, str) else IntegerType(element))


ATTRIBUTES: list[tuple[str, Any]] = [
    ("3 : i32", 3),
    ("-2147483648 : i64", -(2**31)),
    ("7", 7),
    ("4 : index", 4),
    ("true", True),
    ("unit", UNIT),
    ("1.500000e+00 : f32", FloatAttr("f32", 1.5)),
    ("-2.5e-3", FloatAttr("f64", -0.0025)),
    ("0xFF800000 : f32", FloatAttr("f32", -math.inf, 0xFF800000)),
    ("0x7E : f8E4M3FN", FloatAttr("f8E4M3FN", 448.0, 0x7E)),
    ('"a b"', "a b"),
    (r'"mov \22x\22;\0A\09\\ \C3\A9"', 'mov "x";\n\t\\ é'),
    ('"typed" : i32', "typed"),
    ("[1 : i32, [true], []]", (1, (True,), ())),
    ("{}", {}),
    (
        '{tt.divisibility = 16 : i32, "ttg.num-warps" = 4 : i32, flag}',
        {"tt.divisibility": 16, "ttg.num-warps": 4, "flag": UNIT},
    ),
    ("{a = {b = {c = {d = {e = {f = {g = 1 : i32}}}}}}}", {"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}),
    ("@kernel", Symbol("kernel")),
    ('@"quoted name"::@inner', Symbol("quoted name::inner")),
    (
        "@triton.language.standard.max__fp32S1024S_c0_cFalse",
        Symbol("triton.language.standard.max__fp32S1024S_c0_cFalse"),
    ),
    ("array<i32>", ()),
    ("array<i32: 1, -1>", (1, -1)),
    ("array<i1: true, false>", (True, False)),
    ("array<f32: 1.0, 0x7F800000>", (FloatAttr("f32", 1.0), FloatAttr("f32", math.inf, 0x7F800000))),
    ("tensor<4xf32>", tensor(4, "f32")),
    ('loc("k.py":3:4)', Location("k.py", 3, 4)),
    ("dense<0> : tensor<4xi32>", Dense(tensor(4, 32), (0,))),
    ("dense<true> : tensor<4xi1>", Dense(tensor(4, 1), (True,))),
    ("dense<> : tensor<0xi32>", Dense(tensor(0, 32), ())),
    ("dense<[1, -2]> : tensor<2xi8>", Dense(tensor(2, 8), (1, -2))),
    ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>", Dense(TensorType((2, 2), IntegerType(8)), (1, 2, 3, 4))),
    ("dense<[true, false]> : vector<2xi1>", Dense(VectorType((2,), IntegerType(1)), (True, False))),
    ("dense<0x7F80> : tensor<4xbf16>", Dense(tensor(4, "bf16"), (FloatAttr("bf16", math.inf, 0x7F80),))),
    ("dense<1.000000e+00> : tensor<4xf16>", Dense(tensor(4, "f16"), (FloatAttr("f16", 1.0),))),
    ('dense<"0x0100FFFF"> : tensor<2xi16>', Dense(tensor(2, 16), (1, -1))),
    ('dense<"0x0100FFFF"> : tensor<2xui16>', Dense(TensorType((2,), IntegerType(16, "u")), (1, 65535))),
    (
        'dense<"0x003C00C0"> : tensor<2xf16>',
        Dense(tensor(2, "f16"), (FloatAttr("f16", 1.0, 0x3C00), FloatAttr("f16", -2.0, 0xC000))),
    ),
    ('dense<"0x0100010001"> : tensor<5xi1>', Dense(tensor(5, 1), (True, False, True, False, True))),
    ('dense<"0x0102"> : tensor<10xi1>', Dense(tensor(10, 1), (True, *(False,) * 8, True))),
    ("#arith.overflow<none>", DialectAttr("arith.overflow", (("0", "none"),))),
    ("#arith.fastmath<nnan,ninf>", DialectAttr("arith.fastmath", (("0", "nnan"), ("1", "ninf")))),
    ("#ub.poison", DialectAttr("ub.poison")),
    ("#gluon.auto_encoding", DialectAttr("gluon.auto_encoding")),
    ("#ttng.tensor_memory_scales_encoding<>", DialectAttr("ttng.tensor_memory_scales_encoding")),
    (BLOCKED_TEXT, BLOCKED),
    (f"#ttg.slice<{{dim = 1, parent = {BLOCKED_TEXT}}}>", DialectAttr("ttg.slice", (("dim", 1), ("parent", BLOCKED)))),
    (
        "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [], block = []}>",
        DialectAttr("ttg.linear", (("register", ((0, 1), (0, 2))), ("lane", ()), ("block", ()))),
    ),
    (
        "#ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>",
        DialectAttr(
            "ttg.amd_wmma", (("version", 3), ("isTranspose", True), ("ctaLayout", (("warp", ((0, 1), (1, 0))),)))
        ),
    ),
    (
        "#ttg.padded_shared<[64:+4, 256:+8] {order = [1, 0], shape = [16, 64]}>",
        DialectAttr("ttg.padded_shared", (("0", ((64, 4), (256, 8))), ("order", (1, 0)), ("shape", (16, 64)))),
    ),
    (
        "#ttg.shared_linear<{offset = [[0, 1]], block = []}, alignment = 16>",
        DialectAttr("ttg.shared_linear", (("offset", ((0, 1),)), ("block", ()), ("alignment", 16))),
    ),
    (
        f"#ttg.partitioned_shared<{{numPartitions = 2, partitionLayout = {BLOCKED_TEXT}}}>",
        DialectAttr("ttg.partitioned_shared", (("numPartitions", 2), ("partitionLayout", BLOCKED))),
    ),
    (
        "#tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>",
        DialectAttr("tt.cache_policy", (("cache_modifier", "none"), ("eviction_policy", "evict_first"))),
    ),
    ("#new.thing<1 ? (2 -> 3)>", DialectAttr("new.thing", (("text", "1 ? (2 -> 3)"),))),
]


@pytest.mark.parametrize(("text", "value"), ATTRIBUTES, ids=[text for text, _ in ATTRIBUTES])
def test_an_attribute(text: str, value: Any) -> None:
    parsed = parse_module(f'"builtin.module"() ({{\n}}) {{it = {text}}} : () -> ()\n').attributes["it"]
    assert (type(parsed), parsed) == (type(value), value)


@pytest.mark.parametrize("text", [text for text, value in ATTRIBUTES if isinstance(value, DialectAttr)])
def test_what_a_dialect_defines_can_be_a_key(text: str) -> None:
    parsed = parse_module(f'"builtin.module"() ({{\n}}) {{it = {text}}} : () -> ()\n').attributes["it"]
    assert {parsed: 1}[parsed] == 1
