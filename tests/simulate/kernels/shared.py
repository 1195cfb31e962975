"""Kernels whose threads meet in shared memory, on any NVIDIA target: exchanges, trees, kept rows, tickets of blocks.

Between stores and loads of shared memory a block needs no barrier in the source (the compiler puts them), but those
that a reader would look for are written where they matter: before global memory is handed to other blocks.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

# Triton 3.6 calls it thread_barrier.
barrier = getattr(gl, "barrier", None) or gl.thread_barrier


@gluon.jit
def transpose_kernel(in_ptr, out_ptr, M, N, BLOCK: gl.constexpr):
    """out = in^T by square tiles: both global accesses run along rows, shared memory turns the tile in between."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    turned: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 8, [1, 0])
    rows = gl.arange(0, BLOCK, layout=gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))
    first_m = gl.program_id(0) * BLOCK
    first_n = gl.program_id(1) * BLOCK

    inside = (first_m + rows[:, None] < M) & (first_n + cols[None, :] < N)
    x = gl.load(in_ptr + (first_m + rows[:, None]) * N + first_n + cols[None, :], mask=inside, other=0.0)
    tile = gl.allocate_shared_memory(in_ptr.dtype.element_ty, [BLOCK, BLOCK], turned, x)
    y = tile.permute([1, 0]).load(layout)
    fits = (first_n + rows[:, None] < N) & (first_m + cols[None, :] < M)
    gl.store(out_ptr + (first_n + rows[:, None]) * M + first_m + cols[None, :], y, mask=fits)


@gluon.jit
def tree_sum_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, LEVELS: gl.constexpr):
    """One sum a block, by halving in shared memory: level by level the upper half is added to the lower."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    offs = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + offs, mask=offs < n, other=0)
    levels = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [2, BLOCK], shared)
    levels.index(0).store(x)
    for level in gl.static_range(LEVELS):
        source = levels.index(level % 2)
        low = source.slice(0, BLOCK >> (level + 1)).load(layout)
        high = source.slice(BLOCK >> (level + 1), BLOCK >> (level + 1)).load(layout)
        levels.index((level + 1) % 2).slice(0, BLOCK >> (level + 1)).store(low + high)
    total = levels.index(LEVELS % 2).slice(0, 1).load(layout)
    gl.store(out_ptr + gl.program_id(0) + gl.arange(0, 1, layout=layout), total)


@gluon.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: gl.constexpr, CHUNKS: gl.constexpr):
    """A row of up to CHUNKS * BLOCK columns, read once: shared memory keeps it between the three passes."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    cols = gl.arange(0, BLOCK, layout=layout)
    x_ptrs = x_ptr + gl.program_id(0) * n_cols + cols
    row = gl.allocate_shared_memory(gl.float32, [CHUNKS, BLOCK], shared)

    highest = gl.full([BLOCK], float("-inf"), gl.float32, layout)
    for chunk in range(gl.cdiv(n_cols, BLOCK)):
        x = gl.load(x_ptrs + chunk * BLOCK, mask=cols < n_cols - chunk * BLOCK, other=float("-inf"))
        row.index(chunk).store(x)
        highest = gl.maximum(highest, x)
    largest = gl.max(highest, axis=0)

    terms = gl.zeros([BLOCK], gl.float32, layout)
    for chunk in range(gl.cdiv(n_cols, BLOCK)):
        e = gl.exp(row.index(chunk).load(layout) - largest)
        row.index(chunk).store(e)
        terms += e
    total = gl.sum(terms, axis=0)

    for chunk in range(gl.cdiv(n_cols, BLOCK)):
        out_ptrs = out_ptr + gl.program_id(0) * n_cols + chunk * BLOCK + cols
        gl.store(out_ptrs, row.index(chunk).load(layout) / total, mask=cols < n_cols - chunk * BLOCK)


@gluon.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: gl.constexpr, BINS: gl.constexpr):
    """Counts of the values 0 to BINS - 1: one histogram a block, added to the global one by atomics."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    offs = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + offs, mask=offs < n, other=0)
    counts = gl.histogram(x, BINS, mask=offs < n, layout=layout)
    gl.atomic_add(counts_ptr + gl.arange(0, BINS, layout=layout), counts, sem="relaxed")


@gluon.jit
def gather_rows_kernel(table_ptr, index_ptr, out_ptr, n_rows, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """out[i, j] = table[index[i], perm(j)], where perm reverses the columns inside the block by a gather."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [gl.num_warps(), 1], [1, 0])
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, layout))
    index = gl.load(index_ptr + rows, mask=rows < n_rows, other=0)
    picked = gl.load(table_ptr + index[:, None] * BLOCK_N + cols[None, :], mask=rows[:, None] < n_rows, other=0.0)
    backwards = (BLOCK_N - 1 - cols)[None, :] + gl.zeros([BLOCK_M, BLOCK_N], gl.int32, layout)
    flipped = gl.gather(picked, backwards, axis=1)
    gl.store(out_ptr + rows[:, None] * BLOCK_N + cols[None, :], flipped, mask=rows[:, None] < n_rows)


@gluon.jit
def last_block_sum_kernel(x_ptr, partial_ptr, ticket_ptr, out_ptr, n, BLOCK: gl.constexpr, BLOCKS: gl.constexpr):
    """Sum of all x in one launch: every block leaves its part, and the one that draws the last ticket adds them up."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    offs = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    part = gl.sum(gl.load(x_ptr + offs, mask=offs < n, other=0), axis=0)
    gl.store(partial_ptr + gl.program_id(0), part)
    # All threads' stores come before the ticket that tells of them.
    barrier()
    ticket = gl.atomic_add(ticket_ptr, 1, sem="acq_rel")
    if ticket == gl.num_programs(0) - 1:
        parts = gl.load(partial_ptr + gl.arange(0, BLOCKS, layout=layout))
        gl.store(out_ptr, gl.sum(parts, axis=0))


@gluon.jit
def row_and_column_sums_kernel(x_ptr, row_ptr, col_ptr, BLOCK: gl.constexpr):
    """Both marginal sums of a square tile, each stored in the layout of its slice; adds to what other blocks leave."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [gl.num_warps(), 1], [1, 0])
    rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, layout))
    cols = gl.program_id(1) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))
    x = gl.load(x_ptr + rows[:, None] * (gl.num_programs(1) * BLOCK) + cols[None, :])
    gl.atomic_add(row_ptr + rows, gl.sum(x, axis=1), sem="relaxed")
    gl.atomic_add(col_ptr + cols, gl.sum(x, axis=0), sem="relaxed")


@gluon.jit
def rotate_kernel(x_ptr, out_ptr, n, STEPS: gl.constexpr, BLOCK: gl.constexpr):
    """Each block sums STEPS neighbouring segments as they pass through two slots of shared memory, halves swapped."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    lane = gl.arange(0, BLOCK, layout=layout)
    first = gl.program_id(0) * BLOCK
    slots = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [2, BLOCK], shared)
    slots.index(0).store(gl.load(x_ptr + first + lane, mask=first + lane < n, other=0))
    total_low = gl.zeros([BLOCK // 2], x_ptr.dtype.element_ty, layout)
    total_high = gl.zeros([BLOCK // 2], x_ptr.dtype.element_ty, layout)
    for step in range(STEPS):
        offs = first + (step + 1) * BLOCK + lane
        slots.index((step + 1) % 2).store(gl.load(x_ptr + offs, mask=offs < n, other=0))
        here = slots.index(step % 2)
        total_low += here.slice(BLOCK // 2, BLOCK // 2).load(layout)
        total_high += here.slice(0, BLOCK // 2).load(layout)
    half = gl.arange(0, BLOCK // 2, layout=layout)
    gl.store(out_ptr + first + half, total_low)
    gl.store(out_ptr + first + BLOCK // 2 + half, total_high)
