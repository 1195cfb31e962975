"""Functions that Triton's inliner leaves as calls, as they return early in a loop: what it makes of them is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def block_of_rows(start, x_ptr, y_ptr, out_ptr, rows, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    at, cols, inner = start * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    out_ptrs = out_ptr + at[:, None] * N + cols[None, :]
    if start * M >= rows:
        tl.store(out_ptrs, tl.zeros((M, N), tl.float32))
        return
    x = tl.load(x_ptr + at[:, None] * K + inner[None, :])
    y = tl.load(y_ptr + inner[:, None] * N + cols[None, :])
    tl.store(out_ptrs, tl.dot(x, y))


@triton.jit
def rows_kernel(x_ptr, y_ptr, out_ptr, rows, blocks, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    for start in range(blocks):
        block_of_rows(start, x_ptr, y_ptr, out_ptr, rows, M, K, N)
"""
EXTENTS = {"M": 64, "K": 32, "N": 64}


def launch_of(path: Path) -> Launch:
    """Three blocks of rows, the last of which is beyond the rows."""
    path.write_text(KERNEL)
    args = {
        "x_ptr": TensorArg("float16", (192, 32), (32, 1)),
        "y_ptr": TensorArg("float16", (32, 64), (64, 1)),
        "out_ptr": TensorArg("float32", (192, 64), (64, 1)),
        "rows": 128,
        "blocks": 3,
    }
    kinds = {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32", "rows": "i32", "blocks": "i32"}
    pointers = ("x_ptr", "y_ptr", "out_ptr")
    signature = kinds | dict.fromkeys(EXTENTS, "constexpr")
    return Launch(path.name, "rows_kernel", signature, EXTENTS, pointers, grid=(1, 1, 1), args=args)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90", "gfx942"])
def test_a_product_in_one_is_as_triton_s(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    _, triton, port = compared(path, launch_of(path), target)
    assert port.mma == triton.mma
    assert port.global_loads == triton.global_loads
    assert port.global_stores == triton.global_stores
