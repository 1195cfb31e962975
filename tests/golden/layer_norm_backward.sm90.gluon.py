"""The backward pass of LayerNorm: dx by rows, and the weights' gradients summed over blocks of rows."""

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
def layer_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, n_rows, n_cols,
    ROWS: gl.constexpr, BLOCK: gl.constexpr,
):  # fmt: skip
    # coalesced access to w_ptr, x_ptr, dy_ptr and dx_ptr
    w_layout: gl.constexpr = coalesced([BLOCK], [0], w_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
    # coalesced access to dw_ptr and db_ptr
    dw_layout: gl.constexpr = coalesced([BLOCK], [0], dw_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    cols = gl.arange(0, BLOCK, layout=w_layout)
    cols_dw = gl.arange(0, BLOCK, layout=dw_layout)
    inside = cols < n_cols
    inside_dw = cols_dw < n_cols
    w = gl.load(w_ptr + cols, mask=inside, other=0.0).to(gl.float32)
    dw = gl.zeros((BLOCK,), gl.float32, layout=w_layout)
    db = gl.zeros((BLOCK,), gl.float32, layout=w_layout)
    first = gl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, n_rows)):
        at = row * n_cols + cols
        x = gl.load(x_ptr + at, mask=inside, other=0.0).to(gl.float32)
        dy = gl.load(dy_ptr + at, mask=inside, other=0.0).to(gl.float32)
        rstd = gl.load(rstd_ptr + row)
        x_hat = (x - gl.load(mean_ptr + row)) * rstd
        wdy = w * dy
        c1 = gl.sum(x_hat * wdy, axis=0) / n_cols
        c2 = gl.sum(wdy, axis=0) / n_cols
        gl.store(dx_ptr + at, (wdy - (x_hat * c1 + c2)) * rstd, mask=inside)
        dw += dy * x_hat
        db += dy
    gl.atomic_add(dw_ptr + cols_dw, gl.convert_layout(dw, dw_layout), mask=inside_dw)
    gl.atomic_add(db_ptr + cols_dw, gl.convert_layout(db, dw_layout), mask=inside_dw)


@gluon.jit
def sum_partials_kernel(partial_ptr, out_ptr, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """The sum over the rows of a matrix."""

    # coalesced access to partial_ptr
    tile_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_N], [1, 0], partial_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to out_ptr
    row_layout: gl.constexpr = coalesced([BLOCK_N], [0], out_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())

    cols = gl.program_id(0) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, tile_layout))
    cols_row = gl.program_id(0) * BLOCK_N + gl.arange(0, BLOCK_N, layout=row_layout)
    total = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=tile_layout)
    rows_range = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, tile_layout))
    cols_mask = cols[None, :] < N
    for i in range(0, M, BLOCK_M):
        rows = i + rows_range
        mask = (rows[:, None] < M) & cols_mask
        total += gl.load(partial_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    gl.store(out_ptr + cols_row, gl.convert_layout(gl.sum(total, axis=0), row_layout), mask=cols_row < N)
