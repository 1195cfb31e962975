"""Loads ahead that read where a load of their own iteration says are told from those whose place is known before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tt2gl.analysis.facts import LaunchFacts, without_lookups
from tt2gl.analysis.groups import grouped
from tt2gl.analysis.located_loads import located_loads
from tt2gl.analysis.lowered import lowered_facts
from tt2gl.ir.parser import parse_module
from tt2gl.launches import Launch
from tt2gl.results import Conversion

TILE, SLOT = "tensor<64x64xf16, #blocked>", "!ttg.memdesc<64x64xf16, #shared, #smem, mutable>"
RING, ROWS = "!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>", "tensor<64x64xi32, #blocked>"
POINTERS = "tensor<64x64x!tt.ptr<f16>, #blocked>"
LOOP = f"""
#blocked = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}}>
#shared = #ttg.swizzled_shared<{{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}}>
#smem = #ttg.shared_memory
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k", sym_visibility = "public"}}> ({{
    %p, %n, %q, %first = "x.make"() : () -> ({POINTERS}, i32, {POINTERS}, {ROWS})
    %m = "ttg.local_alloc"() : () -> {RING}
    %r = "scf.for"(%n, %n, %n, %first) ({{
    ^bb0(%i: i32, %known: {ROWS}):
      %rows = "tt.load"(%q) : ({POINTERS}) -> {ROWS}
      %twice = "arith.addi"(ROWS, ROWS) : ({ROWS}, {ROWS}) -> {ROWS}
      %at = "tt.addptr"(%p, %twice) : ({POINTERS}, {ROWS}) -> {POINTERS}
      %l = "tt.load"(%at) : ({POINTERS}) -> {TILE}
      %f = "ttg.memdesc_index"(%m, %i) : ({RING}, i32) -> {SLOT}
      "ttg.local_store"(%l, %f) : ({TILE}, {SLOT}) -> ()
      "scf.yield"(%rows) : ({ROWS}) -> ()
    }}) : (i32, i32, i32, {ROWS}) -> {ROWS}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) {{ttg.target = "hip:gfx942"}} : () -> ()
"""


@pytest.mark.parametrize(("rows", "located"), [("%known", False), ("%first", False), ("%rows", True)])
def test_what_is_loaded_in_the_iteration_itself_locates_a_tile(rows: str, located: bool) -> None:
    module = parse_module(LOOP.replace("ROWS, ROWS", f"{rows}, {rows}", 1))
    made = {id(result): each for each in module.kernel.walk() for result in each.results}
    assert len(located_loads(module.kernel, made)) == located
    (ring,) = lowered_facts(module, str).rings.values()
    assert ring.located == located


def test_launches_that_look_up_before_and_then_have_bodies_of_their_own() -> None:
    modules = [parse_module(LOOP.replace("ROWS, ROWS", f"{rows}, {rows}", 1)) for rows in ("%known", "%rows")]
    facts = [LaunchFacts("", {}, {}, lowered_facts(module, str)) for module in modules]
    assert grouped(facts) == [[0], [1]]
    assert grouped([*map(without_lookups, facts)]) == [[0, 1]]


GATHERED = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tile = at[:, None] * BLOCK + at[None, :]
    q = tl.load(x_ptr + tile)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in range(0, n, BLOCK):
        rows = tl.load(i_ptr + k + at, mask=k + at < n, other=0)
        x = tl.load(x_ptr + rows[:, None] * BLOCK + at[None, :], mask=(k + at < n)[:, None], other=0.0)
        acc = tl.dot(q, x, acc)
    tl.store(y_ptr + tile, acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("stages", "before"), [(2, False), (3, True)])
def test_rows_are_looked_up_before_where_there_is_a_stage_for_that(
    conversion: Callable[..., Conversion], launch: Callable[..., Launch], stages: int, before: bool
) -> None:
    wanted = launch("x_ptr=*fp16 y_ptr=*fp32 i_ptr=*i32 n=i32", BLOCK=32)
    wanted = replace(wanted, options=replace(wanted.options, num_stages=stages))
    made = conversion(GATHERED, wanted, target="gfx942", compile=False)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert ("looked up one iteration before" in made.text) == before
