"""Softmax of rows that fit in registers."""

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


@gluon.jit
def softmax_kernel(y_ptr, x_ptr, x_stride, y_stride, n_cols, BLOCK: gl.constexpr):
    """One program a row."""

    # coalesced access to x_ptr and y_ptr
    row_layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    row = gl.program_id(0)
    cols = gl.arange(0, BLOCK, layout=row_layout)
    # -inf is neutral for the maximum and zero in the sum
    x = gl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(gl.float32)
    x -= gl.max(x, axis=0)
    e = gl.exp(x)
    y = e / gl.sum(e, axis=0)
    gl.store(y_ptr + row * y_stride + cols, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    softmax_kernel[(rows,)](y, x, x.stride(0), y.stride(0), cols, BLOCK=block, num_warps=4 if block < 4096 else 8)
    return y
