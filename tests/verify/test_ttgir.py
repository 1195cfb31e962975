"""What TTGIR is read for: conversions, rings, copies of tiles, and the lines of them."""

from __future__ import annotations

from tt2gl.results import Place
from tt2gl.verify.ttgir import read_ttgir

PIPELINE = """
#loc = loc("/tmp/x/_a_kernel.py":9:0)
module {
  tt.func public @k() {
    %a = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16, @> loc(#loc5)
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<2x32x64xf16, @> loc(#loc4)
    %c = ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16, @> loc(#loc4)
    %bars = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64, @> loc(#loc4)
    %0 = ttg.memdesc_index %bars[%c0] : !ttg.memdesc<3x1xi64, @> -> !ttg.memdesc<1xi64, @> loc(#loc4)
    %1 = ttg.memdesc_index %a[%c0] : !ttg.memdesc<3x64x32xf16, @> -> !ttg.memdesc<64x32xf16, @> loc(#loc4)
    ttng.async_tma_copy_global_to_local %d[%m, %c0] %1, %0, %true : COPY
    scf.for %t = %c0 to %n step %c1  : i32 {
      ttng.async_tma_copy_global_to_local %d[%m, %c0] %1, %0, %true : COPY
      %2:2 = scf.for %k = %c0 to %n step %c1 iter_args(%s = %c0, %u = %c1) -> (i32, i32)  : i32 {
        scf.if %more {
          ttng.async_tma_copy_global_to_local %d[%m, %k] %1, %0, %true : COPY
        } loc(#loc4)
        %3 = ttg.memdesc_index %b[%s] : !ttg.memdesc<2x32x64xf16, @> -> !ttg.memdesc<32x64xf16, @> loc(#loc4)
        scf.yield %s, %u : i32, i32 loc(#loc4)
      } {tt.loop_unroll_factor = 1 : i32} loc(#loc4)
    } loc(#loc4)
    %4 = ttg.convert_layout %x : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #blocked> loc(#loc4)
    %5 = ttg.convert_layout %y : tensor<64xf16, #blocked> -> tensor<64xf16, #blocked> loc(#loc4)
    ttng.async_tma_copy_local_to_global %e[%m, %n] %c : DESC, !ttg.memdesc<64x64xf16, @> loc(#loc4)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("/usr/lib/standard.py":4:5)
#loc2 = loc("/tmp/x/_a_kernel.py":20:8)
#loc4 = loc("x"(#loc))
#loc5 = loc("a"(#loc6))
#loc6 = loc(callsite(#loc1 at #loc2))
"""
PIPELINE = (
    PIPELINE.replace(
        "COPY", "!tt.tensordesc<tensor<64x32xf16, #s>>, !ttg.memdesc<1xi64, @> -> !ttg.memdesc<64x32xf16, @> loc(#loc4)"
    )
    .replace("DESC", "!tt.tensordesc<tensor<64x64xf16, #s>>")
    .replace("@", "#shared, #smem, mutable")
)


def test_rings_are_the_allocations_of_tiles_that_are_indexed() -> None:
    assert read_ttgir(PIPELINE).rings == {"32x64xf16": [2], "64x32xf16": [3]}


def test_copies_of_tiles_have_their_bytes() -> None:
    read = read_ttgir(PIPELINE)
    assert read.bulk_copies == {"tma.4096": 3, "tma_store.8192": 1}
    assert read.step_copies == {"tma.4096": 1}


def test_conversions_between_equal_layouts_do_not_count() -> None:
    assert read_ttgir(PIPELINE).conversions == 1


def test_conversions_between_two_names_of_a_layout_do_not_count() -> None:
    lines = [
        "#linear = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64]], block = []}>",
        "#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>",
        "%1 = ttg.convert_layout %0 : tensor<128xi32, #linear> -> tensor<128xi32, #blocked> loc(#loc4)",
    ]
    assert read_ttgir("\n".join(lines)).conversions == 0
    assert read_ttgir("\n".join(lines).replace("sizePerThread = [2]", "sizePerThread = [4]")).conversions == 1


def test_places_are_the_authors() -> None:
    places = read_ttgir(PIPELINE, {"_a_kernel": "k.py"}).places
    assert list(places["ring.64x32xf16"]) == [Place("k.py", 20)]
    assert list(places["convert_layout"]) == [Place("k.py", 9)]
    assert read_ttgir(PIPELINE).places == {}


def test_a_way_through_shared_memory_is_a_conversion() -> None:
    shared = "!ttg.memdesc<32x64xf16, #shared, #smem>"
    lines = [
        f"%a = ttg.local_alloc %x : (tensor<32x64xf16, #blocked>) -> {shared}",
        "%b = ttg.memdesc_trans %a {order = array<i32: 1, 0>} : SHARED -> SHARED",
        "%c = ttg.local_load %b : SHARED -> tensor<64x32xf16, #dot>",
        "%ring = ttg.local_alloc : () -> !ttg.memdesc<2x32x64xf16, #shared, #smem, mutable>",
        "%d = ttg.memdesc_index %ring[%c0] : RING -> SHARED",
        "%e = ttg.local_load %d token %t : SHARED -> tensor<32x64xf16, #dot>",
        f"%f = ttg.local_alloc %y : (tensor<32x64xf16, #blocked>) -> {shared}",
        "%g = ttng.warp_group_dot %f, %d, %acc : SHARED * SHARED -> tensor<64x64xf32, #mma>",
    ]
    assert read_ttgir("\n".join(lines)).conversions == 1


def test_a_layout_that_a_reshape_hid_is_no_conversion() -> None:
    lines = [
        "%b = tt.reshape %a : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #linear> loc(#loc4)",
        "%c = ttg.convert_layout %b : tensor<64x64xf32, #linear> -> tensor<64x64xf32, #mma> loc(#loc4)",
    ]
    assert read_ttgir("\n".join(lines)).conversions == 0
    turned = [line.replace("-> tensor<64x64", "-> tensor<32x128") for line in lines]
    assert read_ttgir("\n".join(turned)).conversions == 1


def test_what_is_turned_within_threads_is_a_conversion() -> None:
    line = "%1 = amdg.in_thread_transpose %0 : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #linear> loc(#loc1)"
    assert read_ttgir(line).conversions == 1
    assert read_ttgir(line.replace("in_thread_transpose", "buffer_load")).conversions == 0
