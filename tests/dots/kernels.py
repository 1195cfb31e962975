"""Triton kernels whose dots are plain, chained, backward, batched, and of operands that are cast first."""

# mypy: disallow-untyped-defs=false, disallow-incomplete-defs=false, disallow-untyped-decorators=false
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def plain_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    size,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A_BY_COLUMNS: tl.constexpr,
    B_BY_COLUMNS: tl.constexpr,
    A_DTYPE: tl.constexpr,
    B_DTYPE: tl.constexpr,
    ACC_DTYPE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Tiles of two matrices, each stored by rows or by columns, and cast where a dtype is given."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if A_BY_COLUMNS:
        a_ptrs = a_ptr + m[:, None] + k[None, :] * 4096
    else:
        a_ptrs = a_ptr + m[:, None] * 4096 + k[None, :]
    if B_BY_COLUMNS:
        b_ptrs = b_ptr + k[:, None] + n[None, :] * 4096
    else:
        b_ptrs = b_ptr + k[:, None] * 4096 + n[None, :]
    acc = tl.zeros((M, N), ACC_DTYPE)
    for _ in range(0, size, K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        if A_DTYPE is not None:
            a = a.to(A_DTYPE)
        if B_DTYPE is not None:
            b = b.to(B_DTYPE)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC_DTYPE)
        a_ptrs += K * 4096 if A_BY_COLUMNS else K
        b_ptrs += K if B_BY_COLUMNS else K * 4096
    tl.store(c_ptr + m[:, None] * 4096 + n[None, :], acc)


@triton.jit
def chained_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr
):
    """Attention forward: the second dot's first operand comes from the first dot."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    q = tl.load(q_ptr + m[:, None] * 4096 + d[None, :])
    acc = tl.zeros((M, K), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), float("-inf"), tl.float32)
    for start in range(0, size, N):
        k = tl.load(k_ptr + (start + n)[None, :] * 4096 + d[:, None])
        scores = tl.dot(q, k, input_precision=PRECISION)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - higher[:, None])
        scale = tl.exp2(top - higher)
        total = total * scale + tl.sum(p, 1)
        v = tl.load(v_ptr + (start + n)[:, None] * 4096 + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None], input_precision=PRECISION)
        top = higher
    tl.store(out_ptr + m[:, None] * 4096 + d[None, :], acc / total[:, None])


@triton.jit
def backward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr
):
    """Attention backward: four dots in a loop, some of transposed tiles."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    k = tl.load(k_ptr + m[:, None] * 4096 + d[None, :])
    v = tl.load(v_ptr + m[:, None] * 4096 + d[None, :])
    dk = tl.zeros((M, K), tl.float32)
    dv = tl.zeros((M, K), tl.float32)
    for start in range(0, size, N):
        q = tl.load(q_ptr + (start + n)[:, None] * 4096 + d[None, :])
        do = tl.load(out_ptr + (start + n)[:, None] * 4096 + d[None, :])
        p = tl.exp2(tl.dot(k, tl.trans(q), input_precision=PRECISION))
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision=PRECISION)
        dp = tl.dot(v, tl.trans(do), input_precision=PRECISION)
        dk = tl.dot((p * dp).to(q.dtype), q, dk, input_precision=PRECISION)
    tl.store(k_ptr + m[:, None] * 4096 + d[None, :], dk)
    tl.store(v_ptr + m[:, None] * 4096 + d[None, :], dv)


@triton.jit
def batched_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    size,
    B: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Several small products at once: a dot of three dimensions."""
    z = tl.arange(0, B)[:, None, None] * 65536
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((B, M, N), tl.float32)
    for start in range(0, size, K):
        a = tl.load(a_ptr + z + m[None, :, None] * 256 + (start + k)[None, None, :])
        b = tl.load(b_ptr + z + (start + k)[None, :, None] * 256 + n[None, None, :])
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(c_ptr + z + m[None, :, None] * 256 + n[None, None, :], acc)
