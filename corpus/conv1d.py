"""Causal depthwise convolution over time, as in state-space models."""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_conv1d_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr,
    seq_len, dim,
    stride_b, stride_t,
    WIDTH: tl.constexpr,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """y[t, d] = silu(bias[d] + sum over i of w[d, i] * x[t - WIDTH + 1 + i, d]); channels are contiguous."""
    offs_t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    batch = tl.program_id(2).to(tl.int64)
    x_ptr += batch * stride_b
    y_ptr += batch * stride_b
    d_mask = offs_d < dim

    acc = tl.zeros([BLOCK_T, BLOCK_D], dtype=tl.float32)
    acc += tl.load(bias_ptr + offs_d, mask=d_mask, other=0.0).to(tl.float32)[None, :]
    for i in tl.static_range(WIDTH):
        # before the sequence there is nothing but zeros
        t = offs_t + (i - WIDTH + 1)
        mask = (t >= 0)[:, None] & (t < seq_len)[:, None] & d_mask[None, :]
        x = tl.load(x_ptr + t[:, None] * stride_t + offs_d[None, :], mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + offs_d * WIDTH + i, mask=d_mask, other=0.0).to(tl.float32)
        acc += x * w[None, :]
    acc = acc / (1 + tl.exp(-acc))
    mask = (offs_t < seq_len)[:, None] & d_mask[None, :]
    tl.store(y_ptr + offs_t[:, None] * stride_t + offs_d[None, :], acc, mask=mask)


def causal_conv1d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, block_t: int = 16, block_d: int = 128
) -> torch.Tensor:
    """x: (batch, time, channels); weight: (channels, width)."""
    batch, seq_len, dim = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(seq_len, block_t), triton.cdiv(dim, block_d), batch)
    causal_conv1d_kernel[grid](
        x, weight, bias, y, seq_len, dim, x.stride(0), x.stride(1),
        WIDTH=weight.shape[1], BLOCK_T=block_t, BLOCK_D=block_d,
    )  # fmt: skip
    return y
