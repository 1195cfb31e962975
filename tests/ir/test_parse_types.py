"""Types as Triton prints them, and the objects that they become."""

from __future__ import annotations

import pytest

from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import (
    DescriptorType,
    DialectType,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemDescType,
    NoneType,
    PointerType,
    TensorType,
    TupleType,
    Type,
    VectorType,
)

F16, F32, I8, I32 = FloatType("f16"), FloatType("f32"), IntegerType(8), IntegerType(32)
SHARED = DialectAttr("ttg.swizzled_shared", (("vec", 8), ("perPhase", 1), ("maxPhase", 4), ("order", (1, 0))))
SMEM = DialectAttr("ttg.shared_memory")
TMEM = DialectAttr("ttng.tensor_memory_encoding", (("blockM", 128), ("blockN", 64), ("colStride", 1)))

ALIASES = """\
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
!tile = tensor<8xf32>
"""

TYPES: list[tuple[str, Type]] = [
    ("i1", IntegerType(1)),
    ("ui8", IntegerType(8, "u")),
    ("si64", IntegerType(64, "s")),
    ("index", IndexType()),
    ("none", NoneType()),
    ("bf16", FloatType("bf16")),
    ("tf32", FloatType("tf32")),
    ("f8E4M3FNUZ", FloatType("f8E4M3FNUZ")),
    ("tensor<f32>", TensorType((), F32)),
    ("tensor<128x64xf16, #shared>", TensorType((128, 64), F16, SHARED)),
    ("tensor<4x!tt.ptr<i8>>", TensorType((4,), PointerType(I8))),
    ("vector<2x4xi32>", VectorType((2, 4), I32)),
    ("tuple<i32, tensor<2xf32>>", TupleType((I32, TensorType((2,), F32)))),
    ("tuple<>", TupleType(())),
    ("!tile", TensorType((8,), F32)),
    ("!tt.ptr<f16>", PointerType(F16)),
    ("!tt.ptr<i8, 3>", PointerType(I8, 3)),
    ("!tt.ptr<tensor<4xf32>>", PointerType(TensorType((4,), F32))),
    ("!llvm.ptr", PointerType(None, 0)),
    ("!llvm.ptr<3>", PointerType(None, 3)),
    ("!llvm.struct<(ptr<1>, i32)>", DialectType("llvm.struct", "(ptr<1>, i32)")),
    ("!llvm.func<void (i32) -> i64>", DialectType("llvm.func", "void (i32) -> i64")),
    ("!ttg.async.token", DialectType("ttg.async.token")),
    ("!ttg.memdesc<2x64xf16, #shared, #smem>", MemDescType((2, 64), F16, SHARED, SMEM, False, (2, 64))),
    (
        "!ttg.memdesc<64xf16, #shared, #smem, mutable, 4x64>",
        MemDescType((64,), F16, SHARED, SMEM, True, (4, 64)),
    ),
    (
        "!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>",
        MemDescType((128, 64), F32, TMEM, DialectAttr("ttng.tensor_memory"), True, (128, 64)),
    ),
    ("!tt.tensordesc<tensor<64xf16>>", DescriptorType("tt.tensordesc", TensorType((64,), F16))),
    ("!tt.tensordesc<8x64xf16, #shared>", DescriptorType("tt.tensordesc", TensorType((8, 64), F16, SHARED))),
    (
        "!ttng.tensordesc_im2col<tensor<8x64xf16, #shared>>",
        DescriptorType("ttng.tensordesc_im2col", TensorType((8, 64), F16, SHARED)),
    ),
    ("(i32, f32) -> ()", FunctionType((I32, F32), ())),
    ("() -> (i32, i8)", FunctionType((), (I32, I8))),
    ("() -> i32", FunctionType((), (I32,))),
]


@pytest.mark.parametrize(("text", "kind"), TYPES, ids=[text for text, _ in TYPES])
def test_a_type(text: str, kind: Type) -> None:
    module = parse_module(f'{ALIASES}"builtin.module"() ({{\n}}) {{it = {text}}} : () -> ()\n')
    assert module.attributes["it"] == kind


def test_equal_types_of_a_module_are_one_object() -> None:
    line = '%a, %b = "x.y"() {t = tensor<4xf32>} : () -> (tensor<4xf32>, tensor<4xf32>)'
    text = f'"builtin.module"() ({{\n{line}\n}}) : () -> ()\n'
    operation = parse_module(text).operation.regions[0].entry.operations[0]
    assert operation.results[0].type is operation.results[1].type is operation.attributes["t"]
