"""A matrix product, which stays Triton, and the kernel after it; both name their offsets by one helper."""

import triton
import triton.language as tl


@triton.jit
def block_of(pid, BLOCK: tl.constexpr):
    return pid * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, N, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    m = block_of(tl.program_id(0), BLOCK)
    n = block_of(tl.program_id(1), BLOCK)
    k = tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, y_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = block_of(tl.program_id(0), BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    x += tl.load(bias_ptr + offsets % COLS, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)
