"""Symmetric int8 quantisation with one scale a row or a group of columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def round_half_away(x):
    return tl.where(x >= 0, tl.floor(x + 0.5), tl.ceil(x - 0.5))


@triton.jit
def quantize_row_kernel(x_ptr, q_ptr, scale_ptr, x_stride, q_stride, n_cols, BLOCK: tl.constexpr):
    """q = round(x / scale), scale = absmax / 127 of the row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    absmax = tl.max(tl.abs(x), axis=0)
    # a row of zeros would divide by zero
    scale = tl.maximum(absmax, 1e-10) / 127.0
    q = round_half_away(x * (1.0 / scale))
    tl.store(q_ptr + row * q_stride + cols, q.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def quantize_group_kernel(
    x_ptr, q_ptr, scale_ptr,
    n_rows, n_cols, n_groups,
    GROUP: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The same with a scale for every GROUP columns: ROWS rows of one group a program."""
    tl.static_assert(GROUP % 16 == 0)
    group = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = group * GROUP + tl.arange(0, GROUP)
    offs = rows.to(tl.int64)[:, None] * n_cols + cols[None, :]
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)

    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    scale = tl.clamp(tl.max(tl.abs(x), axis=1), 1e-10, 3.0e38) / 127.0
    q = round_half_away(x / scale[:, None])
    tl.store(q_ptr + offs, q.to(tl.int8), mask=mask)
    tl.store(scale_ptr + rows * n_groups + group, scale, mask=rows < n_rows)


def quantize_row(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n_rows, n_cols = x.shape
    q = torch.empty((n_rows, n_cols), device=x.device, dtype=torch.int8)
    scale = torch.empty(n_rows, device=x.device, dtype=torch.float32)
    BLOCK = triton.next_power_of_2(n_cols)
    quantize_row_kernel[(n_rows,)](
        x, q, scale, x.stride(0), q.stride(0), n_cols, BLOCK=BLOCK, num_warps=8 if BLOCK >= 4096 else 4
    )
    return q, scale


def quantize_group(x: torch.Tensor, group: int = 128, rows: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    n_rows, n_cols = x.shape
    n_groups = triton.cdiv(n_cols, group)
    q = torch.empty((n_rows, n_cols), device=x.device, dtype=torch.int8)
    scale = torch.empty((n_rows, n_groups), device=x.device, dtype=torch.float32)
    grid = (triton.cdiv(n_rows, rows), n_groups)
    quantize_group_kernel[grid](x, q, scale, n_rows, n_cols, n_groups, GROUP=group, ROWS=rows)
    return q, scale
