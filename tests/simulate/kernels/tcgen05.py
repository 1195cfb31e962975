"""Blackwell's tcgen05 (sm100): TMA brings operands, the MMA adds into tensor memory, a commit tells an mbarrier.

tcgen05_mma is asynchronous: operands stay taken and the accumulator is not to be read until the mbarrier of a commit
after it has flipped. MMAs of one program are in order among themselves.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tensor_memory_descriptor_type,
    tma,
)

try:
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_load as tma_load
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_store as tma_store
except ImportError:
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_copy_global_to_shared as tma_load
    from triton.experimental.gluon.language.nvidia.hopper.tma import async_copy_shared_to_global as tma_store

# Triton 3.9 has a method of the descriptor's type in its place.
try:
    from triton.experimental.gluon.language.nvidia.blackwell import get_tmem_reg_layout
except ImportError:
    get_tmem_reg_layout = None


@gluon.constexpr_function
def register_layout(shape, layout, num_warps):
    """The layout in which a block of warps loads and stores a tile of fp32 in tensor memory."""
    if get_tmem_reg_layout is not None:
        return get_tmem_reg_layout(gl.float32, shape, layout, num_warps)
    return tensor_memory_descriptor_type(gl.float32, shape, layout, shape).get_reg_layout(num_warps)


@gluon.jit
def matmul_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A @ B, fp16: loads run ahead in a ring; a slot is refilled when the MMA that read it has committed."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    a_bufs = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_desc.layout)
    loaded = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    multiplied = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.init(loaded.index(i), count=1)
    mbarrier.init(multiplied, count=1)
    tmem_layout: gl.constexpr = TensorMemoryLayout([BLOCK_M, BLOCK_N], col_stride=1)
    acc_tmem = allocate_tensor_memory(gl.float32, [BLOCK_M, BLOCK_N], tmem_layout)

    off_m = gl.program_id(0) * BLOCK_M
    off_n = gl.program_id(1) * BLOCK_N
    steps = gl.cdiv(a_desc.shape[1], BLOCK_K)
    tile_bytes: gl.constexpr = a_desc.block_type.nbytes + b_desc.block_type.nbytes
    for step in gl.static_range(NUM_BUFFERS - 1):
        mbarrier.expect(loaded.index(step), tile_bytes, pred=step < steps)
        tma_load(a_desc, [off_m, step * BLOCK_K], loaded.index(step), a_bufs.index(step), pred=step < steps)
        tma_load(b_desc, [step * BLOCK_K, off_n], loaded.index(step), b_bufs.index(step), pred=step < steps)
    for step in range(steps):
        slot = step % NUM_BUFFERS
        mbarrier.wait(loaded.index(slot), step // NUM_BUFFERS & 1)
        tcgen05_mma(a_bufs.index(slot), b_bufs.index(slot), acc_tmem, use_acc=step > 0)
        # The MMA before this one: when it is over, its slot takes the next tiles.
        mbarrier.wait(multiplied, (step - 1) & 1, pred=step > 0)
        tcgen05_commit(multiplied)
        ahead = step + NUM_BUFFERS - 1
        free = ahead % NUM_BUFFERS
        mbarrier.expect(loaded.index(free), tile_bytes, pred=ahead < steps)
        tma_load(a_desc, [off_m, ahead * BLOCK_K], loaded.index(free), a_bufs.index(free), pred=ahead < steps)
        tma_load(b_desc, [ahead * BLOCK_K, off_n], loaded.index(free), b_bufs.index(free), pred=ahead < steps)
    mbarrier.wait(multiplied, (steps - 1) & 1)
    for i in gl.static_range(NUM_BUFFERS):
        mbarrier.invalidate(loaded.index(i))
    mbarrier.invalidate(multiplied)

    reg_layout: gl.constexpr = register_layout([BLOCK_M, BLOCK_N], tmem_layout, gl.num_warps())
    acc = acc_tmem.load(reg_layout)
    c_buf = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    c_buf.store(acc.to(c_desc.dtype))
    fence_async_shared()
    tma_store(c_desc, [off_m, off_n], c_buf)
    tma.store_wait(pendings=0)


@gluon.jit
def linear_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, N, K, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr
):
    """C = A @ B + bias, without TMA: tiles come through registers, the bias is put into tensor memory beforehand."""
    a_layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [gl.num_warps(), 1], [1, 0])
    b_layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    a_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, BLOCK_K], gl.float16)
    b_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_K, BLOCK_N], gl.float16)
    tmem_layout: gl.constexpr = TensorMemoryLayout([BLOCK_M, BLOCK_N], col_stride=1)
    reg_layout: gl.constexpr = register_layout([BLOCK_M, BLOCK_N], tmem_layout, gl.num_warps())
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    a_cols = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    b_rows = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    cols = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))

    a_buf = gl.allocate_shared_memory(gl.float16, [BLOCK_M, BLOCK_K], a_shared)
    b_buf = gl.allocate_shared_memory(gl.float16, [BLOCK_K, BLOCK_N], b_shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    c_cols = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, reg_layout))
    bias = gl.load(bias_ptr + c_cols)[None, :] + gl.zeros([BLOCK_M, BLOCK_N], gl.float32, reg_layout)
    acc_tmem = allocate_tensor_memory(gl.float32, [BLOCK_M, BLOCK_N], tmem_layout)
    acc_tmem.store(bias)
    phase = 0
    for k in range(K // BLOCK_K):
        a_buf.store(gl.load(a_ptr + rows[:, None] * K + k * BLOCK_K + a_cols[None, :]))
        b_buf.store(gl.load(b_ptr + (k * BLOCK_K + b_rows[:, None]) * N + cols[None, :]))
        fence_async_shared()
        tcgen05_mma(a_buf, b_buf, acc_tmem, use_acc=True)
        tcgen05_commit(bar)
        mbarrier.wait(bar, phase)
        phase ^= 1
    mbarrier.invalidate(bar)
    c_rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, reg_layout))
    gl.store(c_ptr + c_rows[:, None] * N + c_cols[None, :], acc_tmem.load(reg_layout))


# ------------------------------------------------------------------------------------------- warp specialized


@gluon.jit
def load_tiles(a_desc, b_desc, c_desc, a_bufs, b_bufs, acc_bufs, full, empty, acc_full, acc_empty):
    """Producer of operands, for every tile of this program."""
    BLOCK_M: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    BLOCK_N: gl.constexpr = b_desc.block_type.shape[1]
    buffers: gl.constexpr = a_bufs.shape[0]
    tiles_n = gl.cdiv(b_desc.shape[1], BLOCK_N)
    tiles = gl.cdiv(a_desc.shape[0], BLOCK_M) * tiles_n
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        for step in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
            slot = count % buffers
            mbarrier.wait(empty.index(slot), (count // buffers & 1) ^ 1)
            mbarrier.expect(full.index(slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
            tma_load(a_desc, [tile // tiles_n * BLOCK_M, step * BLOCK_K], full.index(slot), a_bufs.index(slot))
            tma_load(b_desc, [step * BLOCK_K, tile % tiles_n * BLOCK_N], full.index(slot), b_bufs.index(slot))
            count += 1


@gluon.jit
def multiply_tiles(a_desc, b_desc, c_desc, a_bufs, b_bufs, acc_bufs, full, empty, acc_full, acc_empty):
    """One warp that issues MMAs: commits give slots back to the producer, and whole sums to the epilogue."""
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    buffers: gl.constexpr = a_bufs.shape[0]
    tiles_n = gl.cdiv(b_desc.shape[1], b_desc.block_type.shape[1])
    tiles = gl.cdiv(a_desc.shape[0], a_desc.block_type.shape[0]) * tiles_n
    count = 0
    done = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(acc_empty.index(done % 2), (done // 2 & 1) ^ 1)
        acc = acc_bufs.index(done % 2)
        for step in range(gl.cdiv(a_desc.shape[1], BLOCK_K)):
            slot = count % buffers
            mbarrier.wait(full.index(slot), count // buffers & 1)
            tcgen05_mma(a_bufs.index(slot), b_bufs.index(slot), acc, use_acc=step > 0)
            tcgen05_commit(empty.index(slot))
            count += 1
        tcgen05_commit(acc_full.index(done % 2))
        done += 1


@gluon.jit
def store_tiles(a_desc, b_desc, c_desc, a_bufs, b_bufs, acc_bufs, full, empty, acc_full, acc_empty):
    """Epilogue: takes a sum out of tensor memory, frees it for the MMAs at once, and stores it by TMA."""
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    tmem_layout: gl.constexpr = acc_bufs.layout
    reg_layout: gl.constexpr = register_layout([BLOCK_M, BLOCK_N], tmem_layout, gl.num_warps())
    tiles_n = gl.cdiv(c_desc.shape[1], BLOCK_N)
    tiles = gl.cdiv(c_desc.shape[0], BLOCK_M) * tiles_n
    c_buf = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    done = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(acc_full.index(done % 2), done // 2 & 1)
        acc = acc_bufs.index(done % 2).load(reg_layout)
        mbarrier.arrive(acc_empty.index(done % 2), count=1)
        tma.store_wait(pendings=0)
        c_buf.store(acc.to(c_desc.dtype))
        fence_async_shared()
        tma_store(c_desc, [tile // tiles_n * BLOCK_M, tile % tiles_n * BLOCK_N], c_buf)
        done += 1
    tma.store_wait(pendings=0)


@gluon.jit
def persistent_matmul_kernel(a_desc, b_desc, c_desc, NUM_BUFFERS: gl.constexpr):
    """C = A @ B, fp16, tiles dealt out in turn: two accumulators, so that the next tile begins under the epilogue."""
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    a_bufs = gl.allocate_shared_memory(a_desc.dtype, [NUM_BUFFERS] + a_desc.block_type.shape, a_desc.layout)
    b_bufs = gl.allocate_shared_memory(b_desc.dtype, [NUM_BUFFERS] + b_desc.block_type.shape, b_desc.layout)
    tmem_layout: gl.constexpr = TensorMemoryLayout([BLOCK_M, BLOCK_N], col_stride=1)
    acc_bufs = allocate_tensor_memory(gl.float32, [2, BLOCK_M, BLOCK_N], tmem_layout)
    full = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [NUM_BUFFERS, 1], mbarrier.MBarrierLayout())
    acc_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    acc_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(NUM_BUFFERS):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    for which in gl.static_range(2):
        mbarrier.init(acc_full.index(which), count=1)
        mbarrier.init(acc_empty.index(which), count=1)
    shared = (a_desc, b_desc, c_desc, a_bufs, b_bufs, acc_bufs, full, empty, acc_full, acc_empty)
    gl.warp_specialize([(store_tiles, shared), (load_tiles, shared), (multiply_tiles, shared)], [1, 1], [24, 24])
