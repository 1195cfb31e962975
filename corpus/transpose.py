"""Transposing copies: tiles are read along one dimension and written along the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(
    x_ptr,
    y_ptr,
    M,
    N,
    stride_xm,
    stride_yn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """y[n, m] = x[m, n]; both are row-major."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)

    tile = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :], mask=mask, other=0.0)
    # the same tile, addressed so that m runs fastest in memory
    tl.store(y_ptr + offs_n[None, :] * stride_yn + offs_m[:, None], tile, mask=mask)


@triton.jit
def batched_transpose_kernel(
    x_ptr, y_ptr, rows, cols, x_batch_stride, y_batch_stride,
    TILE: tl.constexpr, SCALE: tl.constexpr = 1.0,
):  # fmt: skip
    """y[b] = SCALE * x[b].T for a batch of contiguous matrices, in square tiles."""
    batch = tl.program_id(2).to(tl.int64)
    x_ptr += batch * x_batch_stride
    y_ptr += batch * y_batch_stride

    r = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=(r < rows)[:, None] & (c < cols)[None, :])
    if SCALE != 1.0:
        x = (x.to(tl.float32) * SCALE).to(x.dtype)
    y = tl.trans(x)
    tl.store(y_ptr + c[:, None] * rows + r[None, :], y, mask=(c < cols)[:, None] & (r < rows)[None, :])


def transpose(x: torch.Tensor, block_m: int = 64, block_n: int = 64, num_warps: int = 4) -> torch.Tensor:
    M, N = x.shape
    y = torch.empty((N, M), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    transpose_kernel[grid](x, y, M, N, x.stride(0), y.stride(0), BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps)
    return y


def batched_transpose(x: torch.Tensor, scale: float = 1.0, tile: int = 32) -> torch.Tensor:
    batches, rows, cols = x.shape
    y = torch.empty((batches, cols, rows), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(rows, tile), triton.cdiv(cols, tile), batches)
    batched_transpose_kernel[grid](x, y, rows, cols, x.stride(0), y.stride(0), TILE=tile, SCALE=scale)
    return y
