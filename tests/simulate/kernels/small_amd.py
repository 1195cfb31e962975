"""AMD operations one or two at a time, for tests of each."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import amd
from triton.experimental.gluon.language.amd import cdna3, cdna4

try:
    from triton.experimental.gluon.language.amd import cdna5
except ImportError:
    from triton.experimental.gluon.language.amd import gfx1250 as cdna5


@gluon.jit
def buffer_copy_kernel(x_ptr, out_ptr, n, START: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = cdna3.buffer_load(x_ptr, offsets + START, mask=offsets < n, other=7.0)
    cdna3.buffer_store(x, out_ptr, offsets)


@gluon.jit
def buffer_add_one_kernel(x_ptr, out_ptr, n, START: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = cdna3.buffer_load(x_ptr, offsets + START)
    cdna3.buffer_store(x + 1.0, out_ptr, offsets, mask=offsets < n)


@gluon.jit
def buffer_atomic_add_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = cdna3.buffer_load(x_ptr, offsets)
    before = cdna3.buffer_atomic_add(out_ptr, offsets % 8, x, mask=offsets < n)
    cdna3.buffer_store(before, x_ptr, offsets, mask=offsets < n)


@gluon.jit
def buffer_atomic_max_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    x = cdna3.buffer_load(x_ptr, offsets)
    cdna3.buffer_atomic_max(out_ptr, offsets % 8, x, mask=offsets < n)


@gluon.jit
def slice_kernel(x_ptr, out_ptr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 64], [1, 1], [1, 0])
    rows = gl.arange(0, 4, layout=gl.SliceLayout(1, layout))[:, None]
    cols = gl.arange(0, 128, layout=gl.SliceLayout(0, layout))[None, :]
    part = amd.slice(gl.load(x_ptr + rows * 128 + cols), [2, 64], [1, 64])
    rows = gl.arange(0, 2, layout=gl.SliceLayout(1, layout))[:, None]
    cols = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(out_ptr + rows * 64 + cols, part)


@gluon.jit
def upcast_kernel(x_ptr, scale_ptr, out_ptr):
    packed: gl.constexpr = gl.BlockedLayout([1, 16], [64, 1], [1, 1], [1, 0])
    whole: gl.constexpr = gl.BlockedLayout([1, 32], [64, 1], [1, 1], [1, 0])
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, packed))[:, None]
    x = gl.load(x_ptr + rows * 16 + gl.arange(0, 16, layout=gl.SliceLayout(0, packed))[None, :])
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, whole))[:, None]
    cols = gl.arange(0, 32, layout=gl.SliceLayout(0, whole))[None, :]
    scale = gl.load(scale_ptr + rows + cols * 0)
    gl.store(out_ptr + rows * 32 + cols, cdna4.scaled_upcast(x, scale, gl.float16, axis=1))


@gluon.jit
def downcast_kernel(x_ptr, scale_ptr, fp4_ptr, fp8_ptr):
    packed: gl.constexpr = gl.BlockedLayout([1, 16], [64, 1], [1, 1], [1, 0])
    whole: gl.constexpr = gl.BlockedLayout([1, 32], [64, 1], [1, 1], [1, 0])
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, whole))[:, None]
    cols = gl.arange(0, 32, layout=gl.SliceLayout(0, whole))[None, :]
    x = gl.load(x_ptr + rows * 32 + cols)
    scale = gl.load(scale_ptr + rows + gl.arange(0, 1, layout=gl.SliceLayout(0, whole))[None, :])
    gl.store(fp8_ptr + rows * 32 + cols, cdna4.scaled_downcast(x, scale, "e4m3", axis=1).to(gl.float32))
    fp4 = gl.convert_layout(cdna4.scaled_downcast(x, scale, "e2m1", axis=1), packed)
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, packed))[:, None]
    gl.store(fp4_ptr + rows * 16 + gl.arange(0, 16, layout=gl.SliceLayout(0, packed))[None, :], fp4)


@gluon.jit
def pipeline_kernel(x_ptr, out_ptr, n):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    offsets = gl.arange(0, 256, layout=layout)
    total = gl.zeros([256], gl.float32, layout)
    for k in range(n):
        with amd.warp_pipeline_stage("load", priority=1):
            x = gl.load(x_ptr + k * 256 + offsets)
        with amd.warp_pipeline_stage("add"):
            total += x
    gl.store(out_ptr + offsets, total)


# ------------------------------------------------------------------------------------- copies to shared memory


@gluon.jit
def to_shared_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, BUFFER: gl.constexpr, WAIT: gl.constexpr):
    """Two tiles by way of shared memory, each a group: WAIT groups may be on their way when the first is read."""
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    tiles = gl.allocate_shared_memory(gl.float32, [2, BLOCK], shared)
    for tile in gl.static_range(2):
        at = offsets + tile * BLOCK
        if BUFFER:
            cdna4.async_copy.buffer_load_to_shared(tiles.index(tile), x_ptr, at, mask=at < n, other=3.0)
        else:
            cdna4.async_copy.global_load_to_shared(tiles.index(tile), x_ptr + at, mask=at < n, other=3.0)
        cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(WAIT)
    gl.store(out_ptr + offsets, cdna4.async_copy.load_shared_relaxed(tiles.index(0), layout))
    cdna4.async_copy.wait_group(0)
    gl.store(out_ptr + BLOCK + offsets, tiles.index(1).load(layout))


@gluon.jit
def masked_twice_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, OTHER: gl.constexpr):
    """A tile copied whole and then, behind a mask, over itself: what is masked off."""
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK], shared)
    cdna4.async_copy.global_load_to_shared(tile, x_ptr + offsets)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    cdna4.async_copy.global_load_to_shared(tile, x_ptr + BLOCK + offsets, mask=offsets < n, other=OTHER)
    cdna4.async_copy.commit_group()
    cdna4.async_copy.wait_group(0)
    gl.store(out_ptr + offsets, tile.load(layout))


@gluon.jit
def from_shared_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, WAIT: gl.constexpr):
    """Through shared memory and asynchronously out again (gfx1250); the buffer is used again after a wait."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK], shared)
    tile.store(gl.load(x_ptr + offsets))
    cdna5.async_copy.shared_to_global(out_ptr + offsets, tile, mask=offsets < n)
    cdna5.async_copy.commit_group()
    cdna5.async_copy.wait_group(WAIT)
    tile.store(gl.load(x_ptr + BLOCK + offsets))
    cdna5.async_copy.shared_to_global(out_ptr + BLOCK + offsets, tile)
    cdna5.async_copy.commit_group()
    cdna5.async_copy.wait_group(0)


@gluon.jit
def barrier_kernel(x_ptr, out_ptr, BLOCK: gl.constexpr, COUNT: gl.constexpr, WAIT: gl.constexpr):
    """An mbarrier that the copies of every thread arrive on (gfx1250), and each thread itself as well."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK], shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    cdna5.mbarrier.init(bar, count=COUNT)
    cdna5.async_copy.global_to_shared(tile, x_ptr + offsets)
    cdna5.async_copy.mbarrier_arrive(bar)
    phase = cdna5.mbarrier.arrive(bar)
    if WAIT:
        cdna5.mbarrier.wait(bar, phase)
    gl.store(out_ptr + offsets, tile.load(layout))


# ---------------------------------------------------------------------------------------- tensor data mover


@gluon.jit
def tdm_copy_kernel(
    x_ptr, out_ptr, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, LOADS: gl.constexpr, STORES: gl.constexpr
):
    """Two tiles side by side; LOADS and STORES may be on their way when what they moved is used."""
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    x_desc = cdna5.tdm.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    out_desc = cdna5.tdm.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    tiles = gl.allocate_shared_memory(gl.float16, [2, BLOCK_M, BLOCK_N], shared)
    row = gl.program_id(0) * BLOCK_M
    cdna5.tdm.async_load(x_desc, [row, 0], tiles.index(0))
    cdna5.tdm.async_load(x_desc, [row, BLOCK_N], tiles.index(1))
    for tile in gl.static_range(2):
        cdna5.tdm.async_wait(LOADS - tile if LOADS > tile else 0)
        doubled = tiles.index(tile).load(layout) * 2
        tiles.index(tile).store(doubled)
    cdna5.tdm.async_store(out_desc, [row, 0], tiles.index(0))
    cdna5.tdm.async_store(out_desc, [row, BLOCK_N], tiles.index(1))
    cdna5.tdm.async_wait(STORES)
    tiles.index(0).store(gl.zeros([BLOCK_M, BLOCK_N], gl.float16, layout))
    cdna5.tdm.async_wait(0)


@gluon.jit
def tdm_barrier_kernel(x_ptr, out_ptr, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, WAIT: gl.constexpr):
    """A load that says to an mbarrier, once a warp, that it is over."""
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    desc = cdna5.tdm.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    tile = gl.allocate_shared_memory(gl.float16, [BLOCK_M, BLOCK_N], shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], cdna5.mbarrier.MBarrierLayout())
    cdna5.mbarrier.init(bar, count=gl.num_warps())
    cdna5.tdm.async_load(desc, [gl.program_id(0) * BLOCK_M, 0], tile, mbarrier=bar)
    if WAIT:
        cdna5.mbarrier.wait(bar, 0)
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, layout))
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    gl.store(out_ptr + rows[:, None] * N + cols[None, :], tile.load(layout), mask=mask)


@gluon.jit
def tdm_rows_kernel(x_ptr, out_ptr, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, WAIT: gl.constexpr):
    """Rows of x, last one first, from the second block of columns; into out from the first row on."""
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    layout: gl.constexpr = gl.BlockedLayout([8, 1], [1, 32], [1, gl.num_warps()], [1, 0])
    x_desc = cdna5.tdm.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    out_desc = cdna5.tdm.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    tile = gl.allocate_shared_memory(gl.float16, [BLOCK_M, BLOCK_N], shared)
    into = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    rows = M - 1 - into
    if hasattr(cdna5.tdm, "update_tensor_descriptor"):
        x_desc = cdna5.tdm.update_tensor_descriptor(x_desc, add_offsets=[0, BLOCK_N], clamp_bounds=True)
        out_desc = cdna5.tdm.update_tensor_descriptor(out_desc, add_offsets=[0, BLOCK_N], clamp_bounds=True)
        cdna5.tdm.async_gather(x_desc, rows, tile)
        if WAIT:
            cdna5.tdm.async_wait(0)
        cdna5.tdm.async_scatter(out_desc, into, tile)
    else:
        cdna5.tdm.async_gather(x_desc, rows, BLOCK_N, tile)
        if WAIT:
            cdna5.tdm.async_wait(0)
        cdna5.tdm.async_scatter(out_desc, into, BLOCK_N, tile)
    cdna5.tdm.async_wait(0)


@gluon.jit
def tdm_moved_kernel(x_ptr, out_ptr, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BOUND: gl.constexpr):
    """Two loads at once, from descriptors that were moved, given a size of their own, and switched off (Triton 3.9)."""
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    desc = cdna5.tdm.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], shared)
    sizes: gl.constexpr = [BLOCK_M, BLOCK_N]
    out_desc = cdna5.tdm.make_tensor_descriptor(out_ptr, [2 * BLOCK_M, BLOCK_N], [BLOCK_N, 1], sizes, shared)
    tiles = gl.allocate_shared_memory(gl.float16, [2, BLOCK_M, BLOCK_N], shared)
    tiles.index(1).store(gl.full([BLOCK_M, BLOCK_N], 5, gl.float16, layout))
    first = cdna5.tdm.update_tensor_descriptor(desc, add_offsets=[1, 2])
    first = cdna5.tdm.update_tensor_descriptor(first, set_bounds=[BOUND, BOUND])
    off = cdna5.tdm.update_tensor_descriptor(desc, pred=M < 0)
    cdna5.tdm.async_load_fused([(first, tiles.index(0), 0x3), (off, tiles.index(1), 0xC)])
    cdna5.tdm.prefetch(desc, [0, 0])
    cdna5.tdm.async_wait(0)
    cdna5.tdm.async_store(out_desc, [0, 0], tiles.index(0))
    cdna5.tdm.async_store(out_desc, [BLOCK_M, 0], tiles.index(1))
    cdna5.tdm.async_wait(0)


@gluon.jit
def repacked_kernel(x_ptr, out_ptr):
    """Packed fp4 that shared memory has along rows, as an MFMA operand takes it, along K."""
    mma_layout: gl.constexpr = amd.AMDMFMALayout(4, [32, 32, 64], True, [1, 4])
    operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 16)
    layout: gl.constexpr = gl.BlockedLayout([1, 16], [8, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0, 1])
    tile = gl.allocate_shared_memory(gl.uint8, [16, 128], shared)
    rows = gl.arange(0, 16, layout=gl.SliceLayout(1, layout))[:, None]
    tile.store(gl.load(x_ptr + rows * 128 + gl.arange(0, 128, layout=gl.SliceLayout(0, layout))[None, :]))
    result = cdna4.load_shared_fp4_repacked(tile, operand)
    rows = gl.arange(0, 32, layout=gl.SliceLayout(1, operand))[:, None]
    gl.store(out_ptr + rows * 64 + gl.arange(0, 64, layout=gl.SliceLayout(0, operand))[None, :], result)
