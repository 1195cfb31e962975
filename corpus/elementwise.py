"""Elementwise kernels: addition, SwiGLU and GELU, forward and backward."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE": 1024}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 2048}, num_warps=8),
        triton.Config({"BLOCK_SIZE": 4096}, num_warps=8),
    ],
    key=["n_elements"],
)
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, BLOCK_SIZE: tl.constexpr):
    """out = x + alpha * y."""
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    # Guard against the last block running past the end.
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = x + alpha * y
    tl.store(out_ptr + offsets, output, mask=mask)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_forward_kernel(a_ptr, b_ptr, c_ptr, row_stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """c = silu(a) * b, a row a program."""
    program_id = tl.program_id(0).to(tl.int64)

    # locate start index
    a_ptr += program_id * row_stride
    b_ptr += program_id * row_stride
    c_ptr += program_id * row_stride

    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols

    # sigmoid requires type float32
    a_row = tl.load(a_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b_ptr + col_offsets, mask=mask, other=0)
    c_row = silu(a_row).to(b_row.dtype) * b_row
    tl.store(c_ptr + col_offsets, c_row, mask=mask)


@triton.jit
def swiglu_backward_kernel(dc_ptr, a_ptr, b_ptr, row_stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Gradients of a and b, written over a and b."""
    program_id = tl.program_id(0).to(tl.int64)
    dc_ptr += program_id * row_stride
    a_ptr += program_id * row_stride
    b_ptr += program_id * row_stride

    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols

    dc_row = tl.load(dc_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    a_row = tl.load(a_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b_ptr + col_offsets, mask=mask, other=0).to(tl.float32)

    # recompute the activation rather than keep it from the forward pass
    sig_a = tl.sigmoid(a_row)
    silu_a = a_row * sig_a
    db_row = dc_row * silu_a
    da_row = dc_row * (silu_a * (1 - sig_a) + sig_a) * b_row

    tl.store(a_ptr + col_offsets, da_row, mask=mask)
    tl.store(b_ptr + col_offsets, db_row, mask=mask)


SQRT_2_OVER_PI: tl.constexpr = tl.constexpr(0.7978845608028654)


@triton.jit
def gelu_tanh_kernel(x_ptr, gate_ptr, y_ptr, N, HAS_GATE: tl.constexpr, BLOCK: tl.constexpr):
    """y = gelu(x), or gelu(x) * gate, by the tanh approximation.

    The grid may be smaller than the work: each program strides over the blocks.
    """
    start = tl.program_id(0) * BLOCK
    step = tl.num_programs(0) * BLOCK
    while start < N:
        idx = start + tl.arange(0, BLOCK)
        valid = idx < N
        x = tl.load(x_ptr + idx, mask=valid, other=0.0).to(tl.float32)
        inner = SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)
        y = 0.5 * x * (1.0 + libdevice.tanh(inner))
        if HAS_GATE:
            y *= tl.load(gate_ptr + idx, mask=valid, other=0.0).to(tl.float32)
        tl.store(y_ptr + idx, y.to(y_ptr.dtype.element_ty), mask=valid)
        start += step


def add(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    out = torch.empty_like(x)
    n_elements = out.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, y, out, n_elements, alpha)
    return out


def _row_settings(n_cols: int) -> tuple[int, int]:
    """A power of two that holds a row, and the warps for it."""
    block_size = triton.next_power_of_2(n_cols)
    return block_size, 4 if block_size < 2048 else 8 if block_size < 8192 else 16


def swiglu_forward(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n_cols = a.shape[-1]
    a, b = a.view(-1, n_cols), b.view(-1, n_cols)
    c = torch.empty_like(a)
    block_size, num_warps = _row_settings(n_cols)
    swiglu_forward_kernel[(a.shape[0],)](
        a, b, c, c.stride(0), n_cols=n_cols, BLOCK_SIZE=block_size, num_warps=num_warps
    )
    return c


def swiglu_backward(dc: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n_cols = dc.shape[-1]
    dc = dc.view(-1, n_cols)
    block_size, num_warps = _row_settings(n_cols)
    swiglu_backward_kernel[(dc.shape[0],)](
        dc, a, b, dc.stride(0), n_cols=n_cols, BLOCK_SIZE=block_size, num_warps=num_warps
    )
    return a, b


def gelu(x: torch.Tensor, gate: torch.Tensor | None = None, block: int = 1024, programs: int = 1056) -> torch.Tensor:
    y = torch.empty_like(x)
    grid = (min(programs, triton.cdiv(x.numel(), block)),)
    gelu_tanh_kernel[grid](x, gate, y, x.numel(), HAS_GATE=gate is not None, BLOCK=block)
    return y
