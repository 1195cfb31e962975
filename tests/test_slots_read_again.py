"""Tiles of rings that a product takes and something else reads, too: once more, in a layout that spreads them."""

from __future__ import annotations

from pathlib import Path

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, T, B: tl.constexpr):
    rows = tl.arange(0, B)
    a = tl.load(a_ptr + rows[:, None] * B + rows[None, :])
    plain, scaled = tl.zeros((B, B), tl.float32), tl.zeros((B, B), tl.float32)
    for start in range(0, T, B):
        b = tl.load(b_ptr + (start + rows)[:, None] * B + rows[None, :], mask=(start + rows < T)[:, None], other=0.0)
        plain = tl.dot(a, b, plain)
        scaled = tl.dot(a, (b * rows[:, None]).to(a.dtype), scaled)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], plain + scaled)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "T": "i32", "B": "constexpr"},
    constexprs={"B": 32},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "a_ptr": TensorArg("float16", (32, 32), (32, 1), None),
        "b_ptr": TensorArg("float16", (80, 32), (32, 1), None),
        "c_ptr": TensorArg("float32", (32, 32), (32, 1), None),
        "T": 80,
    },
)


def test_what_is_computed_of_a_tile_is_spread_over_all_threads(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target="sm80", launches=[LAUNCH], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, KERNEL, made.text, LAUNCH, "sm80")
    # `a_layout` is that of a tile in memory, of equal extents.
    assert made.text.count(" = b_buf.index(slot).load(a_layout)") == 1
