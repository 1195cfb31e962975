"""Attention of one sequence a head, causal or not, without its matrix of scores ever being whole."""

import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, stride_h, stride_n, n, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_h
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + head + offs_m[:, None] * stride_n + offs_d[None, :], mask=offs_m[:, None] < n, other=0.0)

    # exp2 is the faster one: the scores are scaled by log2(e)
    scale *= 1.4426950408889634
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = min(n, start_m + BLOCK_M) if CAUSAL else n
    for start_n in range(0, end, BLOCK_N):
        keys = start_n + offs_n
        k = tl.load(k_ptr + head + keys[None, :] * stride_n + offs_d[:, None], mask=keys[None, :] < n, other=0.0)
        scores = tl.dot(q, k) * scale
        seen = keys[None, :] < n
        if CAUSAL:
            seen = seen & (keys[None, :] <= offs_m[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        # what was summed so far is of the old maximum
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + head + keys[:, None] * stride_n + offs_d[None, :], mask=keys[:, None] < n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    o = (acc / l_i[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + head + offs_m[:, None] * stride_n + offs_d[None, :], o, mask=offs_m[:, None] < n)
