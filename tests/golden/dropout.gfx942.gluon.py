"""Dropout and a residual; a flag that the launch leaves off, and one branch of a runtime scalar."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def coalesced(shape, order, bits, num_warps, lanes=64):
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
def dropout_kernel(x_ptr, residual_ptr, y_ptr, n, p, seed, HAS_RESIDUAL: gl.constexpr, BLOCK: gl.constexpr):
    # coalesced access to x_ptr, y_ptr and residual_ptr
    layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = offsets < n
    x = gl.load(x_ptr + offsets, mask=mask)
    if p > 0.0:
        keep = tl.rand(seed, offsets) > p
        x = gl.where(keep, x / (1.0 - p), gl.zeros([BLOCK], x.dtype, layout=layout)).to(x.dtype)
    if HAS_RESIDUAL:
        x += gl.load(residual_ptr + offsets, mask=mask)
    gl.store(y_ptr + offsets, x, mask=mask)
