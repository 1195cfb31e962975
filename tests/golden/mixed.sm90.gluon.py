"""A merge, which stays Triton, and the kernel after it; both name their offsets by one helper."""

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


@triton.jit
def block_of(pid, BLOCK: tl.constexpr):
    return pid * BLOCK + tl.arange(0, BLOCK)


@gluon.jit
def block_of_gluon(pid, BLOCK: gl.constexpr, layout: gl.constexpr):
    return pid * BLOCK + gl.arange(0, BLOCK, layout=layout)


# tt2gl: kept as Triton (TTG301). It uses `tl.standard.sort_impl`.
@triton.jit
def merge_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = block_of(tl.program_id(0), BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=float("inf"))
    tl.store(y_ptr + offsets, tl.standard.sort_impl(x), mask=offsets < n)


@gluon.jit
def bias_relu_kernel(x_ptr, bias_ptr, y_ptr, n, COLS: gl.constexpr, BLOCK: gl.constexpr):
    # coalesced access to x_ptr, bias_ptr and y_ptr
    layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    offsets = block_of_gluon(gl.program_id(0), BLOCK, layout=layout)
    x = gl.load(x_ptr + offsets, mask=offsets < n)
    x += gl.load(bias_ptr + offsets % COLS, mask=offsets < n)
    gl.store(y_ptr + offsets, gl.maximum(x, 0.0), mask=offsets < n)
