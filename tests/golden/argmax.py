"""The largest of each row, and where it is."""

import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, value_ptr, index_ptr, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=cols[None, :] < n_cols, other=-float("inf"))
    value, index = tl.max(x, axis=1, return_indices=True)
    tl.store(value_ptr + rows, value)
    tl.store(index_ptr + rows, index)


@triton.jit
def argmin_kernel(x_ptr, index_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + cols, mask=cols < n_cols, other=float("inf"))
    tl.store(index_ptr + tl.program_id(0), tl.argmin(x, axis=0))
