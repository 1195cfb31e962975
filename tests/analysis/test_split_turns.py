"""Loops that Triton splits, so that a turn does halves of two iterations, are told from others."""

from __future__ import annotations

import pytest

from tt2gl.analysis.facts import LaunchFacts, Lowered, RingFact, without_halves
from tt2gl.analysis.groups import grouped
from tt2gl.analysis.lowered import lowered_facts
from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.parser import parse_module

TILE, SLOT = "tensor<64x64xf16, #blocked>", "!ttg.memdesc<64x64xf16, #shared, #smem, mutable>"
RING = "!ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>"
LOAD = f'"tt.load"(%p) : (tensor<64x64x!tt.ptr<f16>, #blocked>) -> {TILE} loc("k.py":3:4)'
LOOP = f"""
#blocked = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>
#shared = #ttg.swizzled_shared<{{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}}>
#smem = #ttg.shared_memory
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k", sym_visibility = "public"}}> ({{
    %p, %n, %x = "x.make"() : () -> (tensor<64x64x!tt.ptr<f16>, #blocked>, i32, {TILE})
    %m = "ttg.local_alloc"() : () -> {RING}
    %s = "ttg.memdesc_index"(%m, %n) : ({RING}, i32) -> {SLOT}
    %l = {LOAD}
    "ttg.local_store"(%l, %s) : ({TILE}, {SLOT}) -> ()
    %r, %t = "scf.for"(%n, %n, %n, %x, %x) ({{
    ^bb0(%i: i32, %k: {TILE}, %c: {TILE}):
      %d = "tt.dot"(%k, %k, %x) : ({TILE}, {TILE}, {TILE}) -> {TILE}
      "ttg.local_store"(%c, %s) : ({TILE}, {SLOT}) -> ()
      SECOND
      %a = "ttg.local_load"(%s) : ({SLOT}) -> {TILE}
      %f = {LOAD}
      "scf.yield"(%a, %f) : ({TILE}, {TILE}) -> ()
    }}) : (i32, i32, i32, {TILE}, {TILE}) -> ({TILE}, {TILE})
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{ttg.target = "hip:gfx942"}} : () -> ()
"""
SECOND = f'%e = "tt.dot"(%d, %x, %x) : ({TILE}, {TILE}, {TILE}) -> {TILE}'


@pytest.mark.parametrize(
    ("text", "split"),
    [
        (LOOP.replace("SECOND", SECOND), True),
        (LOOP.replace("SECOND", ""), False),
        (LOOP.replace("SECOND", SECOND).replace('"scf.yield"(%a, %f)', '"scf.yield"(%x, %f)'), False),
    ],
    ids=["split", "one product", "none read a turn before"],
)
def test_a_loop_is_split_that_reads_a_tile_of_two_products_a_turn_before(text: str, split: bool) -> None:
    (ring,) = lowered_facts(parse_module(text), str).rings.values()
    assert ring.split == split


def test_launches_whose_loops_are_split_have_a_text_of_their_own() -> None:
    layout, place = DialectAttr("ttg.swizzled_shared", (("order", (1, 0)),)), (("k.py", 3, 4),)
    rings = [RingFact(1, (32, 32), layout, registers=True, split=split) for split in (False, True)]
    facts = [LaunchFacts("k", {}, {}, Lowered({}, {place: ring})) for ring in rings]
    assert grouped(facts) == [[0], [1]]
    assert grouped([*map(without_halves, facts)]) == [[0, 1]]
