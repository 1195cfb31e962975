"""A gated activation; one helper computes, the other makes tensors in the layout that each caller wants."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


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
def load_block(ptr, start, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    """A block and where it is."""
    offsets = start + gl.arange(0, BLOCK, layout=layout)
    return gl.load(ptr + offsets, mask=offsets < n, other=0.0).to(gl.float32), offsets


@gluon.jit
def gated_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: gl.constexpr):
    # coalesced access to gate_ptr, up_ptr and out_ptr
    layout: gl.constexpr = coalesced([BLOCK], [0], gate_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    start = gl.program_id(0) * BLOCK
    gate, offsets = load_block(gate_ptr, start, n, BLOCK, layout=layout)
    up, _ = load_block(up_ptr, start, n, BLOCK, layout=layout)
    gl.store(out_ptr + offsets, silu(gate) * up, mask=offsets < n)


@gluon.jit
def halves_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr):
    """The gate and what it gates side by side in one tensor, half a block wide each."""

    # coalesced access to x_ptr and out_ptr
    layout: gl.constexpr = coalesced([BLOCK // 2], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    gate, offsets = load_block(x_ptr, 0, n, BLOCK // 2, layout=layout)
    up, _ = load_block(x_ptr + n, 0, n, BLOCK // 2, layout=layout)
    gl.store(out_ptr + offsets, silu(gate) * up, mask=offsets < n)
