"""Shared memory, mbarriers and partitions, one or two operations at a time, for tests of each."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

try:
    from triton.experimental.gluon.language.nvidia.ampere import async_copy
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_load
except ImportError:
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_copy_global_to_shared as async_load


@gluon.constexpr_function
def plain(rank):
    """Shared layout without swizzle: elements one after the other, row by row."""
    return gl.SwizzledSharedLayout(1, 1, 1, list(range(rank))[::-1])


if hasattr(gl.shared_memory_descriptor, "reinterpret"):

    @gluon.jit
    def reinterpreted(smem, shape: gl.constexpr, layout: gl.constexpr):
        """The same bytes as integers in another shape and layout."""
        return smem.reinterpret(gl.int32, shape, layout)

else:

    @gluon.jit
    def reinterpreted(smem, shape: gl.constexpr, layout: gl.constexpr):
        """The same bytes as integers in another shape and layout."""
        return smem._reinterpret(gl.int32, shape, layout)


@gluon.jit
def bits_kernel(x_ptr, out_ptr):
    """Floats stored, read as the integers that their bytes are."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offs = gl.arange(0, 128, layout=layout)
    smem = gl.allocate_shared_memory(gl.float32, [128], plain(1), gl.load(x_ptr + offs).to(gl.float32, bitcast=True))
    gl.store(out_ptr + offs, reinterpreted(smem, [128], plain(1)).load(layout))


@gluon.jit
def swizzled_reuse_kernel(x_ptr, out_ptr, WRITE: gl.constexpr):
    """The same bytes as a swizzled tile and as a plain one: what is read must be written there first."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    swizzle: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 4, [1, 0])
    rows = gl.arange(0, 32, gl.SliceLayout(1, layout))
    offs = rows[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
    smem = gl.allocate_shared_memory(gl.int32, [32, 32], swizzle, gl.load(x_ptr + offs))
    x = smem.load(layout)
    again = reinterpreted(smem, [32, 32], plain(2))
    if WRITE:
        again.store(x + 1)
    gl.store(out_ptr + offs, again.load(layout))


@gluon.jit
def reshaped_kernel(x_ptr, out_ptr):
    """A row of a transposed tile's flat view."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offs = gl.arange(0, 128, layout=layout)
    smem = gl.allocate_shared_memory(gl.int32, [128], plain(1), gl.load(x_ptr + offs))
    tile = smem.reshape([4, 32]).permute([1, 0])
    low: gl.constexpr = gl.BlockedLayout([1, 1], [8, 4], [4, 1], [1, 0])
    rows = gl.arange(0, 16, gl.SliceLayout(1, low))
    cols = gl.arange(0, 4, gl.SliceLayout(0, low))
    gl.store(out_ptr + rows[:, None] * 4 + cols[None, :], tile.slice(16, 16).load(low))


@gluon.jit
def scattered_kernel(x_ptr, index_ptr, out_ptr, ALL: gl.constexpr):
    """Values put at places, and taken from them again."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offs = gl.arange(0, 128, layout=layout)
    index = gl.load(index_ptr + offs)
    smem = gl.allocate_shared_memory(gl.int32, [128], plain(1))
    smem.scatter(gl.load(x_ptr + offs), index, axis=0)
    if ALL:
        gl.store(out_ptr + offs, smem.load(layout))
    else:
        gl.store(out_ptr + offs, smem.gather(index, axis=0))


@gluon.jit
def copies_arrive_kernel(x_ptr, out_ptr, WAIT: gl.constexpr):
    """A copy waited for on an mbarrier."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offs = gl.arange(0, 128, layout=layout)
    smem = gl.allocate_shared_memory(gl.int32, [128], plain(1))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    async_load(smem, x_ptr + offs)
    async_copy.mbarrier_arrive(bar)
    mbarrier.arrive(bar, count=1)
    if WAIT:
        mbarrier.wait(bar, 0)
    gl.store(out_ptr + offs, smem.load(layout))
    mbarrier.invalidate(bar)


@gluon.jit
def barrier_kernel(out_ptr, INIT: gl.constexpr, ARRIVALS: gl.constexpr, PHASE: gl.constexpr):
    """An mbarrier for one arrival, given several, and waited for."""
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    if INIT:
        mbarrier.init(bar, count=1)
    mbarrier.arrive(bar, count=ARRIVALS)
    mbarrier.wait(bar, PHASE)
    gl.store(out_ptr, 1)


@gluon.jit
def wait_by_program_kernel(out_ptr):
    """Programs wait for different phases: odd ones for one that never ends."""
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.wait(bar, 1 - gl.program_id(0) % 2)
    gl.store(out_ptr + gl.program_id(0), 1)


@gluon.jit
def consume(x_ptr, out_ptr, ring, full, empty, N: gl.constexpr, GIVE: gl.constexpr):
    """Adds up what comes through the ring."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    total = gl.zeros([128], gl.int32, layout)
    for step in range(N):
        mbarrier.wait(full.index(step % 2), step // 2 & 1)
        total += ring.index(step % 2).load(layout)
        if GIVE:
            mbarrier.arrive(empty.index(step % 2), count=1)
    return (total,)


@gluon.jit
def produce(x_ptr, out_ptr, ring, full, empty, N: gl.constexpr, GIVE: gl.constexpr):
    """Puts blocks into the ring."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [1], [0])
    offs = gl.arange(0, 128, layout=layout)
    for step in range(N):
        if GIVE:
            mbarrier.wait(empty.index(step % 2), (step // 2 & 1) ^ 1)
        ring.index(step % 2).store(gl.load(x_ptr + step * 128 + offs))
        mbarrier.arrive(full.index(step % 2), count=1)


@gluon.jit
def ring_kernel(x_ptr, out_ptr, N: gl.constexpr, GIVE: gl.constexpr):
    """A producer and a consumer, who tells (or not) which slots it has read."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    ring = gl.allocate_shared_memory(gl.int32, [2, 128], plain(1))
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(2):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    args = (x_ptr, out_ptr, ring, full, empty, N, GIVE)
    (total,) = gl.warp_specialize([(consume, args), (produce, args)], [1], [24])
    gl.store(out_ptr + gl.arange(0, 128, layout=layout), total)


@gluon.jit
def counted_kernel(x_ptr, index_ptr, out_ptr):
    """Values added up at places: what each found there, and then the sums."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offs = gl.arange(0, 128, layout=layout)
    smem = gl.allocate_shared_memory(gl.int32, [128], plain(1), gl.zeros([128], gl.int32, layout))
    found = smem.atomic_scatter_add(gl.load(x_ptr + offs), gl.load(index_ptr + offs), 0, mask=offs < 100)
    gl.store(x_ptr + offs, found, mask=offs < 100)
    gl.store(out_ptr + offs, smem.load(layout))


@gluon.jit
def slot_before_kernel(out_ptr, FIRST: gl.constexpr):
    """Each step gives back the slot of the step before: the first one has none, unless it counts from 1."""
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(2):
        mbarrier.init(bars.index(slot), count=1)
    for step in range(4):
        before = bars.index((step - 1) % 2)
        mbarrier.arrive(before, pred=step >= FIRST)
        mbarrier.wait(before, (step - 1) // 2 & 1, pred=step >= FIRST)
    gl.store(out_ptr, 1)
