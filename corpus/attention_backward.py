"""Attention backward: row sums of out * dout first, then dK and dV by blocks of keys and dQ by blocks of queries."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_backward_preprocess_kernel(
    Out, DO, Delta,
    stride_b, stride_h, stride_m,
    n_heads, seq_len,
    BLOCK_M: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """delta = sum(out * dout) for each row of every head."""
    off_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    off_bh = tl.program_id(1)
    off_d = tl.arange(0, HEAD_DIM)
    base = (off_bh // n_heads).to(tl.int64) * stride_b + (off_bh % n_heads) * stride_h
    offs = base + off_m[:, None] * stride_m + off_d[None, :]
    mask = off_m[:, None] < seq_len
    o = tl.load(Out + offs, mask=mask, other=0.0)
    do = tl.load(DO + offs, mask=mask, other=0.0).to(tl.float32)
    delta = tl.sum(o.to(tl.float32) * do, axis=1)
    tl.store(Delta + off_bh * seq_len + off_m, delta, mask=off_m < seq_len)


@triton.jit
def attention_backward_dkdv_kernel(
    Q, K, V, DO, Lse, Delta, DK, DV,
    stride_b, stride_h, stride_tok,
    n_heads, seq_len,
    sm_scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """dK and dV of one block of keys, over all queries that see it. Scores are kept transposed: [BLOCK_N, BLOCK_M]."""
    RCP_LN2: tl.constexpr = 1.4426950408889634
    start_n = tl.program_id(0) * BLOCK_N
    off_bh = tl.program_id(1)
    adj = (off_bh // n_heads).to(tl.int64) * stride_b + (off_bh % n_heads) * stride_h
    Q += adj
    K += adj
    V += adj
    DO += adj
    DK += adj
    DV += adj
    Lse += off_bh * seq_len
    Delta += off_bh * seq_len

    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    kv_offs = offs_n[:, None] * stride_tok + offs_d[None, :]
    kv_mask = offs_n[:, None] < seq_len
    # both stay in registers or shared memory throughout the loop
    k = tl.load(K + kv_offs, mask=kv_mask, other=0.0)
    v = tl.load(V + kv_offs, mask=kv_mask, other=0.0)
    dk = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], dtype=tl.float32)

    lo = 0
    if CAUSAL:
        # earlier queries do not see these keys
        lo = start_n // BLOCK_M * BLOCK_M
    offs_m = lo + tl.arange(0, BLOCK_M)
    qT_ptrs = Q + offs_m[None, :] * stride_tok + offs_d[:, None]
    do_ptrs = DO + offs_m[:, None] * stride_tok + offs_d[None, :]
    curr_m = lo
    for _ in range(tl.cdiv(seq_len - lo, BLOCK_M)):
        offs_m = curr_m + tl.arange(0, BLOCK_M)
        m_mask = offs_m < seq_len
        qT = tl.load(qT_ptrs, mask=m_mask[None, :], other=0.0)
        lse = tl.load(Lse + offs_m, mask=m_mask, other=0.0)
        qkT = tl.dot(k, qT)
        pT = tl.exp2(qkT * (sm_scale * RCP_LN2) - lse[None, :] * RCP_LN2)
        keep = m_mask[None, :]
        if CAUSAL:
            keep = keep & (offs_m[None, :] >= offs_n[:, None])
        pT = tl.where(keep, pT, 0.0)

        do = tl.load(do_ptrs, mask=m_mask[:, None], other=0.0)
        dv += tl.dot(pT.to(do.dtype), do)
        delta = tl.load(Delta + offs_m, mask=m_mask, other=0.0)
        dpT = tl.dot(v, tl.trans(do)).to(tl.float32)
        dsT = pT * (dpT - delta[None, :])
        dk += tl.dot(dsT.to(qT.dtype), tl.trans(qT))

        curr_m += BLOCK_M
        qT_ptrs += BLOCK_M * stride_tok
        do_ptrs += BLOCK_M * stride_tok

    tl.store(DV + kv_offs, dv.to(DV.dtype.element_ty), mask=kv_mask)
    dk *= sm_scale
    tl.store(DK + kv_offs, dk.to(DK.dtype.element_ty), mask=kv_mask)


@triton.jit
def _row_block(ptr, rows, stride, seq_len, HEAD_DIM: tl.constexpr):
    """Rows of a matrix whose rows are contiguous; those past the end are zero."""
    offs_d = tl.arange(0, HEAD_DIM)
    return tl.load(ptr + rows[:, None] * stride + offs_d[None, :], mask=rows[:, None] < seq_len, other=0.0)


@triton.jit
def attention_backward_dq_kernel(
    Q, K, V, DO, Lse, Delta, DQ,
    stride_b, stride_h, stride_tok,
    n_heads, seq_len,
    sm_scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """dQ of one block of queries, over all keys that it sees."""
    off_bh = tl.program_id(1)
    adj = (off_bh // n_heads).to(tl.int64) * stride_b + (off_bh % n_heads) * stride_h
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    q = _row_block(Q + adj, offs_m, stride_tok, seq_len, HEAD_DIM)
    do = _row_block(DO + adj, offs_m, stride_tok, seq_len, HEAD_DIM)
    lse = tl.load(Lse + off_bh * seq_len + offs_m, mask=offs_m < seq_len, other=0.0)
    delta = tl.load(Delta + off_bh * seq_len + offs_m, mask=offs_m < seq_len, other=0.0)

    dq = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    hi = tl.minimum((tl.program_id(0) + 1) * BLOCK_M, seq_len) if CAUSAL else seq_len
    for start_n in tl.range(0, hi, BLOCK_N, num_stages=2):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        k = _row_block(K + adj, offs_n, stride_tok, seq_len, HEAD_DIM)
        v = _row_block(V + adj, offs_n, stride_tok, seq_len, HEAD_DIM)
        p = tl.exp(tl.dot(q, k.T) * sm_scale - lse[:, None])
        keep = offs_n[None, :] < seq_len
        if CAUSAL:
            keep = keep & (offs_m[:, None] >= offs_n[None, :])
        p = tl.where(keep, p, 0.0)
        dp = tl.dot(do, v.T)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, acc=dq)

    offs = offs_m[:, None] * stride_tok + tl.arange(0, HEAD_DIM)[None, :]
    tl.store(DQ + adj + offs, (dq * sm_scale).to(DQ.dtype.element_ty), mask=offs_m[:, None] < seq_len)


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    out: torch.Tensor, dout: torch.Tensor, lse: torch.Tensor,
    causal: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Gradients of q, k and v; all of shape [batch, heads, length, head size] and equal strides."""
    batch, heads, seq_len, head_dim = q.shape
    assert q.stride() == k.stride() == v.stride() == out.stride() == dout.stride()
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    delta = torch.empty_like(lse)
    strides, sizes = q.stride()[:3], (heads, seq_len)
    attention_backward_preprocess_kernel[(triton.cdiv(seq_len, 128), batch * heads)](
        out, dout, delta, *strides, *sizes, BLOCK_M=128, HEAD_DIM=head_dim
    )
    block_m, block_n = (64, 128) if head_dim <= 64 else (32, 128)
    attention_backward_dkdv_kernel[(triton.cdiv(seq_len, block_n), batch * heads)](
        q, k, v, dout, lse, delta, dk, dv, *strides, *sizes, head_dim**-0.5,
        CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n, HEAD_DIM=head_dim, num_warps=8, num_stages=2,
    )  # fmt: skip
    attention_backward_dq_kernel[(triton.cdiv(seq_len, block_n), batch * heads)](
        q, k, v, dout, lse, delta, dq, *strides, *sizes, head_dim**-0.5,
        CAUSAL=causal, BLOCK_M=block_n, BLOCK_N=block_m, HEAD_DIM=head_dim, num_warps=8, num_stages=3,
    )  # fmt: skip
    return dq, dk, dv
