"""A row that Triton keeps in registers for later iterations in one layout, and loads again where another reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.analysis.lowered import lowered_facts
from tt2gl.convert import convert
from tt2gl.ir.parser import parse_module
from tt2gl.launches import Launch, Options
from tt2gl.results import Conversion

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(k_ptr, v_ptr, g_ptr, h_ptr, T, K: tl.constexpr, BT: tl.constexpr):
    rows, cols, steps = tl.arange(0, K), tl.arange(0, K), tl.arange(0, BT)
    h = tl.zeros((K, K), tl.float32)
    for i in range(tl.cdiv(T, BT)):
        tl.store(h_ptr + i * K * K + rows[:, None] * K + cols[None, :], h.to(tl.float16))
        at = i * BT + steps
        k = tl.load(k_ptr + at[None, :] * K + rows[:, None], mask=at[None, :] < T, other=0.0)
        v = tl.load(v_ptr + at[:, None] * K + cols[None, :], mask=at[:, None] < T, other=0.0)
        g = tl.load(g_ptr + at[None, :] * K + rows[:, None], mask=at[None, :] < T, other=0.0)
        last = tl.load(g_ptr + (tl.minimum((i + 1) * BT, T) - 1) * K + rows)
        h *= tl.exp(last)[:, None]
        h = tl.dot((k * tl.exp(last[:, None] - g)).to(k.dtype), v, h)
    tl.store(h_ptr - K * K + rows[:, None] * K + cols[None, :], h.to(tl.float16))
"""


def _converted(target: str, directory: Path) -> Conversion:
    file = directory / "kernel.py"
    file.write_text(KERNEL)
    pointers = {"k_ptr": "*fp16", "v_ptr": "*fp16", "g_ptr": "*fp32", "h_ptr": "*fp16"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**pointers, "T": "i32", "K": "constexpr", "BT": "constexpr"},
        constexprs={"K": 32, "BT": 32},
        divisible_by_16=tuple(pointers),
        options=Options(4, 3),
    )
    return convert(file, target=target, launches=[launch], root=directory, compile=False)


def test_a_row_waits_in_the_layout_of_the_operand_alone(tmp_path: Path) -> None:
    made = _converted("gfx942", tmp_path)
    assert not [each for each in made.kernels[0].diagnostics if each.code == "TTG331"]
    steady = made.text[made.text.index("for i in range(drain)") : made.text.index("# the last iterations")]
    ahead = steady.index("# tiles of an iteration ahead")
    # The iteration's own is loaded first: what comes behind the tiles ahead is waited for with them.
    assert "last = gl.amd.cdna3.buffer_load(" in steady[:ahead]
    assert "last_next = gl.amd.cdna3.buffer_load(" in steady[ahead:]
    assert "last_lhs = last_held[0]" in steady[ahead:]


def test_no_row_waits_where_registers_are_few(tmp_path: Path) -> None:
    assert "last_held" not in _converted("gfx1100", tmp_path).text


ROWS = {
    "operand": "#ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>}>",
    "accumulator": "#ttg.slice<{dim = 1, parent = #mma}>",
    "memory": "#ttg.slice<{dim = 1, parent = #blocked}>",
}
LOOP = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
"builtin.module"() ({
  "tt.func"() <{function_type = () -> (), sym_name = "k", sym_visibility = "public"}> ({
    %p, %q, %n = "x.make"() : () -> (tensor<64x!tt.ptr<f32>, HELD>, tensor<64x!tt.ptr<f32>, AGAIN>, i32)
    %a = "tt.load"(%p) : (tensor<64x!tt.ptr<f32>, HELD>) -> tensor<64xf32, HELD>
    %r = "scf.for"(%n, %n, %n, %a) ({
    ^bb0(%i: i32, %c: tensor<64xf32, HELD>):
      %own = "tt.load"(%q) : (tensor<64x!tt.ptr<f32>, AGAIN>) -> tensor<64xf32, AGAIN>
      %next = "tt.load"(%p) : (tensor<64x!tt.ptr<f32>, HELD>) -> tensor<64xf32, HELD>
      "scf.yield"(%next) : (tensor<64xf32, HELD>) -> ()
    }) : (i32, i32, i32, tensor<64xf32, HELD>) -> tensor<64xf32, HELD>
    "tt.return"() : () -> ()
  }) : () -> ()
}) {ttg.target = "hip:gfx942"} : () -> ()
"""


@pytest.mark.parametrize(
    ("held", "again", "waits"),
    [("operand", "accumulator", True), ("memory", "accumulator", False), ("accumulator", "memory", False)],
)
def test_a_row_that_is_loaded_again_waits_in_an_operands_layout_alone(held: str, again: str, waits: bool) -> None:
    module = parse_module(LOOP.replace("HELD", ROWS[held]).replace("AGAIN", ROWS[again]))
    found = lowered_facts(module, str).held
    assert [(fact.buffers, fact.again) for fact in found.values()] == ([(1, True)] if waits else [])
