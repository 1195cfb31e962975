"""Copies: contiguous, two-dimensional with any strides, and of every n-th row."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(src_ptr, dst_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(src_ptr + offsets, mask=mask)
    tl.store(dst_ptr + offsets, x, mask=mask)


@triton.jit
def copy_2d_kernel(
    src_ptr, dst_ptr,
    M, N,
    src_stride_m, src_stride_n,
    dst_stride_m, dst_stride_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Copy an M x N matrix, one BLOCK_M x BLOCK_N tile a program; converts to the destination's type."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)

    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rm[:, None] < M) & (rn[None, :] < N)

    src = src_ptr + rm[:, None] * src_stride_m + rn[None, :] * src_stride_n
    dst = dst_ptr + rm[:, None] * dst_stride_m + rn[None, :] * dst_stride_n
    tl.store(dst, tl.load(src, mask=mask).to(dst_ptr.dtype.element_ty), mask=mask)


@triton.jit
def strided_rows_kernel(
    src_ptr, dst_ptr, n_cols, src_row_stride, dst_row_stride, STEP: tl.constexpr, BLOCK: tl.constexpr
):
    """dst[i] = src[STEP * i], a row and a block of columns a program."""
    tl.static_assert(STEP > 0, "rows are taken in ascending order")
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_row = cols < n_cols
    x = tl.load(src_ptr + row * STEP * src_row_stride + cols, mask=in_row)
    tl.store(dst_ptr + row * dst_row_stride + cols, x, mask=in_row)


def copy(src: torch.Tensor, block_size: int = 1024) -> torch.Tensor:
    assert src.is_contiguous()
    dst = torch.empty_like(src)
    n_elements = src.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    copy_kernel[grid](src, dst, n_elements, BLOCK_SIZE=block_size)
    return dst


def copy_2d(
    src: torch.Tensor, out: torch.Tensor, block_m: int = 32, block_n: int = 64, num_warps: int = 4
) -> torch.Tensor:
    M, N = src.shape
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    copy_2d_kernel[grid](
        src, out, M, N, src.stride(0), src.stride(1), out.stride(0), out.stride(1),
        BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps,
    )  # fmt: skip
    return out


def every_nth_row(src: torch.Tensor, step: int = 2, block: int = 1024) -> torch.Tensor:
    """The rows 0, step, 2 * step, ... of a matrix with contiguous rows."""
    rows = triton.cdiv(src.shape[0], step)
    dst = torch.empty((rows, src.shape[1]), device=src.device, dtype=src.dtype)
    strided_rows_kernel[(rows, triton.cdiv(src.shape[1], block))](
        src, dst, src.shape[1], src.stride(0), dst.stride(0), STEP=step, BLOCK=block
    )
    return dst
