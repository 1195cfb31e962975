"""A loop with loads ahead that binds a name under either side of a flag: it lasts from no iteration to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, s_ptr, c_ptr, K, B: tl.constexpr, ONE: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        if ONE:
            scale = tl.load(s_ptr + k)
        else:
            scales = tl.load(s_ptr + k + cols)
        a = tl.load(a_ptr + rows[:, None] * K + k + cols[None, :])
        b = tl.load(b_ptr + (k + rows[:, None]) * B + cols[None, :])
        product = tl.dot(a, b)
        if ONE:
            acc += product * scale
        else:
            acc += product * scales[None, :]
    tl.store(c_ptr + rows[:, None] * B + cols[None, :], acc)
"""


@pytest.mark.slow
def test_what_a_flag_leaves_unbound_is_not_kept_for_the_last_iterations(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    args = {
        "a_ptr": TensorArg("float16", (32, 128), (128, 1)),
        "b_ptr": TensorArg("float16", (128, 32), (32, 1)),
        "s_ptr": TensorArg("float32", (128,), (1,)),
        "c_ptr": TensorArg("float32", (32, 32), (32, 1)),
    }
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "s_ptr": "*fp32", "c_ptr": "*fp32"}
    types = {**pointers, "K": "i32", "B": "constexpr", "ONE": "constexpr"}
    blocks = {"B": 32, "ONE": True}
    launch = Launch(path.name, "kernel", types, blocks, (*args, "K"), Options(4, 2), (1,), {**args, "K": 128})
    compared(path, launch, "gfx942")
