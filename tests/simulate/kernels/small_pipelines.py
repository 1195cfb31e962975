"""Triton kernels for tests of what passes make of them, and of how long they take."""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A @ B, fp16, row-major; M and N are multiples of the blocks."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        along, down = k + tl.arange(0, BLOCK_K)[None, :], k + tl.arange(0, BLOCK_K)[:, None]
        a = tl.load(a_ptr + rows * K + along, mask=along < K, other=0.0)
        b = tl.load(b_ptr + down * N + cols, mask=down < K, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows * N + cols, acc.to(tl.float16))


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask) + tl.load(y_ptr + offsets, mask), mask)
