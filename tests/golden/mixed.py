"""A merge, which stays Triton, and the kernel after it; both name their offsets by one helper."""

import triton
import triton.language as tl


@triton.jit
def block_of(pid, BLOCK: tl.constexpr):
    return pid * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def merge_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = block_of(tl.program_id(0), BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=float("inf"))
    tl.store(y_ptr + offsets, tl.standard.sort_impl(x), mask=offsets < n)


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, y_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = block_of(tl.program_id(0), BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    x += tl.load(bias_ptr + offsets % COLS, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)
