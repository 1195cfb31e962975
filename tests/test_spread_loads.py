"""A row of addresses under a mask of a whole tile is loaded as a tile, and a ring of it has slots of that."""

from __future__ import annotations

from pathlib import Path

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, M: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    is_first = tl.arange(0, M) == 0
    acc = tl.zeros((M, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + k + cols[None, :], mask=is_first[:, None] & (k + cols < K)[None, :], other=0.0)
        b = tl.load(b_ptr + (k + rows[:, None]) * B + cols[None, :])
        acc = tl.dot(a, b, acc)
    at = c_ptr + tl.arange(0, M)[:, None] * B + cols[None, :]
    tl.store(at, acc, mask=is_first[:, None])
"""


def test_a_slot_has_the_extents_of_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    args = {
        "a_ptr": TensorArg("float16", (128,), (1,)),
        "b_ptr": TensorArg("float16", (128, 32), (32, 1)),
        "c_ptr": TensorArg("float32", (16, 32), (32, 1)),
    }
    types = dict.fromkeys(("a_ptr", "b_ptr"), "*fp16") | {"c_ptr": "*fp32", "K": "i32"}
    extents = {"B": 32, "M": 16}
    types |= dict.fromkeys(extents, "constexpr")
    launch = Launch("kernels.py", "kernel", types, extents, (*args, "K"), Options(4, 3), (1, 1, 1), {**args, "K": 128})
    compared(path, launch, "sm80")
