"""Rotary position embedding on q and k, in place."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(
    q_ptr,
    k_ptr,
    cos_ptr,
    sin_ptr,
    q_row_stride,
    k_row_stride,
    cos_row_stride,
    seq_len,
    n_qh: tl.constexpr,
    n_kh: tl.constexpr,
    hd: tl.constexpr,
    pad_n_qh: tl.constexpr,
    pad_n_kh: tl.constexpr,
    BACKWARD: tl.constexpr = False,
):
    """All heads of one token a program: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), the halves of a head."""
    pid = tl.program_id(0).to(tl.int64)
    position = pid % seq_len
    q_ptr += pid * q_row_stride
    k_ptr += pid * k_row_stride

    half: tl.constexpr = hd // 2
    dims = tl.arange(0, half)
    cos = tl.load(cos_ptr + position * cos_row_stride + dims).to(tl.float32)
    sin = tl.load(sin_ptr + position * cos_row_stride + dims).to(tl.float32)
    if BACKWARD:
        # the inverse rotation
        sin = -sin

    q_heads = tl.arange(0, pad_n_qh)
    first_q = q_heads[:, None] * hd + dims[None, :]
    q_mask = q_heads[:, None] < n_qh
    q1 = tl.load(q_ptr + first_q, mask=q_mask, other=0).to(tl.float32)
    q2 = tl.load(q_ptr + first_q + half, mask=q_mask, other=0).to(tl.float32)
    tl.store(q_ptr + first_q, q1 * cos[None, :] - q2 * sin[None, :], mask=q_mask)
    tl.store(q_ptr + first_q + half, q2 * cos[None, :] + q1 * sin[None, :], mask=q_mask)

    # k has fewer heads where they are shared between groups of q
    k_heads = tl.arange(0, pad_n_kh)
    first_k = k_heads[:, None] * hd + dims[None, :]
    k_mask = k_heads[:, None] < n_kh
    k1 = tl.load(k_ptr + first_k, mask=k_mask, other=0).to(tl.float32)
    k2 = tl.load(k_ptr + first_k + half, mask=k_mask, other=0).to(tl.float32)
    tl.store(k_ptr + first_k, k1 * cos[None, :] - k2 * sin[None, :], mask=k_mask)
    tl.store(k_ptr + first_k + half, k2 * cos[None, :] + k1 * sin[None, :], mask=k_mask)


def rotary(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, backward: bool = False):
    """q: (batch, seq, q heads, head dim), k likewise with its own heads; cos, sin: (seq, head dim / 2)."""
    batch, seq_len, n_qh, hd = q.shape
    n_kh = k.shape[2]
    rotary_kernel[(batch * seq_len,)](
        q, k, cos, sin, q.stride(1), k.stride(1), cos.stride(0), seq_len,
        n_qh=n_qh, n_kh=n_kh, hd=hd,
        pad_n_qh=triton.next_power_of_2(n_qh), pad_n_kh=triton.next_power_of_2(n_kh),
        BACKWARD=backward,
    )  # fmt: skip
    return q, k
