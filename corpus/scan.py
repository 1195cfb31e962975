"""Scans along rows: cumulative sum, and the linear recurrence h[t] = a[t] * h[t - 1] + b[t]."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, row_stride, n_cols, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """Cumulative sum of a row, block by block; `REVERSE` sums from the end."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    out_ptr += row * row_stride

    carry = 0.0
    n_blocks = tl.cdiv(n_cols, BLOCK)
    for i in range(n_blocks):
        block = n_blocks - 1 - i if REVERSE else i
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        out = tl.cumsum(x, axis=0, reverse=REVERSE) + carry
        tl.store(out_ptr + cols, out, mask=cols < n_cols)
        carry += tl.sum(x, axis=0)


@triton.jit
def _compose(a_left, b_left, a_right, b_right):
    # h -> a_right * (a_left * h + b_left) + b_right
    return a_left * a_right, a_right * b_left + b_right


@triton.jit
def linear_recurrence_kernel(
    a_ptr, b_ptr, h0_ptr, h_ptr,
    T, D, stride_t,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """h[t] = a[t] * h[t - 1] + b[t] for D independent channels; (T, D) row-major. `h0_ptr` may be None."""
    offs_d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask_d = offs_d < D
    if h0_ptr is None:
        h = tl.zeros([BLOCK_D], dtype=tl.float32)
    else:
        h = tl.load(h0_ptr + offs_d, mask=mask_d, other=0.0).to(tl.float32)

    for start in range(0, T, BLOCK_T):
        offs_t = start + tl.arange(0, BLOCK_T)
        offs = offs_t[:, None] * stride_t + offs_d[None, :]
        mask = (offs_t < T)[:, None] & mask_d[None, :]
        # steps past the end are the identity
        a = tl.load(a_ptr + offs, mask=mask, other=1.0).to(tl.float32)
        b = tl.load(b_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        a_prefix, b_prefix = tl.associative_scan((a, b), 0, _compose)
        states = a_prefix * h[None, :] + b_prefix
        tl.store(h_ptr + offs, states, mask=mask)
        # the last row is the state that goes on
        h = tl.sum(tl.where((tl.arange(0, BLOCK_T) == BLOCK_T - 1)[:, None], states, 0.0), axis=0)


def cumsum(x: torch.Tensor, reverse: bool = False, block: int = 1024) -> torch.Tensor:
    out = torch.empty_like(x)
    cumsum_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], REVERSE=reverse, BLOCK=block)
    return out


def linear_recurrence(
    a: torch.Tensor, b: torch.Tensor, h0: torch.Tensor | None = None, block_t: int = 32, block_d: int = 32
) -> torch.Tensor:
    T, D = a.shape
    h = torch.empty_like(b)
    linear_recurrence_kernel[(triton.cdiv(D, block_d),)](
        a, b, h0, h, T, D, a.stride(0), BLOCK_T=block_t, BLOCK_D=block_d
    )
    return h
