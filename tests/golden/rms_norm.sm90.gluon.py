"""RMSNorm of rows of any length, two passes over each."""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def coalesced(shape, order, bits, num_warps, lanes=32):
    """Blocked layout of a global access: up to 16 bytes a thread along `order[0]`, lanes then warps outwards."""
    rank, elements = len(shape), 1
    for extent in shape:
        elements *= extent
    size, threads, warps = [1] * rank, [1] * rank, [1] * rank
    size[order[0]] = min(128 // bits, shape[order[0]], max(elements // (num_warps * lanes), 1))
    for dim in order:
        threads[dim] = min(lanes, max(shape[dim] // size[dim], 1))
        lanes //= threads[dim]
        warps[dim] = min(num_warps, max(shape[dim] // (size[dim] * threads[dim]), 1))
        num_warps //= warps[dim]
    threads[order[-1]] *= lanes
    warps[order[-1]] *= num_warps
    return gl.BlockedLayout(size, threads, warps, order)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 4096}, num_warps=8),
    ],
    key=["n_cols"],
)
@gluon.jit
def rms_norm_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    stride,
    n_cols,
    eps,
    BLOCK: gl.constexpr,
):
    # coalesced access to x_ptr, w_ptr and y_ptr
    row_layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    row = gl.program_id(0).to(gl.int64)
    x_ptr += row * stride
    y_ptr += row * stride

    squares = gl.zeros([BLOCK], dtype=gl.float32, layout=row_layout)
    cols_range = gl.arange(0, BLOCK, layout=row_layout)
    for start in range(0, n_cols, BLOCK):
        cols = start + cols_range
        x = gl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(gl.float32)
        squares += x * x
    rstd = gl.rsqrt(gl.sum(squares, axis=0) / n_cols + eps)

    # the row again, from the cache where it fits
    for start in range(0, n_cols, BLOCK):
        cols = start + cols_range
        mask = cols < n_cols
        x = gl.load(x_ptr + cols, mask=mask, other=0.0).to(gl.float32)
        w = gl.load(w_ptr + cols, mask=mask, other=0.0).to(gl.float32)
        gl.store(y_ptr + cols, x * rstd * w, mask=mask)


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    y = torch.empty_like(x)
    rms_norm_kernel[(x.shape[0],)](x, w, y, x.stride(0), x.shape[1], eps)
    return y
