"""Row-wise argmax and maximum."""

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, index_ptr, n_cols, row_stride, BLOCK: tl.constexpr):
    """Index of the first maximum of a row that fits in registers."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(index_ptr + row, tl.argmax(x, axis=0))


@triton.jit
def max_with_index_kernel(x_ptr, values_ptr, indices_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Maximum of each row and where it is, first of equals, for BLOCK_M rows of any length."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = rows < M
    best = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    where = tl.zeros([BLOCK_M], dtype=tl.int32)
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(
            x_ptr + rows[:, None] * N + cols[None, :],
            mask=row_mask[:, None] & (cols[None, :] < N),
            other=float("-inf"),
        ).to(tl.float32)
        value, index = tl.max(x, axis=1, return_indices=True)
        # strictly greater: an earlier block wins a tie
        better = value > best
        best = tl.where(better, value, best)
        where = tl.where(better, start + index, where)
    tl.store(values_ptr + rows, best, mask=row_mask)
    tl.store(indices_ptr + rows, where.to(tl.int64), mask=row_mask)


def argmax(x: torch.Tensor) -> torch.Tensor:
    index = torch.empty(x.shape[0], device=x.device, dtype=torch.int32)
    BLOCK = triton.next_power_of_2(x.shape[1])
    argmax_kernel[(x.shape[0],)](x, index, x.shape[1], x.stride(0), BLOCK=BLOCK, num_warps=4 if BLOCK <= 4096 else 8)
    return index


def max_with_index(x: torch.Tensor, block_m: int = 4, block_n: int = 512) -> tuple[torch.Tensor, torch.Tensor]:
    M, N = x.shape
    values = torch.empty(M, device=x.device, dtype=x.dtype)
    indices = torch.empty(M, device=x.device, dtype=torch.int64)
    grid = (triton.cdiv(M, block_m),)
    max_with_index_kernel[grid](x, values, indices, M, N, BLOCK_M=block_m, BLOCK_N=block_n)
    return values, indices
