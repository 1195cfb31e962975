"""Operands that are computed before a loop that Triton unrolls, on AMD: they are in a product's registers before it."""

from __future__ import annotations

from pathlib import Path

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, v_ptr, o_ptr, N: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * B + rows[None, :])
    s = tl.dot(x, tl.trans(x))
    p = tl.where(rows[:, None] >= rows[None, :], s, 0.0).to(tl.float16)
    for n in range(0, N, D):
        v = tl.load(v_ptr + rows[:, None] * N + n + columns[None, :])
        tl.store(o_ptr + rows[:, None] * N + n + columns[None, :], tl.dot(p.to(v.dtype), v))
"""


def test_its_shared_memory_serves_the_loop_again(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    kinds = {"x_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp32", "N": "constexpr", "B": "constexpr", "D": "constexpr"}
    args = {
        "x_ptr": TensorArg("float16", (64, 64), (64, 1)),
        "v_ptr": TensorArg("float16", (64, 128), (128, 1)),
        "o_ptr": TensorArg("float32", (64, 128), (128, 1)),
    }
    launch = Launch(path.name, "kernel", kinds, {"N": 128, "B": 64, "D": 128}, tuple(args), Options(4, 2), (1,), args)
    _, theirs, ours = compared(path, launch, "gfx942")
    assert ours.shared_bytes <= theirs.shared_bytes
