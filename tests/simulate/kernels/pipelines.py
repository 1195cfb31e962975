"""Pipelines of more shapes (sm90): several sums, partitions in turn, rows of different lengths, loops within loops.

Where programs have different trip counts they go apart, though they hold shared memory.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import tma as blackwell_tma
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

try:
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_load as tma_load
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_store as tma_store
except ImportError:
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_copy_global_to_shared as tma_load
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_copy_shared_to_global as tma_store
try:
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_load
except ImportError:
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_copy_global_to_shared as async_load


# ------------------------------------------------------------------------------------------------------- one partition


@gluon.jit
def two_sums_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A @ B, fp16: two wgmmas in flight, one for each half of the rows; each half is stored as it is done."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    dtype: gl.constexpr = a_desc.dtype
    top_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_desc.layout)
    low_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_desc.layout)
    b_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(bars.index(i), count=1)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    off_m = gl.program_id(0) * BLOCK_M * 2
    off_n = gl.program_id(1) * BLOCK_N
    size: gl.constexpr = 2 * a_desc.block_type.nbytes + b_desc.block_type.nbytes
    steps = gl.cdiv(a_desc.shape[1], BLOCK_K)
    for k in gl.static_range(NUM_BUFFERS - 1):
        bar = bars.index(k)
        mbarrier.expect(bar, size)
        tma_load(a_desc, [off_m, k * BLOCK_K], bar, top_bufs.index(k))
        tma_load(a_desc, [off_m + BLOCK_M, k * BLOCK_K], bar, low_bufs.index(k))
        tma_load(b_desc, [k * BLOCK_K, off_n], bar, b_bufs.index(k))
    top = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
    low = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
    for k in range(steps):
        slot = k % NUM_BUFFERS
        mbarrier.wait(bars.index(slot), (k // NUM_BUFFERS) & 1)
        top = warpgroup_mma(top_bufs.index(slot), b_bufs.index(slot), top, is_async=True)
        low = warpgroup_mma(low_bufs.index(slot), b_bufs.index(slot), low, is_async=True)
        top, low = warpgroup_mma_wait(num_outstanding=2, deps=(top, low))
        ahead = k + NUM_BUFFERS - 1
        into = ahead % NUM_BUFFERS
        bar = bars.index(into)
        more = ahead < steps
        mbarrier.expect(bar, size, pred=more)
        tma_load(a_desc, [off_m, ahead * BLOCK_K], bar, top_bufs.index(into), pred=more)
        tma_load(a_desc, [off_m + BLOCK_M, ahead * BLOCK_K], bar, low_bufs.index(into), pred=more)
        tma_load(b_desc, [ahead * BLOCK_K, off_n], bar, b_bufs.index(into), pred=more)
    top = warpgroup_mma_wait(num_outstanding=1, deps=(top,))
    c_buf = gl.allocate_shared_memory(dtype, [2, BLOCK_M, BLOCK_N], c_desc.layout)
    c_buf.index(0).store(top.to(dtype))
    fence_async_shared()
    tma_store(c_desc, [off_m, off_n], c_buf.index(0))
    low = warpgroup_mma_wait(num_outstanding=0, deps=(low,))
    c_buf.index(1).store(low.to(dtype))
    fence_async_shared()
    tma_store(c_desc, [off_m + BLOCK_M, off_n], c_buf.index(1))
    tma.store_wait(pendings=0)


@gluon.jit
def start_load(desc, at, bufs, bars, count, NUM_BUFFERS: gl.constexpr, pred):
    """Begin the load of a tile into the next slot: how many were begun."""
    bar = bars.index(count % NUM_BUFFERS)
    mbarrier.expect(bar, desc.block_type.nbytes, pred=pred)
    tma_load(desc, [at, 0], bar, bufs.index(count % NUM_BUFFERS), pred=pred)
    return count + 1


@gluon.jit
def in_place_kernel(x_desc, y_desc, NUM_BUFFERS: gl.constexpr):
    """y = 2x + 1 in the slots themselves, tiles dealt out in turn: a slot is loaded again behind its store."""
    ROWS: gl.constexpr = x_desc.block_type.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    bufs = gl.allocate_shared_memory(x_desc.dtype, [NUM_BUFFERS] + x_desc.block_type.shape, x_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(bars.index(i), count=1)
    tiles = gl.cdiv(x_desc.shape[0], ROWS)
    stride = gl.num_programs(0)
    first = gl.program_id(0)
    loads = 0
    for i in gl.static_range(NUM_BUFFERS - 2):
        loads = start_load(
            x_desc, (first + i * stride) * ROWS, bufs, bars, loads, NUM_BUFFERS, first + i * stride < tiles
        )
    done = 0
    for tile in range(first, tiles, stride):
        slot = done % NUM_BUFFERS
        mbarrier.wait(bars.index(slot), done // NUM_BUFFERS & 1)
        buf = bufs.index(slot)
        buf.store(buf.load(layout) * 2.0 + 1.0)
        fence_async_shared()
        tma_store(y_desc, [tile * ROWS, 0], buf)
        # The store before this one may still read its slot; the one before that is over.
        tma.store_wait(pendings=1)
        ahead = tile + (NUM_BUFFERS - 2) * stride
        loads = start_load(x_desc, ahead * ROWS, bufs, bars, loads, NUM_BUFFERS, ahead < tiles)
        done += 1
    tma.store_wait(pendings=0)


@gluon.jit
def masked_tiles_kernel(x_desc, flags_ptr, out_ptr, n_tiles, NUM_BUFFERS: gl.constexpr):
    """Sums of rows over the tiles that are flagged: other tiles are passed over, and take no slot."""
    ROWS: gl.constexpr = x_desc.block_type.shape[0]
    COLS: gl.constexpr = x_desc.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    bufs = gl.allocate_shared_memory(x_desc.dtype, [NUM_BUFFERS, ROWS, COLS], x_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(bars.index(i), count=1)
    row = gl.program_id(0) * ROWS
    flags = flags_ptr + gl.program_id(0) * n_tiles
    total = gl.zeros([ROWS, COLS], gl.float32, layout)
    issued = 0
    used = 0
    for tile in range(n_tiles + 1):
        want = (tile < n_tiles) & (gl.load(flags + tile, mask=tile < n_tiles, other=0) != 0)
        if want:
            bar = bars.index(issued % NUM_BUFFERS)
            mbarrier.expect(bar, x_desc.block_type.nbytes)
            tma_load(x_desc, [row, tile * COLS], bar, bufs.index(issued % NUM_BUFFERS))
            issued += 1
        while (issued - used == NUM_BUFFERS) | ((tile == n_tiles) & (used < issued)):
            mbarrier.wait(bars.index(used % NUM_BUFFERS), used // NUM_BUFFERS & 1)
            total += bufs.index(used % NUM_BUFFERS).load(layout)
            used += 1
    rows = row + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    gl.store(out_ptr + rows, gl.sum(total, axis=1))


@gluon.jit
def signalled_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, NUM_BUFFERS: gl.constexpr):
    """out = x * x: cp.async that arrives on mbarriers, and is never committed."""
    lay: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    offs = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=lay)
    stride = gl.num_programs(0) * BLOCK
    ring = gl.allocate_shared_memory(gl.float32, [NUM_BUFFERS, BLOCK], flat)
    bars = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(bars.index(i), count=1)
    for i in gl.static_range(NUM_BUFFERS - 1):
        at = i * stride + offs
        async_load(ring.index(i), x_ptr + at, mask=at < n)
        async_copy.mbarrier_arrive(bars.index(i))
        mbarrier.arrive(bars.index(i))
    blocks = gl.cdiv(n - gl.program_id(0) * BLOCK, stride)
    for b in range(blocks):
        mbarrier.wait(bars.index(b % NUM_BUFFERS), b // NUM_BUFFERS & 1)
        x = ring.index(b % NUM_BUFFERS).load(lay)
        ahead = b + NUM_BUFFERS - 1
        at = ahead * stride + offs
        async_load(ring.index(ahead % NUM_BUFFERS), x_ptr + at, mask=at < n)
        async_copy.mbarrier_arrive(bars.index(ahead % NUM_BUFFERS))
        mbarrier.arrive(bars.index(ahead % NUM_BUFFERS))
        here = b * stride + offs
        gl.store(out_ptr + here, x * x, mask=here < n)
    async_copy.wait_group(0)


@gluon.jit
def permute_rows_kernel(x_desc, y_desc, from_ptr, ROWS: gl.constexpr, TILES: gl.constexpr):
    """y[to] = 2 * x[from]: rows gathered and scattered by TMA, a tile ahead (sm100)."""
    COLS: gl.constexpr = x_desc.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    idx: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, 4], [1, 0]))
    bufs = gl.allocate_shared_memory(x_desc.dtype, [2, ROWS, COLS], x_desc.layout)
    outs = gl.allocate_shared_memory(x_desc.dtype, [2, ROWS, COLS], x_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    first = gl.program_id(0) * ROWS * TILES
    offs = gl.arange(0, ROWS, layout=idx)
    rows = gl.load(from_ptr + first + offs)
    mbarrier.expect(bars.index(0), ROWS * COLS * 4)
    blackwell_tma.async_gather(x_desc, rows, 0, bars.index(0), bufs.index(0))
    for t in gl.static_range(TILES):
        if t + 1 < TILES:
            more = gl.load(from_ptr + first + (t + 1) * ROWS + offs)
            mbarrier.expect(bars.index((t + 1) % 2), ROWS * COLS * 4)
            blackwell_tma.async_gather(x_desc, more, 0, bars.index((t + 1) % 2), bufs.index((t + 1) % 2))
        to = (first + t * ROWS + offs) ^ 5
        mbarrier.wait(bars.index(t % 2), t // 2 & 1)
        x = bufs.index(t % 2).load(layout)
        tma.store_wait(pendings=1)
        outs.index(t % 2).store(x * 2.0)
        fence_async_shared()
        blackwell_tma.async_scatter(y_desc, to, 0, outs.index(t % 2))
    tma.store_wait(pendings=0)


# ---------------------------------------------------------------------------------------------------------- partitions


@gluon.jit
def copy_rows(x_ptr, out_ptr, lengths_ptr, N, ring, full, empty):
    """Producer of one row, by cp.async that arrives on the slots' mbarriers."""
    BLOCK: gl.constexpr = ring.shape[1]
    NUM_BUFFERS: gl.constexpr = ring.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [1], [0])
    cols = gl.arange(0, BLOCK, layout=layout)
    row = gl.program_id(0)
    length = gl.load(lengths_ptr + row)
    for tile in range(gl.cdiv(length, BLOCK)):
        slot = tile % NUM_BUFFERS
        mbarrier.wait(empty.index(slot), (tile // NUM_BUFFERS & 1) ^ 1)
        offs = tile * BLOCK + cols
        async_load(ring.index(slot), x_ptr + row * N + offs, mask=offs < length)
        async_copy.mbarrier_arrive(full.index(slot), increment_count=False)


@gluon.jit
def sum_row(x_ptr, out_ptr, lengths_ptr, N, ring, full, empty):
    """Consumer: slot and phase are counted on from tile to tile."""
    BLOCK: gl.constexpr = ring.shape[1]
    NUM_BUFFERS: gl.constexpr = ring.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    row = gl.program_id(0)
    length = gl.load(lengths_ptr + row)
    total = gl.zeros([BLOCK], gl.float32, layout)
    phase = 0
    slot = 0
    for tile in range(gl.cdiv(length, BLOCK)):
        mbarrier.wait(full.index(slot), phase)
        total += ring.index(slot).load(layout)
        mbarrier.arrive(empty.index(slot), count=1)
        slot += 1
        wrap = slot == NUM_BUFFERS
        slot = gl.where(wrap, 0, slot)
        phase = gl.where(wrap, phase ^ 1, phase)
    gl.store(out_ptr + row, gl.sum(total, axis=0))


@gluon.jit
def jagged_sum_kernel(x_ptr, out_ptr, lengths_ptr, N, BLOCK: gl.constexpr, NUM_BUFFERS: gl.constexpr):
    """The sum of each row's first elements, as many as its length says."""
    ring = gl.allocate_shared_memory(gl.float32, [NUM_BUFFERS, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(full.index(i), count=32)
        mbarrier.init(empty.index(i), count=1)
    args = (x_ptr, out_ptr, lengths_ptr, N, ring, full, empty)
    gl.warp_specialize([(sum_row, args), (copy_rows, args)], [1], [24])


@gluon.jit
def ping(x_ptr, out_ptr, steps, board, ping_bar, pong_bar):
    """Puts values on the board, and takes the answer."""
    BLOCK: gl.constexpr = board.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offs = gl.arange(0, BLOCK, layout=layout)
    base = gl.program_id(0) * BLOCK
    x = gl.load(x_ptr + base + offs)
    phase = 0
    for step in range(steps + gl.program_id(0)):
        board.store(x)
        mbarrier.arrive(ping_bar, count=1)
        mbarrier.wait(pong_bar, phase)
        x = board.load(layout) * 0.5
        phase ^= 1
    gl.store(out_ptr + base + offs, x)


@gluon.jit
def pong(x_ptr, out_ptr, steps, board, ping_bar, pong_bar):
    """Answers on the board itself."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    phase = 0
    for step in range(steps + gl.program_id(0)):
        mbarrier.wait(ping_bar, phase)
        x = board.load(layout) + step
        board.store(x)
        mbarrier.arrive(pong_bar, count=1)
        phase ^= 1


@gluon.jit
def ping_pong_kernel(x_ptr, out_ptr, steps, BLOCK: gl.constexpr):
    """x = (x + step) / 2, again and again: two partitions write to one buffer in turn."""
    board = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    mbarrier.init(bars.index(0), count=1)
    mbarrier.init(bars.index(1), count=1)
    args = (x_ptr, out_ptr, steps, board, bars.index(0), bars.index(1))
    gl.warp_specialize([(ping, args), (pong, args)], [4], [48])


@gluon.jit
def load_operands(a_desc, b_desc, c_desc, a_raw, a_ready, b_bufs, raw_full, raw_empty, full, empty):
    """Producer of both operands, each with slots of its own."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    NUM_BUFFERS: gl.constexpr = b_bufs.shape[0]
    count = 0
    for m in range(gl.program_id(0), gl.cdiv(a_desc.shape[0], BLOCK_M), gl.num_programs(0)):
        for k in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
            slot = count % NUM_BUFFERS
            parity = (count // NUM_BUFFERS & 1) ^ 1
            mbarrier.wait(raw_empty.index(slot), parity)
            mbarrier.expect(raw_full.index(slot), a_desc.block_type.nbytes)
            tma_load(a_desc, [m * BLOCK_M, k * BLOCK_K], raw_full.index(slot), a_raw.index(slot))
            mbarrier.wait(empty.index(slot), parity)
            mbarrier.expect(full.index(slot), b_desc.block_type.nbytes)
            tma_load(b_desc, [k * BLOCK_K, gl.program_id(1) * BLOCK_N], full.index(slot), b_bufs.index(slot))
            count += 1


@gluon.jit
def halve_a(a_desc, b_desc, c_desc, a_raw, a_ready, b_bufs, raw_full, raw_empty, full, empty):
    """Between: halves A from one ring into the next."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    NUM_BUFFERS: gl.constexpr = b_bufs.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    count = 0
    for m in range(gl.program_id(0), gl.cdiv(a_desc.shape[0], BLOCK_M), gl.num_programs(0)):
        for k in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
            slot = count % NUM_BUFFERS
            mbarrier.wait(raw_full.index(slot), count // NUM_BUFFERS & 1)
            a = a_raw.index(slot).load(layout)
            mbarrier.arrive(raw_empty.index(slot), count=1)
            mbarrier.wait(empty.index(slot), (count // NUM_BUFFERS & 1) ^ 1)
            a_ready.index(slot).store((a * 0.5).to(a_desc.dtype))
            fence_async_shared()
            mbarrier.arrive(full.index(slot), count=1)
            count += 1


@gluon.jit
def multiply(a_desc, b_desc, c_desc, a_raw, a_ready, b_bufs, raw_full, raw_empty, full, empty):
    """Consumer: a slot is full when the load of B and the halves of A have arrived."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    NUM_BUFFERS: gl.constexpr = b_bufs.shape[0]
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    c_buf = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    count = 0
    for m in range(gl.program_id(0), gl.cdiv(a_desc.shape[0], BLOCK_M), gl.num_programs(0)):
        acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma)
        for k in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
            slot = count % NUM_BUFFERS
            mbarrier.wait(full.index(slot), count // NUM_BUFFERS & 1)
            acc = warpgroup_mma(a_ready.index(slot), b_bufs.index(slot), acc, is_async=True)
            acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
            mbarrier.arrive(empty.index(slot), count=1)
            count += 1
        tma.store_wait(pendings=0)
        c_buf.store(acc)
        fence_async_shared()
        tma_store(c_desc, [m * BLOCK_M, gl.program_id(1) * BLOCK_N], c_buf)
    tma.store_wait(pendings=0)


@gluon.jit
def three_jobs_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A / 2 @ B, fp16 into fp32: one partition loads, one halves A, one multiplies and stores."""
    a_raw = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS] + a_desc.block_type.shape, a_desc.layout)
    a_ready = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS] + a_desc.block_type.shape, a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [NUM_BUFFERS] + b_desc.block_type.shape, b_desc.layout)
    raw_full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    raw_empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(raw_full.index(i), count=1)
        mbarrier.init(raw_empty.index(i), count=1)
        mbarrier.init(full.index(i), count=2)
        mbarrier.init(empty.index(i), count=1)
    args = (a_desc, b_desc, c_desc, a_raw, a_ready, b_bufs, raw_full, raw_empty, full, empty)
    gl.warp_specialize([(multiply, args), (halve_a, args), (load_operands, args)], [4, 1], [80, 24])
