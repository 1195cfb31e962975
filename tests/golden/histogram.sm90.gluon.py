"""Counts by bin, with atomics."""

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
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: gl.constexpr):
    # coalesced access to x_ptr
    x_layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
    # coalesced access to counts_ptr; 128 for one element a thread
    counts_layout: gl.constexpr = coalesced([BLOCK], [0], 128, gl.num_warps())

    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=x_layout)
    offsets_counts = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=counts_layout)
    bins = gl.load(x_ptr + offsets, mask=offsets < n, other=0)
    gl.atomic_add(
        counts_ptr + gl.convert_layout(bins, counts_layout),
        gl.full([BLOCK], 1, counts_ptr.dtype.element_ty, counts_layout),
        mask=offsets_counts < n,
    )


@gluon.jit
def block_histogram_kernel(x_ptr, counts_ptr, n, BINS: gl.constexpr, BLOCK: gl.constexpr):
    """Counts of a block first, then one atomic a bin."""

    # coalesced access to x_ptr
    x_layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
    # coalesced access to counts_ptr
    counts_layout: gl.constexpr = coalesced([BINS], [0], counts_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=x_layout)
    x = gl.load(x_ptr + offsets, mask=offsets < n, other=0)
    counts = gl.histogram(x, BINS, layout=counts_layout)
    gl.atomic_add(counts_ptr + gl.arange(0, BINS, layout=counts_layout), counts, sem="relaxed")
