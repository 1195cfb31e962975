"""Loads ahead that Triton does below the reads of an iteration's own tiles are told from those that it does above."""

from __future__ import annotations

import pytest

from tt2gl.analysis.late_loads import late_loads
from tt2gl.analysis.lowered import lowered_facts
from tt2gl.ir.parser import parse_module

TILE, SLOT = "tensor<64x64xf16, #blocked>", "!ttg.memdesc<64x64xf16, #shared, #smem, mutable>"
RING = "!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>"
LOOP = f"""
#blocked = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>
#shared = #ttg.swizzled_shared<{{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}}>
#smem = #ttg.shared_memory
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k", sym_visibility = "public"}}> ({{
    %p, %n = "x.make"() : () -> (tensor<64x64x!tt.ptr<f16>, #blocked>, i32)
    %m = "ttg.local_alloc"() : () -> {RING}
    %o = "ttg.local_alloc"() : () -> {RING}
    %s = "ttg.memdesc_index"(%m, %n) : ({RING}, i32) -> {SLOT}
    %u = "ttg.memdesc_index"(%o, %n) : ({RING}, i32) -> {SLOT}
    %r = "scf.for"(%n, %n, %n, %s) ({{
    ^bb0(%i: i32, %c: {SLOT}):
      FIRST
      SECOND
      %t = "amdg.in_thread_transpose"(%l) : ({TILE}) -> {TILE}
      %f = "ttg.memdesc_index"(%m, %i) : ({RING}, i32) -> {SLOT}
      "ttg.local_store"(%t, %f) : ({TILE}, {SLOT}) -> ()
      "scf.yield"(%f) : ({SLOT}) -> ()
    }}) : (i32, i32, i32, {SLOT}) -> {SLOT}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{ttg.target = "hip:gfx942"}} : () -> ()
"""
LOAD = f'%l = "tt.load"(%p) : (tensor<64x64x!tt.ptr<f16>, #blocked>) -> {TILE}'
READ = f'%a = "ttg.local_load"(%c) : ({SLOT}) -> {TILE}'


@pytest.mark.parametrize(
    ("first", "second", "late"),
    [(LOAD, READ, False), (READ.replace("%c", "%u"), LOAD, False), (READ, LOAD, True)],
    ids=["above", "below another ring's", "below"],
)
def test_a_load_is_late_where_its_ring_has_been_read(first: str, second: str, late: bool) -> None:
    module = parse_module(LOOP.replace("FIRST", first).replace("SECOND", second))
    made = {id(result): each for each in module.kernel.walk() for result in each.results}
    assert bool(late_loads(module.kernel, made)) == late
    (ring,) = lowered_facts(module, str).rings.values()
    assert ring.late == late
