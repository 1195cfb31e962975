"""Attention forward: prefill in one loop and in two phases, and decoding from a paged cache, whole and in splits."""

import torch
import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128}, num_warps=8, num_stages=2),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=3),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=4),
    ],
    key=["seq_q", "seq_k", "HEAD_DIM", "CAUSAL"],
)
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr,
    stride_qb, stride_qh, stride_qm,
    stride_kb, stride_kh, stride_kn,
    stride_vb, stride_vh, stride_vn,
    stride_ob, stride_oh, stride_om,
    n_heads, seq_q, seq_k,
    sm_scale,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """softmax(scale * q k^T) v for one block of queries; rows of q, k, v and out are contiguous."""
    start_m = tl.program_id(0)
    batch = (tl.program_id(1) // n_heads).to(tl.int64)
    head = tl.program_id(1) % n_heads
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh
    out_ptr += batch * stride_ob + head * stride_oh

    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    row_mask = offs_m[:, None] < seq_q
    q = tl.load(q_ptr + offs_m[:, None] * stride_qm + offs_d[None, :], mask=row_mask, other=0.0)

    # exp2 is one instruction where exp is two
    qk_scale = sm_scale * LOG2E
    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)

    end_n = seq_k
    if CAUSAL:
        # what lies beyond the diagonal of the last row counts for none
        end_n = tl.minimum((start_m + 1) * BLOCK_M, seq_k)
    for start_n in range(0, end_n, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        k = tl.load(
            k_ptr + offs_n[None, :] * stride_kn + offs_d[:, None], mask=offs_n[None, :] < seq_k, other=0.0
        )  # [HEAD_DIM, BLOCK_N]
        qk = tl.dot(q, k) * qk_scale
        keep = offs_n[None, :] < seq_k
        if CAUSAL:
            keep &= offs_m[:, None] >= offs_n[None, :]
        qk = tl.where(keep, qk, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]

        v = tl.load(v_ptr + offs_n[:, None] * stride_vn + offs_d[None, :], mask=offs_n[:, None] < seq_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new

    acc = acc / l_i[:, None]
    out_ptrs = out_ptr + offs_m[:, None] * stride_om + offs_d[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=row_mask)


@triton.jit
def _attend(
    acc, l_i, m_i, q,
    k_ptrs, v_ptrs, stride_kn, stride_vn,
    lo, hi, seq_len_k, offs_m, offs_n,
    qk_scale,
    STAGE: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Online softmax over keys lo to hi. In stage 1 every key counts, in stage 2 some may not."""
    k_ptrs += lo * stride_kn
    v_ptrs += lo * stride_vn
    for start_n in range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        if STAGE == 1:
            k = tl.load(k_ptrs)
        else:
            k = tl.load(k_ptrs, mask=(start_n + offs_n)[None, :] < seq_len_k, other=0.0)
        qk = tl.dot(q, k)

        if STAGE == 2:
            mask = (start_n + offs_n)[None, :] < seq_len_k
            if CAUSAL:
                mask = mask & (offs_m[:, None] >= (start_n + offs_n[None, :]))
            # finite, so that a row with no key here gives no NaN
            qk = qk * qk_scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
            qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        l_ij = tl.sum(p, 1)

        alpha = tl.math.exp2(m_i - m_ij)
        acc = acc * alpha[:, None]
        if STAGE == 1:
            v = tl.load(v_ptrs)
        else:
            v = tl.load(v_ptrs, mask=(start_n + offs_n)[:, None] < seq_len_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        l_i = l_i * alpha + l_ij
        m_i = m_ij
        k_ptrs += BLOCK_N * stride_kn
        v_ptrs += BLOCK_N * stride_vn
    return acc, l_i, m_i


@triton.jit
def two_phase_attention_kernel(
    Q, K, V, Out, Lse,
    sm_scale,
    stride_qz, stride_qh, stride_qm, stride_qd,
    stride_kz, stride_kh, stride_kn, stride_kd,
    stride_vz, stride_vh, stride_vn, stride_vd,
    stride_oz, stride_oh, stride_om, stride_od,
    H, seq_len_q, seq_len_k,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """First the keys that need no mask, then those on the diagonal or at the ragged end.

    GROUP query heads share a head of keys and values. Lse is log(sum(exp(scale * q k^T))), kept for the backward pass.
    """
    tl.static_assert(BLOCK_M % BLOCK_N == 0, "the diagonal is made of whole blocks of keys")
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    off_z = off_hz // H
    off_h = off_hz % H
    off_kv = off_h // GROUP

    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q_base = Q + off_z.to(tl.int64) * stride_qz + off_h.to(tl.int64) * stride_qh
    k_base = K + off_z.to(tl.int64) * stride_kz + off_kv.to(tl.int64) * stride_kh
    v_base = V + off_z.to(tl.int64) * stride_vz + off_kv.to(tl.int64) * stride_vh
    q_ptrs = q_base + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    k_ptrs = k_base + offs_n[None, :] * stride_kn + offs_d[:, None] * stride_kd
    v_ptrs = v_base + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd

    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = sm_scale * LOG2E
    q = tl.load(q_ptrs, mask=offs_m[:, None] < seq_len_q, other=0.0)

    if CAUSAL:
        full = start_m * BLOCK_M
        end = tl.minimum(full + BLOCK_M, seq_len_k)
    else:
        full = seq_len_k // BLOCK_N * BLOCK_N
        end = seq_len_k
    acc, l_i, m_i = _attend(
        acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_kn, stride_vn, 0, full, seq_len_k, offs_m, offs_n, qk_scale,
        STAGE=1, CAUSAL=CAUSAL, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    acc, l_i, m_i = _attend(
        acc, l_i, m_i, q, k_ptrs, v_ptrs, stride_kn, stride_vn, full, end, seq_len_k, offs_m, offs_n, qk_scale,
        STAGE=2, CAUSAL=CAUSAL, BLOCK_N=BLOCK_N,
    )  # fmt: skip

    lse = m_i * LN2 + tl.log(l_i)
    tl.store(Lse + off_hz * seq_len_q + offs_m, lse, mask=offs_m < seq_len_q)
    acc = acc / l_i[:, None]
    o_base = Out + off_z.to(tl.int64) * stride_oz + off_h.to(tl.int64) * stride_oh
    o_ptrs = o_base + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od
    tl.store(o_ptrs, acc.to(Out.type.element_ty), mask=offs_m[:, None] < seq_len_q)


@triton.jit
def paged_decode_kernel(
    out_ptr, q_ptr, k_cache_ptr, v_cache_ptr,
    block_table_ptr, seq_lens_ptr,
    stride_table,
    stride_cache_page, stride_cache_head, stride_cache_token,
    scale,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    GROUP_PADDED: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
):  # fmt: skip
    """One new query a sequence, against pages of keys and values found in the sequence's row of the block table.

    A program serves the GROUP query heads that share a head of the cache, padded to the rows a dot wants.
    """
    seq = tl.program_id(0)
    kv_head = tl.program_id(1)
    seq_len = tl.load(seq_lens_ptr + seq)

    offs_g = tl.arange(0, GROUP_PADDED)
    offs_d = tl.arange(0, HEAD_DIM)
    offs_t = tl.arange(0, PAGE_SIZE)
    head_mask = (offs_g < GROUP)[:, None]
    q_offs = ((seq * NUM_KV_HEADS + kv_head) * GROUP + offs_g[:, None]) * HEAD_DIM + offs_d[None, :]
    Q = tl.load(q_ptr + q_offs, mask=head_mask, other=0.0)

    M = tl.full([GROUP_PADDED], float("-inf"), dtype=tl.float32)
    L = tl.full([GROUP_PADDED], 1.0, dtype=tl.float32)
    acc = tl.zeros([GROUP_PADDED, HEAD_DIM], dtype=tl.float32)

    num_pages = tl.cdiv(seq_len, PAGE_SIZE)
    for j in range(0, num_pages):
        page = tl.load(block_table_ptr + seq * stride_table + j).to(tl.int64)
        base = page * stride_cache_page + kv_head * stride_cache_head
        token_mask = j * PAGE_SIZE + offs_t < seq_len
        K = tl.load(
            k_cache_ptr + base + offs_d[:, None] + offs_t[None, :] * stride_cache_token,
            mask=token_mask[None, :],
            other=0.0,
        )
        V = tl.load(
            v_cache_ptr + base + offs_t[:, None] * stride_cache_token + offs_d[None, :],
            mask=token_mask[:, None],
            other=0.0,
        )
        S = tl.where(token_mask[None, :], scale * tl.dot(Q, K), float("-inf"))

        m_j = tl.maximum(M, tl.max(S, axis=1))
        P = tl.exp(S - m_j[:, None])
        alpha = tl.exp(M - m_j)
        # L starts at one, which the first alpha, exp(-inf), takes away
        L = L * alpha + tl.sum(P, axis=1)
        acc = acc * alpha[:, None]
        acc += tl.dot(P.to(V.dtype), V)
        M = m_j

    acc = acc / L[:, None]
    tl.store(out_ptr + q_offs, acc.to(out_ptr.dtype.element_ty), mask=head_mask)


@triton.jit
def split_decode_kernel(
    q_ptr, req_to_token_ptr, seq_lens_ptr, k_ptr, v_ptr,
    partial_ptr, lse_ptr,
    stride_req,
    stride_qb, stride_qh,
    stride_kt, stride_kh,
    stride_vt, stride_vh,
    sm_scale,
    H: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    """One of SPLITS parts of a long sequence: its normalised output and its log-sum-exp, in fp32.

    Each token has a row of its own in the cache, which req_to_token names.
    """
    seq = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)

    seq_len = tl.load(seq_lens_ptr + seq)
    per_split = tl.cdiv(seq_len, SPLITS)
    lo = split * per_split
    hi = tl.minimum(lo + per_split, seq_len)

    offs_h = kv_head * GROUP + tl.arange(0, BLOCK_H)
    mask_h = (tl.arange(0, BLOCK_H) < GROUP) & (offs_h < H)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < D
    e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
    acc = tl.zeros([BLOCK_H, BLOCK_D], dtype=tl.float32)

    if hi > lo:
        q = tl.load(
            q_ptr + seq * stride_qb + offs_h[:, None] * stride_qh + offs_d[None, :],
            mask=mask_h[:, None] & mask_d[None, :],
            other=0.0,
        )
        for start_n in range(lo, hi, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            rows = tl.load(req_to_token_ptr + seq * stride_req + offs_n, mask=offs_n < hi, other=0).to(tl.int64)
            k = tl.load(
                k_ptr + rows[None, :] * stride_kt + kv_head * stride_kh + offs_d[:, None],
                mask=(offs_n[None, :] < hi) & mask_d[:, None],
                other=0.0,
            )
            qk = tl.dot(q, k.to(q.dtype))
            qk *= sm_scale
            qk = tl.where(offs_n[None, :] < hi, qk, float("-inf"))
            v = tl.load(
                v_ptr + rows[:, None] * stride_vt + kv_head * stride_vh + offs_d[None, :],
                mask=(offs_n[:, None] < hi) & mask_d[None, :],
                other=0.0,
            )

            n_e_max = tl.maximum(tl.max(qk, 1), e_max)
            re_scale = tl.exp(e_max - n_e_max)
            p = tl.exp(qk - n_e_max[:, None])
            acc *= re_scale[:, None]
            acc += tl.dot(p.to(v.dtype), v)
            e_sum = e_sum * re_scale + tl.sum(p, 1)
            e_max = n_e_max

        out_rows = (seq * H + offs_h) * SPLITS + split
        tl.store(
            partial_ptr + out_rows[:, None] * D + offs_d[None, :],
            acc / e_sum[:, None],
            mask=mask_h[:, None] & mask_d[None, :],
        )
        tl.store(lse_ptr + out_rows, e_max + tl.log(e_sum), mask=mask_h)


@triton.jit
def combine_splits_kernel(
    partial_ptr, lse_ptr, seq_lens_ptr, out_ptr,
    D,
    H: tl.constexpr,
    BLOCK_D: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    """The splits of one head of one sequence, weighed by their log-sum-exp."""
    seq = tl.program_id(0)
    head = tl.program_id(1)
    seq_len = tl.load(seq_lens_ptr + seq)
    per_split = tl.cdiv(seq_len, SPLITS)

    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < D
    row = (seq * H + head) * SPLITS
    e_max = -float("inf")
    e_sum = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for split in range(0, SPLITS):
        # an empty split wrote nothing
        if split * per_split < seq_len:
            tv = tl.load(partial_ptr + (row + split) * D + offs_d, mask=mask_d, other=0.0)
            tlogic = tl.load(lse_ptr + row + split)
            n_e_max = tl.maximum(tlogic, e_max)
            old_scale = tl.exp(e_max - n_e_max)
            weight = tl.exp(tlogic - n_e_max)
            acc = acc * old_scale + weight * tv
            e_sum = e_sum * old_scale + weight
            e_max = n_e_max
    tl.store(out_ptr + (seq * H + head) * D + offs_d, acc / e_sum, mask=mask_d)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Tensors of shape [batch, heads, length, head size]; head sizes are powers of two."""
    batch, heads, seq_q, head_dim = q.shape
    out = torch.empty_like(q)
    grid = lambda meta: (triton.cdiv(seq_q, meta["BLOCK_M"]), batch * heads)
    attention_kernel[grid](
        q, k, v, out,
        q.stride(0), q.stride(1), q.stride(2),
        k.stride(0), k.stride(1), k.stride(2),
        v.stride(0), v.stride(1), v.stride(2),
        out.stride(0), out.stride(1), out.stride(2),
        heads, seq_q, k.shape[2], head_dim**-0.5,
        CAUSAL=causal, HEAD_DIM=head_dim,
    )  # fmt: skip
    return out


def grouped_query_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output, and the log-sum-exp of each row; tensors of shape [batch, length, heads, head size]."""
    batch, seq_q, heads, head_dim = q.shape
    out = torch.empty_like(q)
    lse = torch.empty(batch, heads, seq_q, device=q.device, dtype=torch.float32)
    block_m, block_n = (128, 64) if head_dim <= 64 else (128, 32)
    two_phase_attention_kernel[(triton.cdiv(seq_q, block_m), batch * heads)](
        q, k, v, out, lse, head_dim**-0.5,
        q.stride(0), q.stride(2), q.stride(1), q.stride(3),
        k.stride(0), k.stride(2), k.stride(1), k.stride(3),
        v.stride(0), v.stride(2), v.stride(1), v.stride(3),
        out.stride(0), out.stride(2), out.stride(1), out.stride(3),
        heads, seq_q, k.shape[1],
        GROUP=heads // k.shape[2], CAUSAL=causal, HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=block_n,
        num_warps=4 if head_dim == 64 else 8, num_stages=3,
    )  # fmt: skip
    return out, lse


def paged_decode(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor
) -> torch.Tensor:
    """q: [sequences, heads, head size]; caches: [pages, heads, page size, head size]."""
    seqs, heads, head_dim = q.shape
    _, kv_heads, page_size, _ = k_cache.shape
    out = torch.empty_like(q)
    group = heads // kv_heads
    paged_decode_kernel[(seqs, kv_heads)](
        out, q, k_cache, v_cache, block_table, seq_lens, block_table.stride(0),
        k_cache.stride(0), k_cache.stride(1), k_cache.stride(2), head_dim**-0.5,
        NUM_KV_HEADS=kv_heads, GROUP=group, GROUP_PADDED=max(16, triton.next_power_of_2(group)),
        HEAD_DIM=head_dim, PAGE_SIZE=page_size, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out


def split_decode(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, req_to_token: torch.Tensor, seq_lens: torch.Tensor, splits: int
) -> torch.Tensor:
    """q: [sequences, heads, head size]; caches: [tokens, heads, head size]."""
    seqs, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    partial = torch.empty(seqs, heads, splits, head_dim, device=q.device, dtype=torch.float32)
    lse = torch.empty(seqs, heads, splits, device=q.device, dtype=torch.float32)
    split_decode_kernel[(seqs, kv_heads, splits)](
        q, req_to_token, seq_lens, k, v, partial, lse, req_to_token.stride(0),
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1), head_dim**-0.5,
        H=heads, GROUP=group, BLOCK_H=max(16, triton.next_power_of_2(group)),
        BLOCK_D=triton.next_power_of_2(head_dim), D=head_dim, BLOCK_N=32, SPLITS=splits, num_warps=4, num_stages=2,
    )  # fmt: skip
    out = torch.empty_like(q)
    combine_splits_kernel[(seqs, heads)](
        partial, lse, seq_lens, out, head_dim,
        H=heads, BLOCK_D=triton.next_power_of_2(head_dim), SPLITS=splits, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
