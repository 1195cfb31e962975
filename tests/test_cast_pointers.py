"""What a loop reads ahead through a pointer that is cast has the dtype of that, not of the parameter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, w_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        w = tl.load({pointer} + (k + rows[:, None]) * B + rows[None, :])
        acc = tl.dot(a, w.to(tl.float16), acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("pointer", ["w_ptr.to(tl.pointer_type(tl.int8))", "tl.cast(w_ptr, tl.pointer_type(tl.int8))"])
def test_a_ring_holds_what_is_read(tmp_path: Path, pointer: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL.format(pointer=pointer))
    args = {
        "a_ptr": TensorArg("float16", (32, 128), (128, 1)),
        "w_ptr": TensorArg("int64", (128 * 32 // 8,), (1,)),
        "c_ptr": TensorArg("float32", (32, 32), (32, 1)),
    }
    types = {"a_ptr": "*fp16", "w_ptr": "*i64", "c_ptr": "*fp32", "K": "i32", "B": "constexpr"}
    aligned = (*args, "K")
    launch = Launch(str(path), "kernel", types, {"B": 32}, aligned, grid=(1, 1, 1), args={**args, "K": 128})
    [report] = verify(path, targets=["sm80"], launches=[launch], run="simulate")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise, report.simulate
