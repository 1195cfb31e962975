"""Hopper's warpgroup MMA fed by cp.async, by stores to shared memory, and from registers (sm90).

wgmma reads shared memory through the async proxy: whatever generic code put there, cp.async included, needs
`fence_async_shared` in between. It runs on while the kernel goes ahead; its operands stay taken until it is waited for.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma, warpgroup_mma_wait

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


@gluon.jit
def matmul_kernel(
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
    NUM_BUFFERS: gl.constexpr,
):
    """C = A @ B, fp16: copies NUM_BUFFERS - 1 steps ahead, each wgmma waited for one step later."""
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    a_layout: gl.constexpr = row_major(BLOCK_M, BLOCK_K, 16, gl.num_warps())
    b_layout: gl.constexpr = row_major(BLOCK_K, BLOCK_N, 16, gl.num_warps())
    a_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, BLOCK_K], dtype)
    b_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_K, BLOCK_N], dtype)
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])

    pid_m = gl.program_id(0)
    pid_n = gl.program_id(1)
    offs_am = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_bk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    offs_bn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    a_ptrs = a_ptr + offs_am[:, None] * stride_am + offs_ak[None, :]
    b_ptrs = b_ptr + offs_bk[:, None] * stride_bk + offs_bn[None, :]

    a_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_M, BLOCK_K], a_shared)
    b_bufs = gl.allocate_shared_memory(dtype, [NUM_BUFFERS, BLOCK_K, BLOCK_N], b_shared)
    steps = gl.cdiv(K, BLOCK_K)
    for k in gl.static_range(NUM_BUFFERS - 1):
        a_mask = (offs_am[:, None] < M) & (offs_ak[None, :] < K - k * BLOCK_K)
        b_mask = (offs_bk[:, None] < K - k * BLOCK_K) & (offs_bn[None, :] < N)
        async_load(a_bufs.index(k), a_ptrs + k * BLOCK_K, mask=a_mask)
        async_load(b_bufs.index(k), b_ptrs + k * BLOCK_K * stride_bk, mask=b_mask)
        async_copy.commit_group()

    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for k in range(steps):
        async_copy.wait_group(NUM_BUFFERS - 2)
        fence_async_shared()
        acc = warpgroup_mma(a_bufs.index(k % NUM_BUFFERS), b_bufs.index(k % NUM_BUFFERS), acc, is_async=True)
        # The previous step's wgmma is done after this, and its slot free for the next copies.
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
        ahead = k + NUM_BUFFERS - 1
        a_mask = (offs_am[:, None] < M) & (offs_ak[None, :] < K - ahead * BLOCK_K)
        b_mask = (offs_bk[:, None] < K - ahead * BLOCK_K) & (offs_bn[None, :] < N)
        async_load(a_bufs.index(ahead % NUM_BUFFERS), a_ptrs + ahead * BLOCK_K, mask=a_mask)
        async_load(b_bufs.index(ahead % NUM_BUFFERS), b_ptrs + ahead * BLOCK_K * stride_bk, mask=b_mask)
        async_copy.commit_group()
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    async_copy.wait_group(0)

    offs_cm = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    c_ptrs = c_ptr + offs_cm[:, None] * stride_cm + offs_cn[None, :]
    gl.store(c_ptrs, acc.to(dtype), mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@gluon.jit
def dequantize_matmul_kernel(
    a_ptr,
    w_ptr,
    scale_ptr,
    c_ptr,
    K,
    stride_am,
    stride_wk,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
):
    """C = A @ (int8 W * scale of its column): weights become fp16 in registers and go to shared memory by a store.

    Two slots: while wgmma reads one, the next weights are loaded, converted and stored into the other.
    """
    dtype: gl.constexpr = a_ptr.dtype.element_ty
    a_layout: gl.constexpr = row_major(BLOCK_M, BLOCK_K, 16, gl.num_warps())
    w_layout: gl.constexpr = row_major(BLOCK_K, BLOCK_N, 16, gl.num_warps())
    a_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, BLOCK_K], dtype)
    w_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_K, BLOCK_N], dtype)
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])

    offs_am = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_ak = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_wk = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, w_layout))
    offs_wn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, w_layout))
    a_ptrs = a_ptr + offs_am[:, None] * stride_am + offs_ak[None, :]
    w_ptrs = w_ptr + offs_wk[:, None] * stride_wk + offs_wn[None, :]
    scale = gl.load(scale_ptr + offs_wn)[None, :]

    a_bufs = gl.allocate_shared_memory(dtype, [2, BLOCK_M, BLOCK_K], a_shared)
    w_bufs = gl.allocate_shared_memory(dtype, [2, BLOCK_K, BLOCK_N], w_shared)
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, mma_layout)
    for k in range(K // BLOCK_K):
        slot = k % 2
        a = gl.load(a_ptrs + k * BLOCK_K)
        w = gl.load(w_ptrs + k * BLOCK_K * stride_wk)
        a_bufs.index(slot).store(a)
        w_bufs.index(slot).store((w.to(gl.float32) * scale).to(dtype))
        fence_async_shared()
        acc = warpgroup_mma(a_bufs.index(slot), w_bufs.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))

    offs_cm = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_cn = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    gl.store(c_ptr + offs_cm[:, None] * stride_cm + offs_cn[None, :], acc.to(dtype))


@gluon.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, tokens, scale, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, HEAD: gl.constexpr
):
    """Attention of one head, fp16: Q and P feed wgmma from registers, K and V stream in through two slots each."""
    dtype: gl.constexpr = q_ptr.dtype.element_ty
    layout: gl.constexpr = row_major(BLOCK_N, HEAD, 16, gl.num_warps())
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_N, HEAD], dtype)
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, HEAD, 16])
    q_operand: gl.constexpr = gl.DotOperandLayout(0, s_layout, 2)
    p_operand: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)

    rows = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    head = gl.arange(0, HEAD, layout=gl.SliceLayout(0, layout))
    keys = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, layout))
    q = gl.load(q_ptr + rows[:, None] * HEAD + head[None, :], mask=rows[:, None] < tokens, other=0.0)
    q = gl.convert_layout(q, q_operand)
    tile = keys[:, None] * HEAD + head[None, :]

    k_bufs = gl.allocate_shared_memory(dtype, [2, BLOCK_N, HEAD], shared)
    v_bufs = gl.allocate_shared_memory(dtype, [2, BLOCK_N, HEAD], shared)
    async_load(k_bufs.index(0), k_ptr + tile, mask=keys[:, None] < tokens)
    async_copy.commit_group()
    async_load(v_bufs.index(0), v_ptr + tile, mask=keys[:, None] < tokens)
    async_copy.commit_group()

    highest = gl.full([BLOCK_M], float("-inf"), gl.float32, gl.SliceLayout(1, o_layout))
    total = gl.zeros([BLOCK_M], gl.float32, gl.SliceLayout(1, o_layout))
    acc = gl.zeros([BLOCK_M, HEAD], gl.float32, o_layout)
    score_keys = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, s_layout))
    for block in range(gl.cdiv(tokens, BLOCK_N)):
        slot = block % 2
        coming = (block + 1) * BLOCK_N
        async_load(k_bufs.index(1 - slot), k_ptr + coming * HEAD + tile, mask=coming + keys[:, None] < tokens)
        async_copy.commit_group()
        # This block's K is the third youngest group: its V and the next K may still be on their way.
        async_copy.wait_group(2)
        fence_async_shared()
        zero = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, s_layout)
        scores = warpgroup_mma(q, k_bufs.index(slot).permute([1, 0]), zero, is_async=True)
        scores = warpgroup_mma_wait(num_outstanding=0, deps=(scores,))
        scores = gl.where(block * BLOCK_N + score_keys[None, :] < tokens, scores * scale, float("-inf"))
        scores = gl.convert_layout(scores, o_layout)
        above = gl.maximum(highest, gl.max(scores, axis=1))
        p = gl.exp2(scores - above[:, None])
        shrink = gl.exp2(highest - above)
        total = total * shrink + gl.sum(p, axis=1)
        highest = above
        acc = acc * shrink[:, None]
        async_load(v_bufs.index(1 - slot), v_ptr + coming * HEAD + tile, mask=coming + keys[:, None] < tokens)
        async_copy.commit_group()
        async_copy.wait_group(2)
        fence_async_shared()
        acc = warpgroup_mma(gl.convert_layout(p.to(dtype), p_operand), v_bufs.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    async_copy.wait_group(0)

    out = gl.convert_layout((acc / total[:, None]).to(dtype), layout)
    gl.store(o_ptr + rows[:, None] * HEAD + head[None, :], out, mask=rows[:, None] < tokens)
