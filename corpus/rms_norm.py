"""RMSNorm: y = x / sqrt(mean(x^2) + eps) * (w + offset), with the row in registers or in two passes."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    Y_ptr,
    Y_row_stride,
    X_ptr,
    X_row_stride,
    W_ptr,
    RSTD_ptr,
    n_cols,
    eps,
    offset: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """A row a program; 1 / rms is kept for the backward pass."""
    row_idx = tl.program_id(0).to(tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols

    X_row = tl.load(X_ptr + row_idx * X_row_stride + col_offsets, mask=mask, other=0)
    W_row = tl.load(W_ptr + col_offsets, mask=mask, other=0)
    X_dtype = X_row.dtype
    X_row = X_row.to(tl.float32)

    mean_square = tl.sum(X_row * X_row, axis=0) / n_cols
    rstd = tl.rsqrt(mean_square + eps)
    # one fp32 a row: 4 bytes against a second reduction in the backward pass
    tl.store(RSTD_ptr + row_idx, rstd)

    normed = (X_row * rstd).to(X_dtype)
    tl.store(Y_ptr + row_idx * Y_row_stride + col_offsets, normed * (offset + W_row), mask=mask)


@triton.jit
def rms_norm_loop_kernel(x_ptr, w_ptr, y_ptr, stride, N, eps, BLOCK: tl.constexpr):
    """For rows too long for registers: sum of squares first, then scale."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    y_ptr += row * stride

    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        acc += x * x
    rstd = 1 / tl.sqrt(tl.sum(acc, axis=0) / N + eps)

    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        # the row is read for the last time, the weights again by every other program
        x = tl.load(x_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, eviction_policy="evict_last").to(tl.float32)
        tl.store(y_ptr + cols, x * rstd * w, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, offset: float = 0.0):
    shape = x.shape
    x = x.view(-1, shape[-1])
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    rstd = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    num_warps = min(max(BLOCK_SIZE // 512, 4), 16)
    rms_norm_kernel[(n_rows,)](
        y, y.stride(0), x, x.stride(0), weight, rstd, n_cols, eps,
        offset=offset, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps,
    )  # fmt: skip
    return y.view(*shape), rstd


def rms_norm_long(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, block: int = 4096) -> torch.Tensor:
    y = torch.empty_like(x)
    rms_norm_loop_kernel[(x.shape[0],)](x, weight, y, x.stride(0), x.shape[1], eps, BLOCK=block, num_warps=8)
    return y
