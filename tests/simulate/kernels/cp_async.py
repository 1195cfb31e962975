"""Kernels on cp.async (sm80 and later): rings of shared buffers that copies fill ahead of their use.

Every ring has NUM_BUFFERS slots and copies run NUM_BUFFERS - 1 steps ahead; each step is one group, empty or not, so
that the number of groups in flight says which step has landed.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

try:
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_load
except ImportError:
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_copy_global_to_shared as async_load


@gluon.constexpr_function
def row_major(rows, cols, bits, num_warps):
    """Blocked layout for a tile of rows: 16 bytes a thread, threads along a row first, then down."""
    size = min(128 // bits, cols)
    lanes = min(32, cols // size)
    down = 32 // lanes
    return gl.BlockedLayout([1, size], [down, lanes], [num_warps, 1], [1, 0])


@gluon.constexpr_function
def swizzled(cols, bits):
    """Shared layout of a row-major tile from which `ldmatrix` reads without bank conflicts."""
    row_bytes = cols * bits // 8
    per_phase = max(128 // row_bytes, 1)
    return gl.SwizzledSharedLayout(128 // bits, per_phase, 8 // per_phase, [1, 0])


@gluon.jit
def copy_tiles(a_bufs, b_bufs, a_ptrs, b_ptrs, offs_ak, offs_bk, mask_m, mask_n, step, K, stride_bk):
    """Start the copies of one step along K into its slot of both rings, as one group; past K they read nothing."""
    BLOCK_K: gl.constexpr = a_bufs.shape[2]
    slot = step % a_bufs.shape[0]
    left = K - step * BLOCK_K
    async_load(a_bufs.index(slot), a_ptrs + step * BLOCK_K, mask=mask_m & (offs_ak[None, :] < left))
    async_load(b_bufs.index(slot), b_ptrs + step * BLOCK_K * stride_bk, mask=(offs_bk[:, None] < left) & mask_n)
    async_copy.commit_group()


@gluon.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
):
    """C = A @ B + bias along N: fp16 or tf32, by the dtype of A. Tails of M, N and K are masked."""
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    bits: gl.constexpr = dtype.primitive_bitwidth
    a_layout: gl.constexpr = row_major(BLOCK_M, BLOCK_K, bits, gl.num_warps())
    b_layout: gl.constexpr = row_major(BLOCK_K, BLOCK_N, bits, gl.num_warps())
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [gl.num_warps() // 2, 2], [16, 8])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 32 // bits)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 32 // bits)

    pid_m = gl.program_id(0)
    pid_n = gl.program_id(1)
    offs_am = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_bk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    offs_bn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    a_ptrs = a_ptr + offs_am[:, None] * stride_am + offs_ak[None, :]
    b_ptrs = b_ptr + offs_bk[:, None] * stride_bk + offs_bn[None, :]
    mask_m = offs_am[:, None] < M
    mask_n = offs_bn[None, :] < N

    a_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_K], swizzled(BLOCK_K, bits))
    b_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_K, BLOCK_N], swizzled(BLOCK_N, bits))
    steps = gl.cdiv(K, BLOCK_K)
    for step in gl.static_range(NUM_BUFFERS - 1):
        copy_tiles(a_bufs, b_bufs, a_ptrs, b_ptrs, offs_ak, offs_bk, mask_m, mask_n, step, K, stride_bk)

    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(steps):
        async_copy.wait_group(NUM_BUFFERS - 2)
        a = a_bufs.index(step % NUM_BUFFERS).load(a_operand)
        b = b_bufs.index(step % NUM_BUFFERS).load(b_operand)
        # The slot of the previous step: its tiles are in registers since then.
        ahead = step + NUM_BUFFERS - 1
        copy_tiles(a_bufs, b_bufs, a_ptrs, b_ptrs, offs_ak, offs_bk, mask_m, mask_n, ahead, K, stride_bk)
        acc = mma_v2(a, b, acc, input_precision="tf32")
    async_copy.wait_group(0)

    offs_cm = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    acc += gl.load(bias_ptr + offs_cn, mask=offs_cn < N, other=0.0)[None, :]
    c_ptrs = c_ptr + offs_cm[:, None] * stride_cm + offs_cn[None, :]
    gl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@gluon.jit
def int8_matmul_kernel(
    a_ptr,
    w_ptr,
    c_ptr,
    K,
    stride_am,
    stride_wn,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
):
    """C = A @ W^T in int8 with an int32 sum; the last NUM_BUFFERS - 1 steps drain the ring in a loop of their own.

    Sides are multiples of the tile, and K has at least NUM_BUFFERS - 1 steps.
    """
    tile_layout: gl.constexpr = row_major(BLOCK_M, BLOCK_K, 8, gl.num_warps())
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [gl.num_warps() // 2, 2], [16, 8])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 4)
    w_operand: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 4)

    offs_am = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, tile_layout))
    offs_wn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, tile_layout))
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, tile_layout))
    a_ptrs = a_ptr + offs_am[:, None] * stride_am + offs_k[None, :]
    w_ptrs = w_ptr + offs_wn[:, None] * stride_wn + offs_k[None, :]

    a_bufs = gl.allocate_shared_memory(gl.int8, [NUM_BUFFERS, BLOCK_M, BLOCK_K], swizzled(BLOCK_K, 8))
    w_bufs = gl.allocate_shared_memory(gl.int8, [NUM_BUFFERS, BLOCK_N, BLOCK_K], swizzled(BLOCK_K, 8))
    for step in gl.static_range(NUM_BUFFERS - 1):
        async_load(a_bufs.index(step), a_ptrs + step * BLOCK_K)
        async_load(w_bufs.index(step), w_ptrs + step * BLOCK_K)
        async_copy.commit_group()

    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.int32, mma_layout)
    full = K // BLOCK_K - (NUM_BUFFERS - 1)
    for step in range(full):
        ahead = step + NUM_BUFFERS - 1
        async_load(a_bufs.index(ahead % NUM_BUFFERS), a_ptrs + ahead * BLOCK_K)
        async_load(w_bufs.index(ahead % NUM_BUFFERS), w_ptrs + ahead * BLOCK_K)
        async_copy.commit_group()
        async_copy.wait_group(NUM_BUFFERS - 1)
        a = a_bufs.index(step % NUM_BUFFERS).load(a_operand)
        w = w_bufs.index(step % NUM_BUFFERS).permute([1, 0]).load(w_operand)
        acc = mma_v2(a, w, acc)

    for late in gl.static_range(NUM_BUFFERS - 1):
        async_copy.wait_group(NUM_BUFFERS - 2 - late)
        a_late = a_bufs.index((full + late) % NUM_BUFFERS).load(a_operand)
        w_late = w_bufs.index((full + late) % NUM_BUFFERS).permute([1, 0]).load(w_operand)
        acc = mma_v2(a_late, w_late, acc)

    offs_cm = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    gl.store(c_ptr + offs_cm[:, None] * stride_cm + offs_cn[None, :], acc)


@gluon.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK: gl.constexpr, NUM_BUFFERS: gl.constexpr):
    """One row a program, streamed twice: chunks arrive through a ring while the squares of earlier ones are summed."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    cols = gl.arange(0, BLOCK, layout=layout)
    row_ptrs = x_ptr + gl.program_id(0) * n_cols + cols
    chunks = gl.cdiv(n_cols, BLOCK)

    ring = gl.allocate_shared_memory(gl.float32, [NUM_BUFFERS, BLOCK], shared)
    for chunk in gl.static_range(NUM_BUFFERS - 1):
        async_load(ring.index(chunk), row_ptrs + chunk * BLOCK, mask=cols < n_cols - chunk * BLOCK)
        async_copy.commit_group()
    squares = gl.zeros([BLOCK], gl.float32, layout)
    for chunk in range(chunks):
        ahead = chunk + NUM_BUFFERS - 1
        async_load(ring.index(ahead % NUM_BUFFERS), row_ptrs + ahead * BLOCK, mask=cols < n_cols - ahead * BLOCK)
        async_copy.commit_group()
        async_copy.wait_group(NUM_BUFFERS - 1)
        x = ring.index(chunk % NUM_BUFFERS).load(layout)
        squares += x * x
    async_copy.wait_group(0)
    scale = gl.rsqrt(gl.sum(squares, axis=0) / n_cols + eps)

    for chunk in range(chunks):
        at = chunk * BLOCK + cols
        x = gl.load(row_ptrs + chunk * BLOCK, mask=at < n_cols, other=0.0)
        weight = gl.load(weight_ptr + at, mask=at < n_cols, other=0.0)
        gl.store(out_ptr + gl.program_id(0) * n_cols + at, x * scale * weight, mask=at < n_cols)


@gluon.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: gl.constexpr, NUM_BUFFERS: gl.constexpr):
    """out = x * factor: each program walks over every num_programs-th block, loads running ahead in a ring."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    lane = gl.arange(0, BLOCK, layout=layout)
    stride = gl.num_programs(0) * BLOCK
    first = gl.program_id(0) * BLOCK
    blocks = gl.cdiv(n - first, stride)

    ring = gl.allocate_shared_memory(gl.float32, [NUM_BUFFERS, BLOCK], shared)
    for block in gl.static_range(NUM_BUFFERS - 1):
        offs = first + block * stride + lane
        async_load(ring.index(block), x_ptr + offs, mask=offs < n)
        async_copy.commit_group()
    for block in range(blocks):
        async_copy.wait_group(NUM_BUFFERS - 2)
        x = ring.index(block % NUM_BUFFERS).load(layout)
        offs = first + block * stride + lane
        gl.store(out_ptr + offs, x * factor, mask=offs < n)
        coming = first + (block + NUM_BUFFERS - 1) * stride + lane
        async_load(ring.index((block + NUM_BUFFERS - 1) % NUM_BUFFERS), x_ptr + coming, mask=coming < n)
        async_copy.commit_group()
    async_copy.wait_group(0)


@gluon.jit
def gemv_kernel(
    a_ptr, x_ptr, y_ptr, M, K, stride_am, BLOCK_M: gl.constexpr, BLOCK_K: gl.constexpr, NUM_BUFFERS: gl.constexpr
):
    """y = A @ x, fp16 in and fp32 out: tiles of A stream through a ring, x comes from the cache."""
    layout: gl.constexpr = row_major(BLOCK_M, BLOCK_K, 16, gl.num_warps())
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, layout))
    a_ptrs = a_ptr + rows[:, None] * stride_am + cols[None, :]
    steps = gl.cdiv(K, BLOCK_K)

    ring = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_M, BLOCK_K], shared)
    for step in gl.static_range(NUM_BUFFERS - 1):
        inside = (rows[:, None] < M) & (cols[None, :] < K - step * BLOCK_K)
        async_load(ring.index(step), a_ptrs + step * BLOCK_K, mask=inside)
        async_copy.commit_group()
    partial = gl.zeros([BLOCK_M, BLOCK_K], gl.float32, layout)
    for step in range(steps):
        x = gl.load(x_ptr + step * BLOCK_K + cols, mask=cols < K - step * BLOCK_K, other=0.0).to(gl.float32)
        ahead = step + NUM_BUFFERS - 1
        inside = (rows[:, None] < M) & (cols[None, :] < K - ahead * BLOCK_K)
        async_load(ring.index(ahead % NUM_BUFFERS), a_ptrs + ahead * BLOCK_K, mask=inside)
        async_copy.commit_group()
        async_copy.wait_group(NUM_BUFFERS - 1)
        a = ring.index(step % NUM_BUFFERS).load(layout)
        partial += a.to(gl.float32) * x[None, :]
    async_copy.wait_group(0)
    y = gl.sum(partial, axis=1)
    gl.store(y_ptr + rows, y, mask=rows < M)
