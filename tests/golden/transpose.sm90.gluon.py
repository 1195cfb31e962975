"""Out-of-place transpose: read along rows, written along columns."""

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
def transpose_kernel(
    x_ptr, y_ptr, M, N,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    # coalesced access to x_ptr
    x_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_N], [1, 0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to y_ptr
    y_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_N], [0, 1], y_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )

    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, x_layout))
    rows_y = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, y_layout))
    cols = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, x_layout))
    cols_y = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, y_layout))
    rows_y_mask = rows_y[:, None] < M
    rows_mask = rows[:, None] < M
    cols_y_mask = cols_y[None, :] < N
    cols_mask = cols[None, :] < N
    mask_y = rows_y_mask & cols_y_mask
    mask = rows_mask & cols_mask
    tile = gl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask)
    gl.store(y_ptr + cols_y[None, :] * M + rows_y[:, None], gl.convert_layout(tile, y_layout), mask=mask_y)
