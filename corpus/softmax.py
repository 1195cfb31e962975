"""Row softmax: a row in registers, a row of any length in a loop, and the backward pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    # columns of this row; BLOCK is the next power of two
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)

    # subtracting the maximum keeps exp in range
    x = x - tl.max(x, axis=0)
    numerator = tl.exp(x)
    denominator = tl.sum(numerator, axis=0)
    y = numerator / denominator

    tl.store(out_ptr + row * out_stride + cols, y, mask=mask)


@triton.jit
def online_softmax_kernel(
    out_ptr, in_ptr, lengths_ptr,
    in_stride, out_stride, n_cols,
    scale,
    HAS_LENGTHS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """softmax(scale * x) of rows too long for registers.

    With `lengths_ptr`, a row counts only up to its length; what lies behind it is written as zero.
    """
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * in_stride
    out_row = out_ptr + row * out_stride
    if HAS_LENGTHS:
        length = tl.load(lengths_ptr + row)
    else:
        length = n_cols

    # First pass: running maximum m and running sum s of exp(x - m), elementwise, reduced once after the loop.
    m = tl.full([BLOCK], -1.0e30, dtype=tl.float32)
    s = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, length, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(in_row + cols, mask=cols < length, other=-float("inf")).to(tl.float32) * scale
        m_new = tl.maximum(m, x)
        s = s * tl.exp(m - m_new) + tl.exp(x - m_new)
        m = m_new
    row_max = tl.max(m, axis=0)
    total = tl.sum(s * tl.exp(m - row_max), axis=0)

    # Second pass: the row comes from the cache if it fits there.
    inv_total = 1.0 / total
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(in_row + cols, mask=cols < length, other=-float("inf")).to(tl.float32) * scale
        p = tl.exp(x - row_max) * inv_total
        tl.store(out_row + cols, p.to(out_ptr.dtype.element_ty), mask=cols < n_cols)


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n_cols"])})
@triton.jit
def softmax_backward_kernel(dx_ptr, dy_ptr, y_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    """dx = y * (dy - sum(y * dy)) for each row."""
    row_start = tl.program_id(0).to(tl.int64) * row_stride
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    y = tl.load(y_ptr + row_start + offs, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row_start + offs, mask=mask, other=0.0).to(tl.float32)
    dot = tl.sum(y * dy, 0)
    tl.store(dx_ptr + row_start + offs, y * (dy - dot), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of a matrix whose rows fit in registers."""
    n_rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(n_cols)
    num_warps = 4
    if BLOCK >= 2048:
        num_warps = 8
    if BLOCK >= 8192:
        num_warps = 16
    y = torch.empty_like(x)
    softmax_kernel[(n_rows,)](y, x, x.stride(0), y.stride(0), n_cols, BLOCK=BLOCK, num_warps=num_warps)
    return y


def online_softmax(
    x: torch.Tensor, lengths: torch.Tensor | None = None, scale: float = 1.0, block: int = 2048
) -> torch.Tensor:
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    online_softmax_kernel[(n_rows,)](
        y, x, lengths, x.stride(0), y.stride(0), n_cols, scale,
        HAS_LENGTHS=lengths is not None, BLOCK=block, num_warps=8,
    )  # fmt: skip
    return y


def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dx = torch.empty_like(y)
    softmax_backward_kernel[(y.shape[0],)](dx, dy, y, y.stride(0), y.shape[1], num_warps=8)
    return dx
