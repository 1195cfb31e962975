"""AMD kernels: registers ahead of LDS (gfx942), copies straight to LDS (gfx950), async copies and TDM (gfx1250).

Buffer operations take a scalar base and 32-bit offsets. Copies to LDS complete in the order of their groups, TDM's in
the order of issue; what waits for them counts those that may still be on their way.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import cdna3, cdna4, gfx1250


@gluon.constexpr_function
def rows_of(cols, bits, num_warps, lanes):
    """Blocked layout for a tile of rows: 16 bytes a thread, threads along a row first, then down."""
    size = min(128 // bits, cols)
    along = min(lanes, cols // size)
    return gl.BlockedLayout([1, size], [lanes // along, along], [num_warps, 1], [1, 0])


@gluon.constexpr_function
def wmma_layout():
    """WMMA of 16x16x32 by two by two warps; Triton 3.6 counts warps where later ones have bases."""
    try:
        return gl.amd.AMDWMMALayout(3, True, warp_bases=[[0, 1], [1, 0]], instr_shape=[16, 16, 32])
    except TypeError:
        return gl.amd.AMDWMMALayout(3, True, warps_per_cta=[2, 2], instr_shape=[16, 16, 32])


# ------------------------------------------------------------------------------------------------------ gfx942


@gluon.jit
def mfma_matmul_kernel(
    a_ptr,
    b_ptr,
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
):
    """C = A @ B, fp16: while MFMA works on one LDS slot, the next tiles are in registers on their way to the other."""
    a_layout: gl.constexpr = rows_of(BLOCK_K, 16, gl.num_warps(), 64)
    b_layout: gl.constexpr = rows_of(BLOCK_N, 16, gl.num_warps(), 64)
    mma_layout: gl.constexpr = gl.amd.AMDMFMALayout(3, [16, 16, 16], True, [2, 2])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 4)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 4)
    shared: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 8, [1, 0])

    offs_am = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_bk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    offs_bn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    a_offs = offs_am[:, None] * stride_am + offs_ak[None, :]
    b_offs = offs_bk[:, None] * stride_bk + offs_bn[None, :]
    a_rows = offs_am[:, None] < M
    b_cols = offs_bn[None, :] < N

    a_bufs = gl.allocate_shared_memory(gl.float16, [2, BLOCK_M, BLOCK_K], shared)
    b_bufs = gl.allocate_shared_memory(gl.float16, [2, BLOCK_K, BLOCK_N], shared)
    steps = gl.cdiv(K, BLOCK_K)
    a = cdna3.buffer_load(a_ptr, a_offs, mask=a_rows & (offs_ak[None, :] < K), other=0.0)
    b = cdna3.buffer_load(b_ptr, b_offs, mask=(offs_bk[:, None] < K) & b_cols, other=0.0)
    a_bufs.index(0).store(a)
    b_bufs.index(0).store(b)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(steps):
        left = K - (step + 1) * BLOCK_K
        a_offs += BLOCK_K
        b_offs += BLOCK_K * stride_bk
        a = cdna3.buffer_load(a_ptr, a_offs, mask=a_rows & (offs_ak[None, :] < left), other=0.0)
        b = cdna3.buffer_load(b_ptr, b_offs, mask=(offs_bk[:, None] < left) & b_cols, other=0.0)
        a_now = a_bufs.index(step % 2).load(a_operand)
        b_now = b_bufs.index(step % 2).load(b_operand)
        acc = cdna3.mfma(a_now, b_now, acc)
        a_bufs.index((step + 1) % 2).store(a)
        b_bufs.index((step + 1) % 2).store(b)

    offs_cm = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    cdna3.buffer_store(acc, c_ptr, offs_cm[:, None] * stride_cm + offs_cn[None, :], mask=c_mask)


@gluon.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: gl.constexpr):
    """One row a program, by buffer operations: columns past the row are minus infinity."""
    layout: gl.constexpr = gl.BlockedLayout([4], [64], [gl.num_warps()], [0])
    cols = gl.arange(0, BLOCK, layout=layout)
    offs = gl.program_id(0) * n_cols + cols
    x = cdna3.buffer_load(x_ptr, offs, mask=cols < n_cols, other=float("-inf"))
    e = gl.exp(x - gl.max(x, axis=0))
    cdna3.buffer_store(e / gl.sum(e, axis=0), out_ptr, offs, mask=cols < n_cols)


# ------------------------------------------------------------------------------------------------------ gfx950


@gluon.jit
def direct_to_lds_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
):
    """C = A @ B, fp16: buffer loads that land in a ring in LDS, one group for the two tiles of a step; K has a tail."""
    a_layout: gl.constexpr = rows_of(BLOCK_K, 16, gl.num_warps(), 64)
    b_layout: gl.constexpr = rows_of(BLOCK_N, 16, gl.num_warps(), 64)
    mma_layout: gl.constexpr = gl.amd.AMDMFMALayout(4, [16, 16, 32], True, [2, 2])
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 8)
    # Lanes of a wave write one after the other, so nothing may be swizzled across them.
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])

    offs_am = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_bk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    offs_bn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    a_offs = offs_am[:, None] * stride_am + offs_ak[None, :]
    b_offs = offs_bk[:, None] * stride_bk + offs_bn[None, :]

    a_bufs = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_M, BLOCK_K], shared)
    b_bufs = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_K, BLOCK_N], shared)
    steps = gl.cdiv(K, BLOCK_K)
    for k in gl.static_range(NUM_BUFFERS - 1):
        a_at = a_offs + k * BLOCK_K
        b_at = b_offs + k * BLOCK_K * stride_bk
        a_mask = offs_ak[None, :] < K - k * BLOCK_K
        b_mask = offs_bk[:, None] < K - k * BLOCK_K
        cdna4.async_copy.buffer_load_to_shared(a_bufs.index(k), a_ptr, a_at, mask=a_mask, other=0.0)
        cdna4.async_copy.buffer_load_to_shared(b_bufs.index(k), b_ptr, b_at, mask=b_mask, other=0.0)
        cdna4.async_copy.commit_group()
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(steps):
        cdna4.async_copy.wait_group(NUM_BUFFERS - 2)
        a = a_bufs.index(step % NUM_BUFFERS).load(a_operand)
        b = b_bufs.index(step % NUM_BUFFERS).load(b_operand)
        ahead = step + NUM_BUFFERS - 1
        a_next = a_offs + ahead * BLOCK_K
        b_next = b_offs + ahead * BLOCK_K * stride_bk
        a_left = offs_ak[None, :] < K - ahead * BLOCK_K
        b_left = offs_bk[:, None] < K - ahead * BLOCK_K
        a_slot = a_bufs.index(ahead % NUM_BUFFERS)
        b_slot = b_bufs.index(ahead % NUM_BUFFERS)
        cdna4.async_copy.buffer_load_to_shared(a_slot, a_ptr, a_next, mask=a_left, other=0.0)
        cdna4.async_copy.buffer_load_to_shared(b_slot, b_ptr, b_next, mask=b_left, other=0.0)
        cdna4.async_copy.commit_group()
        acc = cdna4.mfma(a, b, acc)
    cdna4.async_copy.wait_group(0)

    offs_cm = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    cdna4.buffer_store(acc, c_ptr, offs_cm[:, None] * stride_cm + offs_cn[None, :])


@gluon.jit
def row_sums_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """The sum of each row: chunks of a block of rows land in two LDS slots in turn, by pointers."""
    layout: gl.constexpr = rows_of(BLOCK_N, 32, gl.num_warps(), 64)
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, layout))
    ptrs = x_ptr + rows[:, None] * n_cols + cols[None, :]
    inside = rows[:, None] < n_rows

    slots = gl.allocate_shared_memory(gl.float32, [2, BLOCK_M, BLOCK_N], shared)
    cdna4.async_copy.global_load_to_shared(slots.index(0), ptrs, mask=inside & (cols[None, :] < n_cols), other=0.0)
    cdna4.async_copy.commit_group()
    total = gl.zeros([BLOCK_M], gl.float32, gl.SliceLayout(1, layout))
    for chunk in range(gl.cdiv(n_cols, BLOCK_N)):
        coming = (chunk + 1) * BLOCK_N
        mask = inside & (cols[None, :] < n_cols - coming)
        cdna4.async_copy.global_load_to_shared(slots.index((chunk + 1) % 2), ptrs + coming, mask=mask, other=0.0)
        cdna4.async_copy.commit_group()
        cdna4.async_copy.wait_group(1)
        total += gl.sum(slots.index(chunk % 2).load(layout), axis=1)
    cdna4.async_copy.wait_group(0)
    cdna4.buffer_store(total, out_ptr, rows, mask=rows < n_rows)


# ----------------------------------------------------------------------------------------------------- gfx1250


@gluon.jit
def wmma_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
):
    """C = A @ B, fp16: async copies of both tiles a group, WMMA from a padded ring."""
    a_layout: gl.constexpr = rows_of(BLOCK_K, 16, gl.num_warps(), 32)
    b_layout: gl.constexpr = rows_of(BLOCK_N, 16, gl.num_warps(), 32)
    mma_layout: gl.constexpr = wmma_layout()
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 8)
    a_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_K, 8]], [BLOCK_M, BLOCK_K], [1, 0])
    b_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_N, 8]], [BLOCK_K, BLOCK_N], [1, 0])

    offs_am = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_bk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    offs_bn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    a_ptrs = a_ptr + offs_am[:, None] * stride_am + offs_ak[None, :]
    b_ptrs = b_ptr + offs_bk[:, None] * stride_bk + offs_bn[None, :]

    a_bufs = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_shared)
    b_bufs = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_shared)
    steps = K // BLOCK_K
    for k in gl.static_range(NUM_BUFFERS - 1):
        gfx1250.async_copy.global_to_shared(a_bufs.index(k), a_ptrs + k * BLOCK_K)
        gfx1250.async_copy.global_to_shared(b_bufs.index(k), b_ptrs + k * BLOCK_K * stride_bk)
        gfx1250.async_copy.commit_group()
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(steps):
        gfx1250.async_copy.wait_group(NUM_BUFFERS - 2)
        a = a_bufs.index(step % NUM_BUFFERS).load(a_operand)
        b = b_bufs.index(step % NUM_BUFFERS).load(b_operand)
        ahead = step + NUM_BUFFERS - 1
        a_fits = offs_ak[None, :] < K - ahead * BLOCK_K
        b_fits = offs_bk[:, None] < K - ahead * BLOCK_K
        a_slot = a_bufs.index(ahead % NUM_BUFFERS)
        b_slot = b_bufs.index(ahead % NUM_BUFFERS)
        gfx1250.async_copy.global_to_shared(a_slot, a_ptrs + ahead * BLOCK_K, mask=a_fits, other=0.0)
        gfx1250.async_copy.global_to_shared(b_slot, b_ptrs + ahead * BLOCK_K * stride_bk, mask=b_fits, other=0.0)
        gfx1250.async_copy.commit_group()
        acc = gfx1250.wmma(a, b, acc)
    gfx1250.async_copy.wait_group(0)

    offs_cm = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    gfx1250.buffer_store(acc, c_ptr, offs_cm[:, None] * stride_cm + offs_cn[None, :])


@gluon.jit
def tdm_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
):
    """C = A @ B, fp16, by the tensor data mover: two loads a step, zero outside the tensors, C leaves by a store."""
    mma_layout: gl.constexpr = wmma_layout()
    a_operand: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 8)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 8)
    a_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_K, 8]], [BLOCK_M, BLOCK_K], [1, 0])
    b_shared: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK_N, 8]], [BLOCK_K, BLOCK_N], [1, 0])
    c_shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    a_desc = gfx1250.tdm.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K], a_shared)
    b_desc = gfx1250.tdm.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N], b_shared)
    c_desc = gfx1250.tdm.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N], c_shared)
    off_m = gl.program_id(0) * BLOCK_M
    off_n = gl.program_id(1) * BLOCK_N

    a_bufs = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_shared)
    b_bufs = gl.allocate_shared_memory(gl.float16, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_shared)
    for k in gl.static_range(NUM_BUFFERS - 1):
        gfx1250.tdm.async_load(a_desc, [off_m, k * BLOCK_K], a_bufs.index(k))
        gfx1250.tdm.async_load(b_desc, [k * BLOCK_K, off_n], b_bufs.index(k))
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for step in range(gl.cdiv(K, BLOCK_K)):
        gfx1250.tdm.async_wait(2 * (NUM_BUFFERS - 2))
        a = a_bufs.index(step % NUM_BUFFERS).load(a_operand)
        b = b_bufs.index(step % NUM_BUFFERS).load(b_operand)
        ahead = step + NUM_BUFFERS - 1
        gfx1250.tdm.async_load(a_desc, [off_m, ahead * BLOCK_K], a_bufs.index(ahead % NUM_BUFFERS))
        gfx1250.tdm.async_load(b_desc, [ahead * BLOCK_K, off_n], b_bufs.index(ahead % NUM_BUFFERS))
        acc = gfx1250.wmma(a, b, acc)
    gfx1250.tdm.async_wait(0)

    c_buf = gl.allocate_shared_memory(gl.float16, [BLOCK_M, BLOCK_N], c_shared)
    c_buf.store(acc.to(gl.float16))
    gfx1250.tdm.async_store(c_desc, [off_m, off_n], c_buf)
    gfx1250.tdm.async_wait(0)
