"""A matrix product of matrices of any size; neighbouring programs share rows and columns that are in cache."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma, warpgroup_mma_wait

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


@triton.heuristics({"NUM_STAGES": lambda args: args.get("NUM_STAGES", args.get("num_stages", 3))})
@gluon.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    NUM_STAGES: gl.constexpr = 3,
):  # fmt: skip
    # coalesced access to a_ptr
    a_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_K], [1, 0], a_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to b_ptr
    b_layout: gl.constexpr = coalesced(
        [BLOCK_K, BLOCK_N], [1, 0], b_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to c_ptr
    c_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_N], [1, 0], c_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    mma_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BLOCK_N, 16])
    a_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_M, BLOCK_K], a_ptr.dtype.element_ty)
    b_shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_K, BLOCK_N], b_ptr.dtype.element_ty)

    pid = gl.program_id(0)
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    # down GROUP_M tiles before going right
    group = pid // (GROUP_M * tiles_n)
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + pid % rows
    pid_n = pid % (GROUP_M * tiles_n) // rows

    offs_m = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_m_c = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, c_layout))
    offs_n = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    offs_n_c = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, c_layout))
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_k_b = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k_b[:, None] * stride_bk + offs_n[None, :]
    in_m = offs_m[:, None] < M
    in_m_c = offs_m_c[:, None] < M
    in_n = offs_n[None, :] < N
    in_n_c = offs_n_c[None, :] < N

    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma_layout)
    gl.static_assert(NUM_STAGES > 1, "no load would run ahead")
    # rings of NUM_STAGES tiles; loads run NUM_STAGES - 1 iterations ahead
    a_buf = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_STAGES, BLOCK_M, BLOCK_K], a_shared)
    b_buf = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_STAGES, BLOCK_K, BLOCK_N], b_shared)
    steps = gl.cdiv(K, BLOCK_K)
    for k in gl.static_range(NUM_STAGES - 1):
        async_load(a_buf.index(k), a_ptrs, mask=(k < steps) & (in_m & (offs_k[None, :] < K - k * BLOCK_K)))
        async_load(b_buf.index(k), b_ptrs, mask=(k < steps) & (in_n & (offs_k_b[:, None] < K - k * BLOCK_K)))
        async_copy.commit_group()
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk

    slot = -1
    free_slot = NUM_STAGES - 2
    for k in range(0, steps):
        slot = gl.where(slot + 1 >= NUM_STAGES, 0, slot + 1)
        more = k < steps - (NUM_STAGES - 1)
        # at most the copies of the next NUM_STAGES - 2 iterations are under way: this one's tiles are there
        async_copy.wait_group(NUM_STAGES - 2)
        fence_async_shared()
        # the last step may be a short one
        a = a_buf.index(slot)
        b = b_buf.index(slot)
        acc = warpgroup_mma(a, b, acc, is_async=True)
        # runs on, while the iteration before is done: its tiles may be overwritten
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
        free_slot = gl.where(free_slot + 1 >= NUM_STAGES, 0, free_slot + 1)
        ahead = k + NUM_STAGES - 1
        async_load(a_buf.index(free_slot), a_ptrs, mask=more & (in_m & (offs_k[None, :] < K - ahead * BLOCK_K)))
        async_load(b_buf.index(free_slot), b_ptrs, mask=more & (in_n & (offs_k_b[:, None] < K - ahead * BLOCK_K)))
        async_copy.commit_group()
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    async_copy.wait_group(0)

    c_ptrs = c_ptr + offs_m_c[:, None] * stride_cm + offs_n_c[None, :]
    gl.store(c_ptrs, gl.convert_layout(acc.to(c_ptr.dtype.element_ty), c_layout), mask=in_m_c & in_n_c)


def matmul(a, b, c):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )  # fmt: skip
