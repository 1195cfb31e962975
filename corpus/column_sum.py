"""Reductions over the first dimension of a row-major matrix, as of a bias gradient."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(
    x_ptr, out_ptr,
    M, N, stride_m,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out[n] = sum over m of x[m, n]: a strip of columns a program, a tile of rows a step."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = cols < N
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        tile = tl.load(
            x_ptr + rows[:, None] * stride_m + cols[None, :],
            mask=(rows[:, None] < M) & col_mask[None, :],
            other=0.0,
        )
        acc += tile.to(tl.float32)
    # across rows only once, after the loop
    tl.store(out_ptr + cols, tl.sum(acc, axis=0).to(out_ptr.dtype.element_ty), mask=col_mask)


@triton.jit
def column_sum_split_kernel(X, OUT, M, N, rows_per_split, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The same for tall matrices: rows are split over programs, which add their shares into fp32 `OUT`."""
    pid_n, pid_split = tl.program_id(0), tl.program_id(1)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_n = tl.max_contiguous(tl.multiple_of(offs_n, BLOCK_N), BLOCK_N)
    first = pid_split * rows_per_split
    if first >= M:
        return
    last = min(first + rows_per_split, M)

    ptrs = X + (first + tl.arange(0, BLOCK_M))[:, None].to(tl.int64) * N + offs_n[None, :]
    total = tl.zeros([BLOCK_N], tl.float32)
    for start in tl.range(first, last, BLOCK_M):
        mask = (start + tl.arange(0, BLOCK_M) < last)[:, None] & (offs_n < N)[None, :]
        total += tl.sum(tl.load(ptrs, mask=mask, other=0).to(tl.float32), axis=0)
        ptrs += BLOCK_M * N
    tl.atomic_add(OUT + offs_n, total, mask=offs_n < N)


def column_sum(x: torch.Tensor, block_m: int = 32, block_n: int = 64) -> torch.Tensor:
    M, N = x.shape
    out = torch.empty(N, device=x.device, dtype=x.dtype)
    column_sum_kernel[(triton.cdiv(N, block_n),)](x, out, M, N, x.stride(0), BLOCK_M=block_m, BLOCK_N=block_n)
    return out


def column_sum_split(x: torch.Tensor, splits: int = 32, block_m: int = 16, block_n: int = 128) -> torch.Tensor:
    M, N = x.shape
    out = torch.zeros(N, device=x.device, dtype=torch.float32)
    grid = (triton.cdiv(N, block_n), splits)
    column_sum_split_kernel[grid](x, out, M, N, triton.cdiv(M, splits), BLOCK_M=block_m, BLOCK_N=block_n)
    return out
