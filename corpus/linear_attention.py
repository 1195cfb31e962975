"""Linear attention by chunks: quadratic within a chunk, a state [keys, values] from chunk to chunk.

Gates decay the state: S_t = exp(g_t) S_(t-1) + k_t v_t^T and o_t = scale * q_t S_t, for every head by itself.
Tensors are [batch, length, heads, size], contiguous.
"""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {
        "USE_INITIAL_STATE": lambda args: args["h0"] is not None,
        "STORE_FINAL_STATE": lambda args: args["ht"] is not None,
    }
)
@triton.autotune(
    configs=[
        triton.Config({"BK": BK, "BV": BV}, num_warps=num_warps, num_stages=num_stages)
        for BK in [32, 64]
        for BV in [32, 64]
        for num_warps in [2, 4, 8]
        for num_stages in [2, 3, 4]
    ],
    key=["H", "K", "V", "BT"],
)
@triton.jit(do_not_specialize=["T"])
def chunk_state_kernel(
    k, v, g, h, h0, ht,
    T,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BT: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    USE_INITIAL_STATE: tl.constexpr,
    STORE_FINAL_STATE: tl.constexpr,
):  # fmt: skip
    """The state at the start of each chunk: h[batch, head, chunk], [K, V] each."""
    i_k, i_v, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)

    o_k = i_k * BK + tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    m_k, m_v = o_k < K, o_v < V
    m_h = m_k[:, None] & m_v[None, :]
    o_h = o_k[:, None] * V + o_v[None, :]
    k += (i_b * T * H + i_h) * K
    v += (i_b * T * H + i_h) * V
    g += i_b * T * H + i_h

    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    if USE_INITIAL_STATE:
        b_h += tl.load(h0 + i_bh * K * V + o_h, mask=m_h, other=0).to(tl.float32)

    for i_t in range(NT):
        tl.store(h + (i_bh * NT + i_t).to(tl.int64) * K * V + o_h, b_h.to(h.dtype.element_ty), mask=m_h)
        o_t = i_t * BT + tl.arange(0, BT)
        m_t = o_t < T
        b_k = tl.load(k + o_k[:, None] + o_t[None, :] * H * K, mask=m_k[:, None] & m_t[None, :], other=0)
        b_v = tl.load(v + o_t[:, None] * H * V + o_v[None, :], mask=m_t[:, None] & m_v[None, :], other=0)
        b_g = tl.cumsum(tl.load(g + o_t * H, mask=m_t, other=0).to(tl.float32), axis=0)
        # past the end the gates are zero, so the last sum is that of the chunk
        b_g_last = tl.sum(tl.where(tl.arange(0, BT) == BT - 1, b_g, 0), axis=0)
        b_h *= tl.exp(b_g_last)
        b_v = (b_v * tl.exp(b_g_last - b_g)[:, None]).to(b_v.dtype)
        b_h += tl.dot(b_k, b_v)

    if STORE_FINAL_STATE:
        tl.store(ht + i_bh * K * V + o_h, b_h.to(ht.dtype.element_ty), mask=m_h)


@triton.jit
def chunk_output_kernel(
    q, k, v, g, h, o,
    scale,
    T,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BT: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):  # fmt: skip
    """A chunk's output: from the state at its start, and from its own keys and values."""
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)

    o_t = i_t * BT + tl.arange(0, BT)
    o_v = i_v * BV + tl.arange(0, BV)
    m_t, m_v = o_t < T, o_v < V
    # rows of one head are H apart
    row_t = (i_b * T + o_t) * H + i_h
    h += (i_bh * NT + i_t).to(tl.int64) * K * V

    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        m_k = o_k < K
        b_q = tl.load(q + row_t[:, None] * K + o_k[None, :], mask=m_t[:, None] & m_k[None, :], other=0)
        b_k = tl.load(k + row_t[None, :] * K + o_k[:, None], mask=m_t[None, :] & m_k[:, None], other=0)
        b_h = tl.load(h + o_k[:, None] * V + o_v[None, :], mask=m_k[:, None] & m_v[None, :], other=0)
        b_o += tl.dot(b_q, b_h)
        b_A += tl.dot(b_q, b_k)

    b_g = tl.cumsum(tl.load(g + row_t, mask=m_t, other=0).to(tl.float32), axis=0)
    b_o = b_o * tl.exp(b_g)[:, None]
    o_i = tl.arange(0, BT)
    m_A = (o_i[:, None] >= o_i[None, :]) & m_t[None, :]
    b_A = tl.where(m_A, b_A * tl.exp(b_g[:, None] - b_g[None, :]), 0)
    b_v = tl.load(v + row_t[:, None] * V + o_v[None, :], mask=m_t[:, None] & m_v[None, :], other=0)
    b_o = (b_o + tl.dot(b_A.to(b_v.dtype), b_v)) * scale
    tl.store(o + row_t[:, None] * V + o_v[None, :], b_o.to(o.dtype.element_ty), mask=m_t[:, None] & m_v[None, :])


@triton.jit
def fused_retention_kernel(
    Q, K, V, Out,
    stride_qb, stride_qt, stride_qh,
    stride_vb, stride_vt, stride_vh,
    scale,
    H, T,
    HEAD_K: tl.constexpr,
    BLOCK_V: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    """All chunks of a head in one program, the state in registers; head h decays by 1 - 2^(-5-h) a token."""
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    log_decay = tl.log2(1.0 - tl.exp2(-5.0 - i_h.to(tl.float32)))

    # relative to a chunk, decays are the same in all of them
    o_i = tl.arange(0, CHUNK)
    distance = o_i[:, None] - o_i[None, :]
    within = tl.where(distance >= 0, tl.exp2(distance.to(tl.float32) * log_decay), 0.0)
    since_start = tl.exp2((o_i + 1) * log_decay)
    until_end = tl.exp2((CHUNK - 1 - o_i) * log_decay)
    whole = tl.exp2(CHUNK * log_decay)

    o_k = tl.arange(0, HEAD_K)
    o_v = i_v * BLOCK_V + tl.arange(0, BLOCK_V)
    qk_base = i_b.to(tl.int64) * stride_qb + i_h * stride_qh
    v_base = i_b.to(tl.int64) * stride_vb + i_h * stride_vh
    p_q = Q + qk_base + o_i[:, None] * stride_qt + o_k[None, :]
    p_k = K + qk_base + o_k[:, None] + o_i[None, :] * stride_qt
    p_v = V + v_base + o_i[:, None] * stride_vt + o_v[None, :]
    p_o = Out + v_base + o_i[:, None] * stride_vt + o_v[None, :]

    state = tl.zeros((HEAD_K, BLOCK_V), dtype=tl.float32)
    for start in range(0, T, CHUNK):
        m_row = (start + o_i < T)[:, None]
        q = tl.load(p_q, mask=m_row, other=0.0)
        k = tl.load(p_k, mask=(start + o_i < T)[None, :], other=0.0)
        v = tl.load(p_v, mask=m_row, other=0.0)
        scores = tl.dot(q, k) * within
        out = tl.dot(scores.to(v.dtype), v)
        out += tl.dot(q, state.to(q.dtype)) * since_start[:, None]
        state = whole * state + tl.dot(k, (v * until_end[:, None]).to(k.dtype))
        tl.store(p_o, (out * scale).to(Out.dtype.element_ty), mask=m_row)
        p_q += CHUNK * stride_qt
        p_k += CHUNK * stride_qt
        p_v += CHUNK * stride_vt
        p_o += CHUNK * stride_vt


def chunk_linear_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The output and, if asked for, the state after the last token; g: log gates [batch, length, heads]."""
    B, T, H, K = k.shape
    V = v.shape[-1]
    NT = triton.cdiv(T, chunk_size)
    h = torch.empty(B, H, NT, K, V, device=k.device, dtype=k.dtype)
    ht = torch.empty(B, H, K, V, device=k.device, dtype=torch.float32) if output_final_state else None
    grid = lambda meta: (triton.cdiv(K, meta["BK"]), triton.cdiv(V, meta["BV"]), B * H)
    chunk_state_kernel[grid](k, v, g, h, initial_state, ht, T, H, K, V, BT=chunk_size)
    o = torch.empty_like(v)
    chunk_output_kernel[(triton.cdiv(V, 64), NT, B * H)](
        q, k, v, g, h, o, K**-0.5, T, H, K, V, BT=chunk_size, BK=64, BV=64, num_warps=4, num_stages=3
    )
    return o, ht


def retention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, chunk: int = 64) -> torch.Tensor:
    B, T, H, K = q.shape
    out = torch.empty_like(v)
    BLOCK_V = min(64, v.shape[-1])
    fused_retention_kernel[(v.shape[-1] // BLOCK_V, B * H)](
        q, k, v, out, *q.stride()[:3], *v.stride()[:3], K**-0.5, H, T,
        HEAD_K=K, BLOCK_V=BLOCK_V, CHUNK=chunk, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
