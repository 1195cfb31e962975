"""Tensor memory and tcgen05 operations a few at a time, for tests of each."""

import triton.experimental.gluon.language.nvidia.blackwell as blackwell
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
    tcgen05_mma_scaled,
    tensor_memory_descriptor_type,
)

# Triton 3.9 has a method of the descriptor's type in its place.
get_tmem_reg_layout = getattr(blackwell, "get_tmem_reg_layout", None)


@gluon.constexpr_function
def register_layout(dtype, shape, layout, num_warps):
    """The layout in which a block of warps loads and stores a tile of tensor memory."""
    if get_tmem_reg_layout is not None:
        return get_tmem_reg_layout(dtype, shape, layout, num_warps)
    return tensor_memory_descriptor_type(dtype, shape, layout, shape).get_reg_layout(num_warps)


@gluon.jit
def places(rows: gl.constexpr, cols: gl.constexpr, layout: gl.constexpr):
    """Offsets of a row-major tile."""
    down = gl.arange(0, rows, layout=gl.SliceLayout(1, layout))[:, None]
    return down * cols + gl.arange(0, cols, layout=gl.SliceLayout(0, layout))[None, :]


@gluon.jit
def views_kernel(x_ptr, out_ptr, STORE: gl.constexpr, PRED: gl.constexpr):
    """A tile into the second of two buffers, its right half out again; integers of its bits; an initial value."""
    whole: gl.constexpr = TensorMemoryLayout([64, 64], col_stride=1)
    half: gl.constexpr = TensorMemoryLayout([64, 32], col_stride=1)
    layout: gl.constexpr = register_layout(gl.float32, [64, 64], whole, gl.num_warps())
    half_layout: gl.constexpr = register_layout(gl.float32, [64, 32], half, gl.num_warps())
    x = gl.load(x_ptr + places(64, 64, layout))
    tiles = allocate_tensor_memory(gl.float32, [2, 64, 64], whole)
    if STORE:
        tiles.index(1).store(x, pred=PRED)
    gl.store(out_ptr + places(64, 32, half_layout), tiles.index(1).slice(32, 32).load(half_layout))
    held = allocate_tensor_memory(gl.float32, [64, 64], whole, x)
    gl.store(out_ptr + 2048 + places(64, 64, layout), held.load(layout) + 1.0)


@gluon.jit
def mma_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    use_acc,
    pred,
    K,
    TRANSPOSED: gl.constexpr,
    FENCE: gl.constexpr,
    COMMIT: gl.constexpr,
    WAIT: gl.constexpr,
):
    """C + A @ B by steps along K: operands come through registers, the sum starts as C in tensor memory."""
    a_layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [gl.num_warps(), 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 32], gl.float16)
    b_shape: gl.constexpr = [64, 32] if TRANSPOSED else [32, 64]
    b_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for(b_shape, gl.float16)
    tmem: gl.constexpr = TensorMemoryLayout([64, 64], col_stride=1)
    layout: gl.constexpr = register_layout(gl.float32, [64, 64], tmem, gl.num_warps())
    a_buf = gl.allocate_shared_memory(gl.float16, [64, 32], shared)
    b_buf = gl.allocate_shared_memory(gl.float16, b_shape, b_shared)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    acc = allocate_tensor_memory(gl.float32, [64, 64], tmem)
    acc.store(gl.load(c_ptr + places(64, 64, layout)))
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, a_layout))[:, None]
    cols = gl.arange(0, 32, layout=gl.SliceLayout(0, a_layout))[None, :]
    phase = 0
    for k in range(K // 32):
        a_buf.store(gl.load(a_ptr + rows * K + k * 32 + cols))
        if TRANSPOSED:
            b_buf.store(gl.load(b_ptr + rows * K + k * 32 + cols))
            b_tile = b_buf.permute((1, 0))
        else:
            down = gl.arange(0, 32, layout=gl.SliceLayout(1, a_layout))[:, None]
            along = gl.arange(0, 64, layout=gl.SliceLayout(0, a_layout))[None, :]
            b_buf.store(gl.load(b_ptr + (k * 32 + down) * 64 + along))
            b_tile = b_buf
        if FENCE:
            fence_async_shared()
        if COMMIT:
            tcgen05_mma(a_buf, b_tile, acc, use_acc=(use_acc != 0) | (k > 0), pred=pred != 0)
            tcgen05_commit(bar)
        else:
            tcgen05_mma(a_buf, b_tile, acc, use_acc=(use_acc != 0) | (k > 0), mbarriers=[bar])
        if WAIT:
            mbarrier.wait(bar, phase)
        phase ^= 1
    gl.store(c_ptr + places(64, 64, layout), acc.load(layout))


@gluon.jit
def from_tensor_memory_kernel(a_ptr, b_ptr, c_ptr, COPY: gl.constexpr):
    """C = A @ B with A in tensor memory: stored there, or copied there from shared memory in the order of the MMA."""
    a_tmem: gl.constexpr = TensorMemoryLayout([128, 64], col_stride=1)
    tmem: gl.constexpr = TensorMemoryLayout([128, 64], col_stride=1)
    a_layout: gl.constexpr = register_layout(gl.float16, [128, 64], a_tmem, gl.num_warps())
    layout: gl.constexpr = register_layout(gl.float32, [128, 64], tmem, gl.num_warps())
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    b_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    b_buf = gl.allocate_shared_memory(gl.float16, [64, 64], b_shared, gl.load(b_ptr + places(64, 64, blocked)))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    a_tile = allocate_tensor_memory(gl.float16, [128, 64], a_tmem)
    acc = allocate_tensor_memory(gl.float32, [128, 64], tmem)
    if COPY:
        c_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([128, 64], gl.float32)
        c_buf = gl.allocate_shared_memory(gl.float32, [128, 64], c_shared, gl.load(c_ptr + places(128, 64, blocked)))
        fence_async_shared()
        tcgen05_copy(c_buf, acc)
    else:
        fence_async_shared()
    a_tile.store(gl.load(a_ptr + places(128, 64, a_layout)))
    tcgen05_mma(a_tile, b_buf, acc, use_acc=COPY)
    tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    gl.store(c_ptr + places(128, 64, layout), acc.load(layout))


@gluon.jit
def scaled_kernel(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, COPY: gl.constexpr):
    """C = (A * scales) @ (B * scales).T, A in fp8 and B in packed fp4, both along K."""
    tmem: gl.constexpr = TensorMemoryLayout([128, 64], col_stride=1)
    scales: gl.constexpr = TensorMemoryScalesLayout()
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    layout: gl.constexpr = register_layout(gl.float32, [128, 64], tmem, gl.num_warps())
    a_scale_layout: gl.constexpr = register_layout(gl.uint8, [128, 4], scales, gl.num_warps())
    b_scale_layout: gl.constexpr = register_layout(gl.uint8, [64, 4], scales, gl.num_warps())
    a_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([128, 128], gl.float8e5)
    b_shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=8, rank=2, fp4_padded=True)
    a_buf = gl.allocate_shared_memory(gl.float8e5, [128, 128], a_shared, gl.load(a_ptr + places(128, 128, blocked)))
    b_buf = gl.allocate_shared_memory(gl.uint8, [64, 64], b_shared, gl.load(b_ptr + places(64, 64, blocked)))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    acc = allocate_tensor_memory(gl.float32, [128, 64], tmem)
    a_scales = allocate_tensor_memory(gl.uint8, [128, 4], scales)
    b_scales = allocate_tensor_memory(gl.uint8, [64, 4], scales)
    b_scales.store(gl.load(b_scale_ptr + places(64, 4, b_scale_layout)))
    if COPY:
        # Blocks of 32 by 16 bytes: rows 32 apart lie side by side.
        chunks: gl.constexpr = gl.BlockedLayout([1, 16], [32, 1], [gl.num_warps(), 1], [1, 0])
        flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8, rank=5)
        values = gl.load(a_scale_ptr + places(32, 16, chunks)).reshape([1, 1, 32, 4, 4])
        chunk = gl.allocate_shared_memory(gl.uint8, [1, 1, 32, 4, 4], flat, values)
        fence_async_shared()
        tcgen05_copy(chunk.permute((0, 3, 2, 1, 4)).reshape([128, 4]), a_scales)
    else:
        a_scales.store(gl.load(a_scale_ptr + places(128, 4, a_scale_layout)))
        fence_async_shared()
    tcgen05_mma_scaled(a_buf, b_buf.permute((1, 0)), acc, a_scales, b_scales, "e5m2", "e2m1", use_acc=False)
    tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    gl.store(c_ptr + places(128, 64, layout), acc.load(layout))


@gluon.jit
def row_max_kernel(x_ptr, out_ptr, ABS: gl.constexpr):
    """The largest element of each row, found by the load itself."""
    tmem: gl.constexpr = TensorMemoryLayout([128, 64], col_stride=1)
    layout: gl.constexpr = register_layout(gl.float32, [128, 64], tmem, gl.num_warps())
    tile = allocate_tensor_memory(gl.float32, [128, 64], tmem, gl.load(x_ptr + places(128, 64, layout)))
    _, largest = tile.load_max(layout, abs=ABS)
    gl.store(out_ptr + gl.arange(0, 128, layout=gl.SliceLayout(1, layout)), largest)


@gluon.jit
def reinterpreted_kernel(x_ptr, out_ptr):
    """The right half of an fp32 tile as a whole tile of fp16; the left half stays what it is."""
    whole: gl.constexpr = TensorMemoryLayout([64, 64], col_stride=1)
    half: gl.constexpr = TensorMemoryLayout([64, 32], col_stride=1)
    layout: gl.constexpr = register_layout(gl.float32, [64, 64], whole, gl.num_warps())
    half_layout: gl.constexpr = register_layout(gl.float32, [64, 32], half, gl.num_warps())
    narrow_layout: gl.constexpr = register_layout(gl.float16, [64, 64], whole, gl.num_warps())
    x = gl.load(x_ptr + places(64, 64, layout))
    tile = allocate_tensor_memory(gl.float32, [64, 64], whole, x)
    right = tile.slice(32, 32)
    if hasattr(right, "reinterpret"):
        narrow = right.reinterpret(gl.float16, [64, 64], whole)
    else:
        narrow = right._reinterpret(gl.float16, [64, 64], whole)
    narrow.store(gl.convert_layout(x, narrow_layout).to(gl.float16) + 1.0)
    gl.store(out_ptr + places(64, 32, half_layout), tile.slice(0, 32).load(half_layout))
    gl.store(out_ptr + 2048 + places(64, 64, narrow_layout), narrow.load(narrow_layout).to(gl.float32))
