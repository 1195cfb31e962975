"""The largest of each row, and where it is."""

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
def _first_max(value, index, other, other_index):
    ahead = (value > other) | ((value == other) & (index < other_index))
    return gl.where(ahead, value, other), gl.where(ahead, index, other_index)


@gluon.jit
def _any_max(value, index, other, other_index):
    ahead = value > other
    return gl.where(ahead, value, other), gl.where(ahead, index, other_index)


@gluon.jit
def max_with_index(x, axis: gl.constexpr, tie_break_left: gl.constexpr = True, keep_dims: gl.constexpr = False):
    """The largest along `axis` and where it is; of equal ones the first, or with `tie_break_left=False` any."""
    if x.dtype == gl.bfloat16:
        x = x.to(gl.float32)
    layout: gl.constexpr = x.type.layout
    if len(x.shape) == 1:
        index = gl.arange(0, x.shape[0], layout=layout)
    else:
        along = gl.arange(0, x.shape[axis], layout=gl.SliceLayout(1 - axis % 2, layout))
        index = gl.zeros(x.shape, gl.int32, layout=layout) + gl.expand_dims(along, 1 - axis % 2)
    if tie_break_left:
        return gl.reduce((x, index), axis, _first_max, keep_dims)
    else:
        return gl.reduce((x, index), axis, _any_max, keep_dims)


@gluon.jit
def _first_min(value, index, other, other_index):
    ahead = (value < other) | ((value == other) & (index < other_index))
    return gl.where(ahead, value, other), gl.where(ahead, index, other_index)


@gluon.jit
def _any_min(value, index, other, other_index):
    ahead = value < other
    return gl.where(ahead, value, other), gl.where(ahead, index, other_index)


@gluon.jit
def min_with_index(x, axis: gl.constexpr, tie_break_left: gl.constexpr = True, keep_dims: gl.constexpr = False):
    """The smallest along `axis` and where it is; of equal ones the first, or with `tie_break_left=False` any."""
    if x.dtype == gl.bfloat16:
        x = x.to(gl.float32)
    layout: gl.constexpr = x.type.layout
    if len(x.shape) == 1:
        index = gl.arange(0, x.shape[0], layout=layout)
    else:
        along = gl.arange(0, x.shape[axis], layout=gl.SliceLayout(1 - axis % 2, layout))
        index = gl.zeros(x.shape, gl.int32, layout=layout) + gl.expand_dims(along, 1 - axis % 2)
    if tie_break_left:
        return gl.reduce((x, index), axis, _first_min, keep_dims)
    else:
        return gl.reduce((x, index), axis, _any_min, keep_dims)


@gluon.jit
def argmax_kernel(x_ptr, value_ptr, index_ptr, n_cols, ROWS: gl.constexpr, BLOCK: gl.constexpr):
    # coalesced access to x_ptr
    tile_layout: gl.constexpr = coalesced(
        [ROWS, BLOCK], [1, 0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to value_ptr and index_ptr
    row_layout: gl.constexpr = coalesced([ROWS], [0], value_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    rows = gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, tile_layout))
    rows_row = gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=row_layout)
    cols = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, tile_layout))
    x = gl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=cols[None, :] < n_cols, other=-float("inf"))
    value, index = max_with_index(x, axis=1)
    gl.store(value_ptr + rows_row, gl.convert_layout(value, row_layout))
    gl.store(index_ptr + rows_row, gl.convert_layout(index, row_layout))


@gluon.jit
def argmin_kernel(x_ptr, index_ptr, n_cols, BLOCK: gl.constexpr):
    # coalesced access to x_ptr
    row_layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    cols = gl.arange(0, BLOCK, layout=row_layout)
    x = gl.load(x_ptr + gl.program_id(0) * n_cols + cols, mask=cols < n_cols, other=float("inf"))
    gl.store(index_ptr + gl.program_id(0), min_with_index(x, axis=0)[1])
