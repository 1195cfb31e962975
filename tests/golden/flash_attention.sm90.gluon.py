"""Attention of one sequence a head, causal or not, without its matrix of scores ever being whole."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

try:
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_load
except ImportError:  # as it was called before Triton 3.8
    from triton.experimental.gluon.language.nvidia.ampere.async_copy import async_copy_global_to_shared as async_load


@gluon.constexpr_function
def coalesced(shape, order, bits, num_warps, lanes=32):
    """Blocked layout of a global access: up to 16 bytes a thread along `order[0]`, lanes then warps outwards."""
    rank, elements = len(shape), 1
    for extent in shape:
        elements *= extent
    size, threads, warps = [1] * rank, [1] * rank, [1] * rank
    size[order[0]] = min(128 // bits, shape[order[0]], max(elements // (num_warps * lanes), 1))
    for dim in order:
        threads[dim] = min(lanes, max(shape[dim] // size[dim], 1))
        lanes //= threads[dim]
        warps[dim] = min(num_warps, max(shape[dim] // (size[dim] * threads[dim]), 1))
        num_warps //= warps[dim]
    threads[order[-1]] *= lanes
    warps[order[-1]] *= num_warps
    return gl.BlockedLayout(size, threads, warps, order)


@gluon.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, stride_h, stride_n, n, scale,
    D: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, CAUSAL: gl.constexpr,
    NUM_STAGES: gl.constexpr = 3,
):  # fmt: skip
    # coalesced access to q_ptr and o_ptr
    q_layout: gl.constexpr = coalesced([BLOCK_M, D], [1, 0], q_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
    # coalesced access to k_ptr
    k_layout: gl.constexpr = coalesced([D, BLOCK_N], [0, 1], k_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
    # coalesced access to v_ptr
    v_layout: gl.constexpr = coalesced([BLOCK_N, D], [1, 0], v_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
    scores_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, D, 16])
    q_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, D], q_ptr.dtype.element_ty)
    k_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([D, BLOCK_N], k_ptr.dtype.element_ty, transposed=True)
    v_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_N, D], v_ptr.dtype.element_ty)
    acc_lhs_layout: gl.constexpr = gl.DotOperandLayout(0, acc_layout, 2)

    start_m = gl.program_id(0) * BLOCK_M
    head = gl.program_id(1) * stride_h
    offs_m = start_m + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, q_layout))
    offs_m_scores = start_m + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, scores_layout))
    offs_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, k_layout))
    offs_n_scores = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, scores_layout))
    offs_n_v = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, v_layout))
    offs_d = gl.arange(0, D, layout=gl.SliceLayout(0, q_layout))
    offs_d_k = gl.arange(0, D, layout=gl.SliceLayout(1, k_layout))
    offs_d_v = gl.arange(0, D, layout=gl.SliceLayout(0, v_layout))
    q = gl.load(q_ptr + head + offs_m[:, None] * stride_n + offs_d[None, :], mask=offs_m[:, None] < n, other=0.0)
    q_smem = gl.allocate_shared_memory(q.dtype, [BLOCK_M, D], q_shared, q)
    fence_async_shared()

    # exp2 is the faster one: the scores are scaled by log2(e)
    scale *= 1.4426950408889634
    m_i = gl.full((BLOCK_M,), float("-inf"), gl.float32, layout=gl.SliceLayout(1, scores_layout))
    l_i = gl.zeros((BLOCK_M,), gl.float32, layout=gl.SliceLayout(1, scores_layout))
    acc = gl.zeros((BLOCK_M, D), gl.float32, layout=acc_layout)
    end = min(n, start_m + BLOCK_M) if CAUSAL else n
    gl.static_assert(NUM_STAGES > 1, "no load would run ahead")
    # rings of NUM_STAGES tiles; loads run NUM_STAGES - 1 iterations ahead
    k_buf = gl.allocate_shared_memory(k_ptr.dtype.element_ty, [NUM_STAGES, D, BLOCK_N], k_shared)
    v_buf = gl.allocate_shared_memory(v_ptr.dtype.element_ty, [NUM_STAGES, BLOCK_N, D], v_shared)
    for start_n in gl.static_range(0, (NUM_STAGES - 1) * BLOCK_N, BLOCK_N):
        keys = start_n + offs_n
        keys_v = start_n + offs_n_v
        async_load(
            k_buf.index(start_n // BLOCK_N),
            k_ptr + head + keys[None, :] * stride_n + offs_d_k[:, None],
            mask=(start_n < end) & (keys[None, :] < n))
        async_load(
            v_buf.index(start_n // BLOCK_N),
            v_ptr + head + keys_v[:, None] * stride_n + offs_d_v[None, :],
            mask=(start_n < end) & (keys_v[:, None] < n))
        async_copy.commit_group()

    slot = -1
    free_slot = NUM_STAGES - 2
    acc = warpgroup_mma_init(acc)
    for start_n in range(0, end, BLOCK_N):
        slot = gl.where(slot + 1 >= NUM_STAGES, 0, slot + 1)
        more = start_n < end - (NUM_STAGES - 1) * BLOCK_N
        keys_scores = start_n + offs_n_scores
        seen = keys_scores[None, :] < n
        # at most the copies of the next NUM_STAGES - 2 iterations are under way: this one's tiles are there
        async_copy.wait_group(NUM_STAGES - 2)
        fence_async_shared()
        k = k_buf.index(slot)
        scores = warpgroup_mma(q_smem, k, gl.zeros([BLOCK_M, BLOCK_N], gl.float32, scores_layout), is_async=True)
        # done here: this product, and what ran on from the iteration before
        scores, acc = warpgroup_mma_wait(num_outstanding=0, deps=(scores, acc))
        scores = scores * scale
        if CAUSAL:
            seen = seen & (keys_scores[None, :] <= offs_m_scores[:, None])
        scores = gl.where(seen, scores, float("-inf"))
        m_new = gl.maximum(m_i, gl.max(scores, 1))
        p = gl.exp2(scores - m_new[:, None])
        # what was summed so far is of the old maximum
        alpha = gl.exp2(m_i - m_new)
        l_i = l_i * alpha + gl.sum(p, 1)
        acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, acc_layout))[:, None]
        v = v_buf.index(slot)
        acc = warpgroup_mma(gl.convert_layout(p.to(v.dtype), acc_lhs_layout), v, acc, is_async=True)
        m_i = m_new
        free_slot = gl.where(free_slot + 1 >= NUM_STAGES, 0, free_slot + 1)
        ahead = start_n + (NUM_STAGES - 1) * BLOCK_N
        keys = ahead + offs_n
        keys_v = ahead + offs_n_v
        async_load(
            k_buf.index(free_slot),
            k_ptr + head + keys[None, :] * stride_n + offs_d_k[:, None],
            mask=more & (keys[None, :] < n))
        async_load(
            v_buf.index(free_slot),
            v_ptr + head + keys_v[:, None] * stride_n + offs_d_v[None, :],
            mask=more & (keys_v[:, None] < n))
        async_copy.commit_group()
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    async_copy.wait_group(0)

    o = (acc / gl.convert_layout(l_i, gl.SliceLayout(1, acc_layout))[:, None]).to(o_ptr.dtype.element_ty)
    gl.store(
        o_ptr + head + offs_m[:, None] * stride_n + offs_d[None, :],
        gl.convert_layout(o, q_layout),
        mask=offs_m[:, None] < n,
    )
