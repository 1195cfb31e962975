"""Tensor descriptors and mbarriers on Hopper (sm90): TMA loads and stores, rings with phases, wgmma on what arrives.

An mbarrier's phase flips when its arrivals and its expected bytes are all there; the wait for use number i of a slot is
for parity i % 2. TMA works through the async proxy: what generic code touched needs a fence before TMA touches it.
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

# Triton 3.8 renamed the copies; later ones still have the old names, which raise.
try:
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_load as tma_load
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_store as tma_store
except ImportError:
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_copy_global_to_shared as tma_load
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_copy_shared_to_global as tma_store


@gluon.jit
def scale_kernel(x_desc, out_desc, factor, NUM_BUFFERS: gl.constexpr):
    """out = x * factor: a block of rows a program, tile by tile along the columns, loads ahead and stores behind."""
    BLOCK_M: gl.constexpr = x_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = x_desc.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    in_bufs = gl.allocate_shared_memory(x_desc.dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_N], x_desc.layout)
    out_bufs = gl.allocate_shared_memory(out_desc.dtype, [2, BLOCK_M, BLOCK_N], out_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(bars.index(i), count=1)

    row = gl.program_id(0) * BLOCK_M
    tiles = gl.cdiv(x_desc.shape[1], BLOCK_N)
    for tile in gl.static_range(NUM_BUFFERS - 1):
        mbarrier.expect(bars.index(tile), x_desc.block_type.nbytes, pred=tile < tiles)
        tma_load(x_desc, [row, tile * BLOCK_N], bars.index(tile), in_bufs.index(tile), pred=tile < tiles)
    for tile in range(tiles):
        mbarrier.wait(bars.index(tile % NUM_BUFFERS), tile // NUM_BUFFERS & 1)
        x = in_bufs.index(tile % NUM_BUFFERS).load(layout)
        # Two stores take turns: the one before the last has read its buffer.
        tma.store_wait(pendings=1)
        out_bufs.index(tile % 2).store(x * factor)
        fence_async_shared()
        tma_store(out_desc, [row, tile * BLOCK_N], out_bufs.index(tile % 2))
        ahead = tile + NUM_BUFFERS - 1
        free = ahead % NUM_BUFFERS
        mbarrier.expect(bars.index(free), x_desc.block_type.nbytes, pred=ahead < tiles)
        tma_load(x_desc, [row, ahead * BLOCK_N], bars.index(free), in_bufs.index(free), pred=ahead < tiles)
    tma.store_wait(pendings=0)
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.invalidate(bars.index(i))


@gluon.jit
def transpose_kernel(x_desc, out_desc):
    """out = x^T, one square tile a program: TMA brings it, registers turn it, TMA takes it away."""
    BLOCK: gl.constexpr = x_desc.block_type.shape[0]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    tile = gl.allocate_shared_memory(x_desc.dtype, [BLOCK, BLOCK], x_desc.layout)
    turned = gl.allocate_shared_memory(out_desc.dtype, [BLOCK, BLOCK], out_desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)

    first_m = gl.program_id(0) * BLOCK
    first_n = gl.program_id(1) * BLOCK
    mbarrier.expect(bar, x_desc.block_type.nbytes)
    tma_load(x_desc, [first_m, first_n], bar, tile)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    turned.store(tile.permute([1, 0]).load(layout))
    fence_async_shared()
    tma_store(out_desc, [first_n, first_m], turned)
    tma.store_wait(pendings=0)


@gluon.jit
def matmul_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A @ B, fp16: both operands stream in under one mbarrier a slot; wgmma runs one step behind its wait."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    dtype: gl.constexpr = a_desc.dtype
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])
    a_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_desc.layout)
    b_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(bars.index(i), count=1)

    off_m = gl.program_id(0) * BLOCK_M
    off_n = gl.program_id(1) * BLOCK_N
    steps = gl.cdiv(a_desc.shape[1], BLOCK_K)
    tile_bytes: gl.constexpr = a_desc.block_type.nbytes + b_desc.block_type.nbytes
    for step in gl.static_range(NUM_BUFFERS - 1):
        mbarrier.expect(bars.index(step), tile_bytes, pred=step < steps)
        tma_load(a_desc, [off_m, step * BLOCK_K], bars.index(step), a_bufs.index(step), pred=step < steps)
        tma_load(b_desc, [step * BLOCK_K, off_n], bars.index(step), b_bufs.index(step), pred=step < steps)

    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(steps):
        slot = step % NUM_BUFFERS
        mbarrier.wait(bars.index(slot), (step // NUM_BUFFERS) & 1)
        acc = warpgroup_mma(a_bufs.index(slot), b_bufs.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
        ahead = step + NUM_BUFFERS - 1
        free = ahead % NUM_BUFFERS
        mbarrier.expect(bars.index(free), tile_bytes, pred=ahead < steps)
        tma_load(a_desc, [off_m, ahead * BLOCK_K], bars.index(free), a_bufs.index(free), pred=ahead < steps)
        tma_load(b_desc, [ahead * BLOCK_K, off_n], bars.index(free), b_bufs.index(free), pred=ahead < steps)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.invalidate(bars.index(i))

    c_buf = gl.allocate_shared_memory(dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    c_buf.store(acc.to(dtype))
    fence_async_shared()
    tma_store(c_desc, [off_m, off_n], c_buf)
    tma.store_wait(pendings=0)


@gluon.jit
def add_rows_kernel(x_ptr, y_ptr, out_ptr, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """out = x + y through descriptors made on the device; the sum takes the place of x in shared memory."""
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, BLOCK_N], gl.float32)
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    x_desc = tma.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    y_desc = tma.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    out_desc = tma.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    x_buf = gl.allocate_shared_memory(gl.float32, [BLOCK_M, BLOCK_N], shared)
    y_buf = gl.allocate_shared_memory(gl.float32, [BLOCK_M, BLOCK_N], shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)

    row = gl.program_id(0) * BLOCK_M
    phase = 0
    for tile in range(gl.cdiv(N, BLOCK_N)):
        # The last store has read x_buf, and the loads of the last tile are over.
        tma.store_wait(pendings=0)
        mbarrier.expect(bar, x_desc.block_type.nbytes + y_desc.block_type.nbytes)
        tma_load(x_desc, [row, tile * BLOCK_N], bar, x_buf)
        tma_load(y_desc, [row, tile * BLOCK_N], bar, y_buf)
        mbarrier.wait(bar, phase)
        phase ^= 1
        x_buf.store(x_buf.load(layout) + y_buf.load(layout))
        fence_async_shared()
        tma_store(out_desc, [row, tile * BLOCK_N], x_buf)
    tma.store_wait(pendings=0)
    mbarrier.invalidate(bar)


@gluon.jit
def split_k_kernel(x_desc, out_desc, PARTS: gl.constexpr):
    """out[rows] += the tiles of x that this program sums, by TMA's atomic add: parts of one sum meet in memory."""
    BLOCK_M: gl.constexpr = x_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = x_desc.block_type.shape[1]
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    bufs = gl.allocate_shared_memory(x_desc.dtype, [PARTS, BLOCK_M, BLOCK_N], x_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [PARTS, 1], mbarrier.MBarrierLayout())
    row = gl.program_id(0) * BLOCK_M
    first = gl.program_id(1) * PARTS
    for part in gl.static_range(PARTS):
        mbarrier.init(bars.index(part), count=1)
        mbarrier.expect(bars.index(part), x_desc.block_type.nbytes)
        tma_load(x_desc, [row, (first + part) * BLOCK_N], bars.index(part), bufs.index(part))
    total = gl.zeros([BLOCK_M, BLOCK_N], x_desc.dtype, layout)
    for part in gl.static_range(PARTS):
        mbarrier.wait(bars.index(part), 0)
        total += bufs.index(part).load(layout)
    bufs.index(0).store(total)
    fence_async_shared()
    tma.async_atomic_add(out_desc, [row, 0], bufs.index(0))
    tma.store_wait(pendings=0)
    for part in gl.static_range(PARTS):
        mbarrier.invalidate(bars.index(part))
