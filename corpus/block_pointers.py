"""Block pointers: a matmul that advances them, the chunks of gated linear attention, and causal attention."""

import torch
import triton
import triton.language as tl


@triton.jit
def block_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    a_block_ptr = tl.make_block_ptr(
        base=a_ptr,
        shape=(M, K),
        strides=(stride_am, stride_ak),
        offsets=(pid_m * BLOCK_M, 0),
        block_shape=(BLOCK_M, BLOCK_K),
        order=(1, 0),
    )
    b_block_ptr = tl.make_block_ptr(
        base=b_ptr,
        shape=(K, N),
        strides=(stride_bk, stride_bn),
        offsets=(0, pid_n * BLOCK_N),
        block_shape=(BLOCK_K, BLOCK_N),
        order=(1, 0),
    )
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_block_ptr, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block_ptr, boundary_check=(0, 1), padding_option="zero")
        accumulator += tl.dot(a, b)
        a_block_ptr = tl.advance(a_block_ptr, (0, BLOCK_K))
        b_block_ptr = tl.advance(b_block_ptr, (BLOCK_K, 0))
    c_block_ptr = tl.make_block_ptr(
        base=c_ptr,
        shape=(M, N),
        strides=(stride_cm, stride_cn),
        offsets=(pid_m * BLOCK_M, pid_n * BLOCK_N),
        block_shape=(BLOCK_M, BLOCK_N),
        order=(1, 0),
    )
    tl.store(c_block_ptr, accumulator.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.heuristics({"USE_INITIAL_STATE": lambda args: args["h0"] is not None})
@triton.jit(do_not_specialize=["T"])
def chunk_state_block_kernel(
    k, v, g, h, h0,
    T,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BT: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    USE_INITIAL_STATE: tl.constexpr,
):  # fmt: skip
    """As in linear_attention, with gates for each key: S_t = diag(exp(g_t)) S_(t-1) + k_t v_t^T.

    The gates of a chunk are summed up already; the last row of a chunk holds their total.
    """
    i_k, i_v, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)

    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    if USE_INITIAL_STATE:
        p_h0 = tl.make_block_ptr(h0 + i_bh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_h = tl.load(p_h0, boundary_check=(0, 1)).to(tl.float32)

    qk_off = (i_b * T * H + i_h) * K
    v_off = (i_b * T * H + i_h) * V
    o_k = i_k * BK + tl.arange(0, BK)
    for i_t in range(NT):
        p_h = tl.make_block_ptr(h + (i_bh * NT + i_t) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        # keys transposed: a block pointer over the same memory in the other order
        p_k = tl.make_block_ptr(k + qk_off, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_g = tl.make_block_ptr(g + qk_off, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_v = tl.make_block_ptr(v + v_off, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        b_g = tl.load(p_g, boundary_check=(0, 1))
        last = tl.minimum((i_t + 1) * BT, T) - 1
        b_g_last = tl.load(g + qk_off + last * H * K + o_k, mask=o_k < K, other=0.0)
        b_h *= tl.exp(b_g_last)[:, None]
        b_k = (b_k * tl.exp(b_g_last[:, None] - b_g)).to(b_k.dtype)
        b_h += tl.dot(b_k, b_v, allow_tf32=False)


@triton.jit
def block_attention_kernel(
    q, k, v, o,
    scale,
    T,
    H: tl.constexpr,
    D: tl.constexpr,
    BT: tl.constexpr,
    BS: tl.constexpr,
):  # fmt: skip
    """Causal attention over [batch, length, heads, D]: blocks before the diagonal, then those on it."""
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    bos = (i_b * T).to(tl.int64)
    RCP_LN2: tl.constexpr = 1.4426950216

    p_q = tl.make_block_ptr(q + (bos * H + i_h) * D, (T, D), (H * D, 1), (i_t * BT, 0), (BT, D), (1, 0))
    p_o = tl.make_block_ptr(o + (bos * H + i_h) * D, (T, D), (H * D, 1), (i_t * BT, 0), (BT, D), (1, 0))
    p_k = tl.make_block_ptr(k + (bos * H + i_h) * D, (D, T), (1, H * D), (0, 0), (D, BS), (0, 1))
    p_v = tl.make_block_ptr(v + (bos * H + i_h) * D, (T, D), (H * D, 1), (0, 0), (BS, D), (1, 0))
    b_q = tl.load(p_q, boundary_check=(0,), padding_option="zero")
    b_o = tl.zeros([BT, D], dtype=tl.float32)
    b_m = tl.full([BT], float("-inf"), dtype=tl.float32)
    b_acc = tl.zeros([BT], dtype=tl.float32)

    for _ in range(0, i_t * BT, BS):
        b_k = tl.load(p_k, boundary_check=(1,), padding_option="zero")
        b_v = tl.load(p_v, boundary_check=(0,), padding_option="zero")
        b_s = tl.dot(b_q, b_k) * scale * RCP_LN2
        b_m, b_mp = tl.maximum(b_m, tl.max(b_s, 1)), b_m
        b_r = tl.exp2(b_mp - b_m)
        b_p = tl.exp2(b_s - b_m[:, None])
        b_acc = b_acc * b_r + tl.sum(b_p, 1)
        b_o = b_o * b_r[:, None] + tl.dot(b_p.to(b_q.dtype), b_v)
        p_k = tl.advance(p_k, (0, BS))
        p_v = tl.advance(p_v, (BS, 0))

    o_q = i_t * BT + tl.arange(0, BT)
    for i_s in range(i_t * BT, tl.minimum((i_t + 1) * BT, T), BS):
        o_k = i_s + tl.arange(0, BS)
        p_k = tl.make_block_ptr(k + (bos * H + i_h) * D, (D, T), (1, H * D), (0, i_s), (D, BS), (0, 1))
        p_v = tl.make_block_ptr(v + (bos * H + i_h) * D, (T, D), (H * D, 1), (i_s, 0), (BS, D), (1, 0))
        b_k = tl.load(p_k, boundary_check=(1,), padding_option="zero")
        b_v = tl.load(p_v, boundary_check=(0,), padding_option="zero")
        b_s = tl.dot(b_q, b_k) * scale * RCP_LN2
        # the first block on the diagonal has a key for every query
        b_s = tl.where((o_q[:, None] >= o_k[None, :]) & (o_k < T)[None, :], b_s, float("-inf"))
        b_m, b_mp = tl.maximum(b_m, tl.max(b_s, 1)), b_m
        b_r = tl.exp2(b_mp - b_m)
        b_p = tl.exp2(b_s - b_m[:, None])
        b_acc = b_acc * b_r + tl.sum(b_p, 1)
        b_o = b_o * b_r[:, None] + tl.dot(b_p.to(b_q.dtype), b_v)

    b_o = b_o / b_acc[:, None]
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0,))


def block_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))
    block_matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c


def gated_chunk_states(
    k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, h0: torch.Tensor | None = None, chunk_size: int = 64
) -> torch.Tensor:
    """g: log gates summed up within each chunk, of the shape of k, in fp32."""
    B, T, H, K = k.shape
    V = v.shape[-1]
    NT = triton.cdiv(T, chunk_size)
    h = torch.empty(B, H, NT, K, V, device=k.device, dtype=k.dtype)
    chunk_state_block_kernel[(triton.cdiv(K, 64), triton.cdiv(V, 64), B * H)](
        k, v, g, h, h0, T, H, K, V, BT=chunk_size, BK=64, BV=64, num_warps=4, num_stages=2
    )
    return h


def block_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, T, H, D = q.shape
    o = torch.empty_like(v)
    block_attention_kernel[(triton.cdiv(T, 128), B * H)](
        q, k, v, o, D**-0.5, T, H, D, BT=128, BS=64, num_warps=8, num_stages=3
    )
    return o
