"""Operands of two rows to a byte, one above the other: the bytes are what is converted, as Triton has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, w_ptr, s_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    rows, cols = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    acc = tl.zeros([M, N], tl.float32)
    k = 0
    while k < K:
        a = tl.load(a_ptr + rows * K + k + tl.arange(0, B)[None, :])
        packed = tl.load(w_ptr + (k // 2 + tl.arange(0, B // 2))[:, None] * N + cols)
        even = (packed & 15).to(tl.float32) - 8
        odd = (packed >> 4).to(tl.float32) - 8
        w = tl.reshape({turned}, (B, N))
        scale = tl.load(s_ptr + (k // 32 + tl.arange(0, B // 32))[:, None] * N + cols)
        scale = tl.reshape(tl.broadcast_to(scale[:, None, :], (B // 32, 32, N)), (B, N))
        acc = tl.dot(a, (w * scale).to(tl.float16), acc)
        k += B
    tl.store(c_ptr + rows * N + cols, acc)
"""
SHAPES = {
    "a_ptr": TensorArg("float16", (64, 128), (128, 1)),
    "w_ptr": TensorArg("uint8", (64, 64), (64, 1), (0, 255)),
    "s_ptr": TensorArg("float32", (4, 64), (64, 1)),
    "c_ptr": TensorArg("float32", (64, 64), (64, 1)),
}
LAUNCH = Launch(
    "kernels.py",
    "kernel",
    {"a_ptr": "*fp16", "w_ptr": "*u8", "s_ptr": "*fp32", "c_ptr": "*fp32", "K": "i32"}
    | dict.fromkeys("MNB", "constexpr"),
    {"M": 64, "N": 64, "B": 64},
    ("a_ptr", "w_ptr", "s_ptr", "c_ptr", "K"),
    Options(4),
    (1, 1, 1),
    SHAPES | {"K": 128},
)


@pytest.mark.parametrize("turned", ["tl.trans(tl.join(even, odd))", "tl.join(even, odd).permute(0, 2, 1)"])
@pytest.mark.parametrize("target", ["gfx950", "gfx942", "sm80", "sm90"])
def test_what_is_converted(tmp_path: Path, turned: str, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL.format(turned=turned))
    report, triton, gluon = compared(path, LAUNCH, target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.shared_bytes <= triton.shared_bytes
    assert report.simulate is not None
    assert report.simulate.bitwise
