"""Warps with different jobs on Hopper (sm90): who loads, who multiplies and who stores run side by side.

A slot of a ring has two mbarriers: `full`, on which its TMA loads arrive, and `empty`, on which its reader does. A
fresh barrier counts as having completed phase 1, so producers wait for the opposite parity and start at once.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
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


# --------------------------------------------------------------------------------------- one tile a program


@gluon.jit
def load_tile(a_desc, b_desc, c_desc, a_bufs, b_bufs, full, empty):
    """Producer: fills slots of both rings as they become empty."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    buffers: gl.constexpr = a_bufs.shape[0]
    off_m = gl.program_id(0) * BLOCK_M
    off_n = gl.program_id(1) * BLOCK_N
    for step in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
        slot = step % buffers
        phase = step // buffers & 1
        mbarrier.wait(empty.index(slot), phase ^ 1)
        mbarrier.expect(full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma_load(a_desc, [off_m, step * BLOCK_K], full.index(slot), a_bufs.index(slot))
        tma_load(b_desc, [step * BLOCK_K, off_n], full.index(slot), b_bufs.index(slot))


@gluon.jit
def multiply_tile(a_desc, b_desc, c_desc, a_bufs, b_bufs, full, empty):
    """Consumer: multiplies full slots and gives each back a step later, when its wgmma is over; then the epilogue."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    buffers: gl.constexpr = a_bufs.shape[0]
    dtype: gl.constexpr = a_desc.dtype
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
        slot = step % buffers
        mbarrier.wait(full.index(slot), step // buffers & 1)
        acc = warpgroup_mma(a_bufs.index(slot), b_bufs.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
        before = (step + buffers - 1) % buffers
        mbarrier.arrive(empty.index(before), count=1, pred=step > 0)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    c_buf = gl.allocate_shared_memory(dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    c_buf.store(acc.to(dtype))
    fence_async_shared()
    tma_store(c_desc, [gl.program_id(0) * BLOCK_M, gl.program_id(1) * BLOCK_N], c_buf)
    tma.store_wait(pendings=0)


@gluon.jit
def matmul_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A @ B, fp16, a tile a program: one warp loads, four multiply."""
    a_bufs = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS] + a_desc.block_type.shape, a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [NUM_BUFFERS] + b_desc.block_type.shape, b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(NUM_BUFFERS):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    operands = (a_desc, b_desc, c_desc, a_bufs, b_bufs, full, empty)
    gl.warp_specialize([(multiply_tile, operands), (load_tile, operands)], [1], [24])


# ------------------------------------------------------------------- persistent: many tiles a program, three jobs


@gluon.jit
def load_tiles(a_desc, b_desc, c_desc, a_bufs, b_bufs, c_bufs, full, empty, c_full, c_empty):
    """Producer of all tiles of this program: the rings run on from one tile to the next."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    buffers: gl.constexpr = a_bufs.shape[0]
    tiles_n = gl.cdiv(b_desc.shape[1], BLOCK_N)
    tiles = gl.cdiv(a_desc.shape[0], BLOCK_M) * tiles_n
    steps = gl.cdiv(a_desc.shape[1], BLOCK_K)
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        off_m = tile // tiles_n * BLOCK_M
        off_n = tile % tiles_n * BLOCK_N
        for step in range(steps):
            slot = count % buffers
            mbarrier.wait(empty.index(slot), (count // buffers & 1) ^ 1)
            mbarrier.expect(full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
            tma_load(a_desc, [off_m, step * BLOCK_K], full.index(slot), a_bufs.index(slot))
            tma_load(b_desc, [step * BLOCK_K, off_n], full.index(slot), b_bufs.index(slot))
            count += 1


@gluon.jit
def multiply_tiles(a_desc, b_desc, c_desc, a_bufs, b_bufs, c_bufs, full, empty, c_full, c_empty):
    """Consumer of operands and producer of results: each slot is given back when its own wgmma is over."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    buffers: gl.constexpr = a_bufs.shape[0]
    c_buffers: gl.constexpr = c_bufs.shape[0]
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    tiles = gl.cdiv(a_desc.shape[0], BLOCK_M) * gl.cdiv(b_desc.shape[1], BLOCK_N)
    steps = gl.cdiv(a_desc.shape[1], BLOCK_K)
    count = 0
    done = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
        for step in range(steps):
            slot = count % buffers
            mbarrier.wait(full.index(slot), count // buffers & 1)
            acc = warpgroup_mma(a_bufs.index(slot), b_bufs.index(slot), acc, is_async=True)
            acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
            mbarrier.arrive(empty.index(slot), count=1)
            count += 1
        c_slot = done % c_buffers
        mbarrier.wait(c_empty.index(c_slot), (done // c_buffers & 1) ^ 1)
        c_bufs.index(c_slot).store(acc.to(c_desc.dtype))
        # The store goes through the async proxy, in another warp: the fence belongs before the news.
        fence_async_shared()
        mbarrier.arrive(c_full.index(c_slot), count=1)
        done += 1


@gluon.jit
def store_tiles(a_desc, b_desc, c_desc, a_bufs, b_bufs, c_bufs, full, empty, c_full, c_empty):
    """Consumer of results: stores each, and gives its slot back as soon as TMA has read it."""
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    c_buffers: gl.constexpr = c_bufs.shape[0]
    tiles_n = gl.cdiv(c_desc.shape[1], BLOCK_N)
    tiles = gl.cdiv(c_desc.shape[0], BLOCK_M) * tiles_n
    done = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        c_slot = done % c_buffers
        mbarrier.wait(c_full.index(c_slot), done // c_buffers & 1)
        tma_store(c_desc, [tile // tiles_n * BLOCK_M, tile % tiles_n * BLOCK_N], c_bufs.index(c_slot))
        tma.store_wait(pendings=0)
        mbarrier.arrive(c_empty.index(c_slot), count=1)
        done += 1


@gluon.jit
def persistent_matmul_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A @ B, fp16, tiles dealt out to the programs in turn: one warp loads, four multiply, one stores."""
    a_bufs = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS] + a_desc.block_type.shape, a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [NUM_BUFFERS] + b_desc.block_type.shape, b_desc.layout)
    c_bufs = gl.allocate_shared_memory(c_desc.dtype, [2] + c_desc.block_type.shape, c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    c_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    c_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(NUM_BUFFERS):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    for c_slot in gl.static_range(2):
        mbarrier.init(c_full.index(c_slot), count=1)
        mbarrier.init(c_empty.index(c_slot), count=1)
    shared = (a_desc, b_desc, c_desc, a_bufs, b_bufs, c_bufs, full, empty, c_full, c_empty)
    gl.warp_specialize([(multiply_tiles, shared), (load_tiles, shared), (store_tiles, shared)], [1, 1], [24, 24])


# ---------------------------------------------------------------------------- two readers of one ring of rows


@gluon.jit
def load_rows(x_desc, sum_ptr, max_ptr, ring, full, empty):
    """Producer: tiles of a row block, one after the other."""
    BLOCK_M: gl.constexpr = x_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = x_desc.block_type.shape[1]
    buffers: gl.constexpr = ring.shape[0]
    row = gl.program_id(0) * BLOCK_M
    for tile in range(gl.cdiv(x_desc.shape[1], BLOCK_N)):
        slot = tile % buffers
        mbarrier.wait(empty.index(slot), (tile // buffers & 1) ^ 1)
        mbarrier.expect(full.index(slot), x_desc.block_type.nbytes)
        tma_load(x_desc, [row, tile * BLOCK_N], full.index(slot), ring.index(slot))


@gluon.jit
def sum_rows(x_desc, sum_ptr, max_ptr, ring, full, empty):
    """First reader: the sum of each row."""
    BLOCK_M: gl.constexpr = x_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = x_desc.block_type.shape[1]
    buffers: gl.constexpr = ring.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    total = gl.zeros([BLOCK_M], gl.float32, gl.SliceLayout(1, layout))
    for tile in range(gl.cdiv(x_desc.shape[1], BLOCK_N)):
        slot = tile % buffers
        mbarrier.wait(full.index(slot), tile // buffers & 1)
        x = ring.index(slot).load(layout)
        fence_async_shared()
        mbarrier.arrive(empty.index(slot), count=1)
        total += gl.sum(x, axis=1)
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    gl.store(sum_ptr + rows, total, mask=rows < x_desc.shape[0])


@gluon.jit
def max_rows(x_desc, sum_ptr, max_ptr, ring, full, empty):
    """Second reader: the largest magnitude of each row."""
    BLOCK_M: gl.constexpr = x_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = x_desc.block_type.shape[1]
    buffers: gl.constexpr = ring.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    largest = gl.zeros([BLOCK_M], gl.float32, gl.SliceLayout(1, layout))
    for tile in range(gl.cdiv(x_desc.shape[1], BLOCK_N)):
        slot = tile % buffers
        mbarrier.wait(full.index(slot), tile // buffers & 1)
        x = ring.index(slot).load(layout)
        fence_async_shared()
        mbarrier.arrive(empty.index(slot), count=1)
        largest = gl.maximum(largest, gl.max(gl.abs(x), axis=1))
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    gl.store(max_ptr + rows, largest, mask=rows < x_desc.shape[0])


@gluon.jit
def row_statistics_kernel(x_desc, sum_ptr, max_ptr, NUM_BUFFERS: gl.constexpr):
    """Sum and largest magnitude of every row; a slot is empty again when both readers have said so."""
    ring = gl.allocate_shared_memory(x_desc.dtype, [NUM_BUFFERS] + x_desc.block_type.shape, x_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(NUM_BUFFERS):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=2)
    shared = (x_desc, sum_ptr, max_ptr, ring, full, empty)
    gl.warp_specialize([(sum_rows, shared), (max_rows, shared), (load_rows, shared)], [4, 1], [64, 24])
