"""A statement that stands several times, and calls a helper: what it gives to that is named in each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def offset_of(indices, strides):
    offset = 0
    for axis in tl.static_range(len(strides)):
        offset += indices[axis] * strides[axis]
    return offset


@triton.jit
def kernel(x_ptr, a_ptr, y_ptr, o_ptr, N, K: tl.constexpr, B: tl.constexpr, T: tl.constexpr):
    row, key = tl.arange(0, T), tl.arange(0, K)
    column = tl.arange(0, B)
    state = tl.where(column[None, :] == key[:, None], 1.0, 0.0)
    for start in range(0, N, T):
        token = start + row
        inside = token[:, None] < N
        x = tl.load(x_ptr + offset_of((token[:, None], key[None, :]), (K, 1)), mask=inside, other=0.0)
        y = tl.load(y_ptr + offset_of((token[:, None], column[None, :]), (B, 1)), mask=inside & (column[None, :] < B))
        a = tl.load(a_ptr + offset_of((token[:, None], row[None, :]), (T, 1)), mask=inside, other=0.0)
        corrected = tl.dot(x, state.to(x.dtype))
        corrected = tl.dot(tl.trans(a), y, acc=corrected)
        state += tl.dot(tl.trans(x), y)
        state -= tl.dot(tl.trans(x), corrected.to(x.dtype))
    tl.store(o_ptr + key[:, None] * B + column[None, :], state)
"""


@pytest.mark.slow
def test_what_a_tuple_has_in_a_call_is_named_in_each_copy(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    args = {
        "x_ptr": TensorArg("float16", (100, 64), (64, 1)),
        "a_ptr": TensorArg("float16", (100, 32), (32, 1)),
        "y_ptr": TensorArg("float16", (100, 32), (32, 1)),
        "o_ptr": TensorArg("float32", (64, 32), (32, 1)),
    }
    pointers = {"x_ptr": "*fp16", "a_ptr": "*fp16", "y_ptr": "*fp16", "o_ptr": "*fp32"}
    types = {**pointers, "N": "i32", "K": "constexpr", "B": "constexpr", "T": "constexpr"}
    blocks = {"K": 64, "B": 32, "T": 32}
    launch = Launch(path.name, "kernel", types, blocks, (*args,), Options(4, 2), (1,), {**args, "N": 100})
    compared(path, launch, "gfx942")
