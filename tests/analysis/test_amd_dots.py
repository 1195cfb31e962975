"""AMD's instructions are read off operations, and which values are stored as a product leaves them."""

from __future__ import annotations

import pytest

from tt2gl.analysis.amd_dots import amd_instruction, stored_layout
from tt2gl.analysis.lowered import lowered_facts
from tt2gl.ir.operations import Operation
from tt2gl.ir.parser import parse_module

TEXT = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mfma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 4], isTransposed = true}>
#wmma = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %a, %b, %c, %p = "x.make"() : () -> (tensor<64x64xIN, #LAYOUT>, tensor<64x64xIN, #LAYOUT>,
        tensor<64x64xf32, #LAYOUT>, tensor<64x64x!tt.ptr<f32>, #LAYOUT>)
    %d = "NAME"(OPERANDS) <{inputPrecision = PRECISION : i32}> : (TYPES) -> tensor<64x64xf32, #LAYOUT>
    "tt.store"(%p, %d) : (tensor<64x64x!tt.ptr<f32>, #LAYOUT>, tensor<64x64xf32, #LAYOUT>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def operations(layout: str, element: str = "f16", name: str = "tt.dot", precision: int = 2, scales: int = 0) -> str:
    given = ", ".join(["%a", "%b", "%c", *["%a"] * scales])
    tile = f"tensor<64x64x{element}, #LAYOUT>"
    types = ", ".join([tile, tile, "tensor<64x64xf32, #LAYOUT>", *[tile] * scales])
    text = TEXT.replace("OPERANDS", given).replace("TYPES", types).replace("NAME", name)
    return text.replace("PRECISION", str(precision)).replace("IN, ", f"{element}, ").replace("#LAYOUT", f"#{layout}")


def first(text: str, name: str) -> Operation:
    return next(each for each in parse_module(text).kernel.walk() if each.name == name)


@pytest.mark.parametrize(
    ("layout", "element", "precision", "expected"),
    [
        ("blocked", "f32", 0, None),
        ("mfma", "f16", 0, "mfma"),
        ("mfma", "f32", 2, "mfma"),
        ("mfma", "f32", 0, "mfma_tf32"),
        ("wmma", "bf16", 2, "wmma"),
    ],
)
def test_the_instruction_of_a_dot(layout: str, element: str, precision: int, expected: str | None) -> None:
    assert amd_instruction(first(operations(layout, element, precision=precision), "tt.dot")) == expected


def test_bytes_without_scales_are_multiplied_by_the_instruction_of_scaled_ones() -> None:
    name = "tt.dot_scaled"
    assert amd_instruction(first(operations("mfma", "f8E5M2", name), name)) == "mfma_f8f6f4"
    assert amd_instruction(first(operations("blocked", "f8E5M2", name), name)) is None


@pytest.mark.parametrize(("layout", "expected"), [("mfma", "mfma_scaled"), ("wmma", "wmma_scaled")])
def test_scales_are_facts_of_the_dot_that_takes_them(layout: str, expected: str) -> None:
    text = operations(layout, "f8E5M2", "tt.dot_scaled", scales=2)
    (fact,) = lowered_facts(parse_module(text), str).dots.values()
    assert (fact.instruction, len(fact.scales)) == (expected, 2)


def test_what_is_stored_as_it_comes_from_a_product_is_told() -> None:
    assert stored_layout(first(operations("blocked"), "tt.store"), {}) is None
    found = stored_layout(first(operations("mfma"), "tt.store"), {})
    assert found is not None
    assert found.name == "ttg.amd_mfma"
    facts = lowered_facts(parse_module(operations("wmma")), lambda file: file)
    assert [layout.name for layout in facts.stores.values()] == ["ttg.amd_wmma"]
    assert [fact.instruction for fact in facts.dots.values()] == ["wmma"]


HELD = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mfma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#lhs = #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 4}>
#rhs = #ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 4}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#smem = #ttg.shared_memory
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %a, %b, %c, %n = "x.make"() : () -> (tensor<64x64xf16, #blocked>, tensor<64x64xf16, #rhs>, tensor<64x64xf32, #mfma>,
        i32)
    %m = "ttg.local_alloc"(%a) : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    BEFORE
    %r = "scf.for"(%n, %n, %n, %c) ({
    ^bb0(%i: i32, %s: tensor<64x64xf32, #mfma>):
      WITHIN
      %d = "tt.dot"(%l, %b, %s) <{inputPrecision = 2 : i32}> : (tensor<64x64xf16, #lhs>, tensor<64x64xf16, #rhs>,
          tensor<64x64xf32, #mfma>) -> tensor<64x64xf32, #mfma>
      "scf.yield"(%d) : (tensor<64x64xf32, #mfma>) -> ()
    }) : (i32, i32, i32, tensor<64x64xf32, #mfma>) -> tensor<64x64xf32, #mfma>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
LOAD = '%l = "ttg.local_load"(%m) : (!ttg.memdesc<64x64xf16, #shared, #smem>) -> tensor<64x64xf16, #lhs>'


@pytest.mark.parametrize(("place", "other", "kept"), [("BEFORE", "WITHIN", False), ("WITHIN", "BEFORE", True)])
def test_an_operand_stays_in_memory_where_it_is_loaded_in_the_loop(place: str, other: str, kept: bool) -> None:
    (fact,) = lowered_facts(parse_module(HELD.replace(place, LOAD).replace(other, "")), str).dots.values()
    assert (fact.a.reloaded is not None) == kept


@pytest.mark.parametrize(("matrix", "version"), [("mfma", 3), ("mfma", 4), ("wmma", 1), ("wmma", 2), ("wmma", 3)])
def test_the_memory_of_what_the_loop_keeps_in_registers_is_a_fact(matrix: str, version: int) -> None:
    text = HELD.replace("BEFORE", LOAD).replace("WITHIN", "").replace("ttg.amd_mfma", f"ttg.amd_{matrix}")
    (fact,) = lowered_facts(parse_module(text.replace("version = 3", f"version = {version}")), str).dots.values()
    assert fact.a.kept is not None


TURNED = """
#plain = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocks = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %p, %s = "x.make"() : () -> (tensor<64x128x!tt.ptr<i8>, #blocks>, tensor<64x128xf16, #blocks>)
    %q = "x.make"() : () -> tensor<64x128x!tt.ptr<i8>, #plain>
    %a = "tt.load"(%p) : (tensor<64x128x!tt.ptr<i8>, #blocks>) -> tensor<64x128xi8, #blocks> loc("k.py":5:3)
    %b = "tt.load"(%q) : (tensor<64x128x!tt.ptr<i8>, #plain>) -> tensor<64x128xi8, #plain> loc("k.py":6:3)
    %f = "arith.sitofp"(%a) : (tensor<64x128xi8, #blocks>) -> tensor<64x128xf16, #blocks>
    %m = "arith.mulf"(%f, %s) : (tensor<64x128xf16, #blocks>, tensor<64x128xf16, #blocks>)
        -> tensor<64x128xf16, #blocks>
    %t = "amdg.in_thread_transpose"(%m) : (tensor<64x128xf16, #blocks>) -> tensor<64x128xf16, #plain>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_tiles_loaded_to_be_turned_within_threads_have_the_layout_of_that() -> None:
    turned = lowered_facts(parse_module(TURNED), str).turned
    assert [(chain[0][1], layout.get("sizePerThread")) for chain, layout in turned.items()] == [(5, (4, 8))]
    assert not lowered_facts(parse_module(TURNED.replace("in_thread_transpose", "other")), str).turned


UNROLLED = """
#mfma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#lhs = #ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 4}>
#rhs = #ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 4}>
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %a, %b = "x.make"() : () -> (tensor<64x64xf16, #lhs>, tensor<64x64xf16, #rhs>)
    %z = "arith.constant"() <{value = dense<0.0> : tensor<64x64xf32, #mfma>}> : () -> tensor<64x64xf32, #mfma>
    %c = "tt.dot"(%a, %b, %z) <{inputPrecision = 2 : i32}> : TYPES loc("k.py":5:3)
    %d = "tt.dot"(%a, %b, %STARTS) <{inputPrecision = 2 : i32}> : TYPES loc("k.py":5:3)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.mark.parametrize(("start", "from_zero"), [("z", True), ("c", False)])
def test_a_product_that_adds_in_later_iterations_does_not_start_from_zeros(start: str, from_zero: bool) -> None:
    types = "(tensor<64x64xf16, #lhs>, tensor<64x64xf16, #rhs>, tensor<64x64xf32, #mfma>) -> tensor<64x64xf32, #mfma>"
    text = UNROLLED.replace("STARTS", start).replace("TYPES", types)
    (fact,) = lowered_facts(parse_module(text), str).dots.values()
    assert fact.from_zero == from_zero


STORED = """
#mfma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#near = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0]], warp = [[2, 0]], block = []}>
#far = #ttg.linear<{register = [[0, 1], [0, 2], [0, 8]], lane = [[1, 0]], warp = [[2, 0]], block = []}>
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %c, %p = "x.make"() : () -> (tensor<64x64xf16, #mfma>, tensor<64x64x!tt.ptr<f16>, #HOW>)
    %d = "MAKE"(%c) : (tensor<64x64xf16, #mfma>) -> tensor<64x64xf16, #HOW>
    "tt.store"(%p, %d) : (tensor<64x64x!tt.ptr<f16>, #HOW>, tensor<64x64xf16, #HOW>) -> () loc("k.py":5:3)
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.mark.parametrize(
    ("how", "by", "known"),
    [("far", "ttg.convert_layout", False), ("near", "x.other", False), ("near", "ttg.convert_layout", True)],
)
def test_values_whose_lanes_exchange_elements_for_a_store(how: str, by: str, known: bool) -> None:
    stores = lowered_facts(parse_module(STORED.replace("HOW", how).replace("MAKE", by)), str).stores
    assert [layout.name for layout in stores.values()] == ["ttg.linear"] * known


EARLY = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %p, %n, %t = "x.make"() : () -> (tensor<64x64x!tt.ptr<f16>, #blocked>, i32, tensor<64x64xf16, #blocked>)
    %f = "tt.load"(%p) : (tensor<64x64x!tt.ptr<f16>, #blocked>) -> tensor<64x64xf16, #blocked>
    %r = "scf.for"(%n, %n, %n, %f) ({
    ^bb0(%i: i32, %s: tensor<64x64xf16, #blocked>):
      %l = "tt.load"(%p) : (tensor<64x64x!tt.ptr<f16>, #blocked>) -> tensor<64x64xf16, #blocked>
      "scf.yield"(%HANDED) : (tensor<64x64xf16, #blocked>) -> ()
    }) : (i32, i32, i32, tensor<64x64xf16, #blocked>) -> tensor<64x64xf16, #blocked>
    "tt.return"() : () -> ()
  }) : () -> ()
}) {ttg.target = "hip:gfx942"} : () -> ()
"""


@pytest.mark.parametrize(("handed", "ahead"), [("l", [1]), ("t", [])])
def test_a_tile_waits_in_registers_where_iterations_hand_it_on(handed: str, ahead: list[int]) -> None:
    facts = lowered_facts(parse_module(EARLY.replace("HANDED", handed)), str)
    assert [ring.buffers for ring in facts.held.values()] == ahead
    assert facts.prefetched == facts.held.keys()
