"""Rotary embedding of interleaved pairs."""

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


@gluon.constexpr_function
def paired(layout):
    """The layout with a last dimension of two elements, both in one thread: what `join` gives and `split` takes."""
    return gl.BlockedLayout(
        [*layout.size_per_thread, 2],
        [*layout.threads_per_warp, 1],
        [*layout.warps_per_cta, 1],
        [len(layout.order), *layout.order],
    )


@gluon.constexpr_function
def narrowed(layout, dim, factor):
    """The layout of one element in place of `factor` neighbours along `dim`, in their thread: what `split` gives."""
    size = list(layout.size_per_thread)
    size[dim] = max(size[dim] // factor, 1)
    return gl.BlockedLayout(size, layout.threads_per_warp, layout.warps_per_cta, layout.order)


@gluon.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, HALF: gl.constexpr, HEADS: gl.constexpr):
    # coalesced access to x_ptr
    tile_layout: gl.constexpr = coalesced(
        [HEADS, 2 * HALF], [1, 0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    tile_part_layout: gl.constexpr = narrowed(tile_layout, 1, 2)

    token = gl.program_id(0)
    pairs = gl.arange(0, HALF, layout=gl.SliceLayout(0, gl.SliceLayout(2, paired(tile_part_layout))))
    cos = gl.load(cos_ptr + token * HALF + pairs)[None, :]
    sin = gl.load(sin_ptr + token * HALF + pairs)[None, :]

    heads = gl.arange(0, HEADS, layout=gl.SliceLayout(1, tile_layout))
    cols = gl.arange(0, 2 * HALF, layout=gl.SliceLayout(0, tile_layout))
    at = x_ptr + (token * HEADS + heads[:, None]) * 2 * HALF + cols[None, :]
    x = gl.load(at)
    even, odd = gl.split(gl.convert_layout(gl.reshape(x, (HEADS, HALF, 2)), paired(tile_part_layout)))
    turned = gl.join(even * cos - odd * sin, odd * cos + even * sin)
    gl.store(at, gl.convert_layout(gl.reshape(turned, (HEADS, 2 * HALF)), tile_layout))
