"""A matrix product of matrices of any size; neighbouring programs share rows and columns that are in cache."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def coalesced(shape, order, bits, num_warps, lanes=64):
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


@gluon.constexpr_function
def tile_warps(shape, num_warps, instr):
    """Warps along each side of a product: they are doubled along the side where a warp has more instructions left."""
    rows, columns = shape[0] // instr[0], shape[1] // instr[1]
    m, n = 1, 1
    while m * n < num_warps:
        if rows // 2 // m >= columns // n and m < rows:
            m *= 2
        else:
            n *= 2
    return [n, m] if n > columns else [m, n]


@gluon.constexpr_function
def coalesced_blocks(shape, order, bits, num_warps, column_bits=0):
    """As `coalesced`, with as many rows in a thread as make a column of 8 bytes, of elements of `column_bits`."""
    plain, slow = coalesced(shape, order, bits, num_warps), order[-1]
    size = list(plain.size_per_thread)
    rows = shape[slow] // (plain.threads_per_warp[slow] * plain.warps_per_cta[slow])
    size[slow] = max(min(rows, 64 // (column_bits or bits)), 1)
    return gl.BlockedLayout(size, plain.threads_per_warp, plain.warps_per_cta, order)


@gluon.constexpr_function
def banked_layout(shape, order, bits, vec, banks=32):
    """Shared memory of an operand of a matrix instruction: pieces of `vec` elements of 16 rows in 16 places."""
    per_phase = max(banks * 32 // bits // shape[order[0]], 1)
    max_phase = max(min(16 // per_phase, shape[order[0]] // vec), 1)
    return gl.SwizzledSharedLayout(vec, per_phase, max_phase, order)


@gluon.constexpr_function
def rotating_layout(shape, order, bits, vec):
    """Shared memory as of `banked_layout`, each 16 rows one piece further: for threads that write columns."""
    columns, rows = shape[order[0]], shape[order[1]]
    per_phase = max(1024 // bits // columns, 1)
    max_phase = max(min(16 // per_phase, columns // vec), 1)
    bases = [(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    for row in [1 << bit for bit in range(rows.bit_length() - 1)]:
        phase = (row // per_phase % max_phase) ^ (row // (per_phase * max_phase) % max_phase)
        bases.append((row, vec * phase % columns))
    return gl.SharedLinearLayout([[column, row] if order[0] == 0 else [row, column] for row, column in bases])


@gluon.constexpr_function
def turned_in_threads_layout(layout, shape):
    """A blocked layout of a tile with each thread's elements along the slower dimension first; any other as it is."""
    if not hasattr(layout, "order"):
        return layout
    fast, slow = layout.order
    done, parts = [1, 1], []
    for sizes in (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, None):
        bases = []
        for dim in [fast, slow] if parts else [slow, fast]:
            end = shape[dim] if sizes is None else done[dim] * sizes[dim]
            while done[dim] < end:
                bases.append([done[dim] * (each == dim) for each in (0, 1)])
                done[dim] *= 2
        parts.append(bases)
    registers, lanes, warps, again = parts
    return gl.DistributedLinearLayout(registers + again, lanes, warps, [], shape)


@gluon.jit
def turned_in_threads(tile):
    """A tile whose elements each thread has in the order that it stores them in; none leaves its thread."""
    layout: gl.constexpr = turned_in_threads_layout(tile.type.layout, tile.type.shape)
    return gl.convert_layout(tile, layout, assert_trivial=True)


@gluon.jit
def matmul_kernel_block_m_from_128(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    NUM_STAGES: gl.constexpr,
):  # fmt: skip
    # coalesced access to a_ptr
    a_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_K], [1, 0], a_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to b_ptr
    b_layout: gl.constexpr = coalesced_blocks(
        [BLOCK_K, BLOCK_N], [1, 0], b_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    mma_layout: gl.constexpr = gl.amd.AMDMFMALayout(
        3, [32, 32, 8], True, tile_warps([BLOCK_M, BLOCK_N], gl.num_warps(), [32, 32])
    )
    a_shared: gl.constexpr = banked_layout([BLOCK_M, BLOCK_K], [1, 0], a_ptr.dtype.element_ty.primitive_bitwidth, 4)
    b_shared: gl.constexpr = rotating_layout([BLOCK_K, BLOCK_N], [0, 1], b_ptr.dtype.element_ty.primitive_bitwidth, 4)
    lhs_layout: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 4)
    rhs_layout: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 4)

    pid = gl.program_id(0)
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    # down GROUP_M tiles before going right
    group = pid // (GROUP_M * tiles_n)
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + pid % rows
    pid_n = pid % (GROUP_M * tiles_n) // rows

    offs_m = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_m_mma = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_n = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    offs_n_mma = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_k_b = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k_b[:, None] * stride_bk + offs_n[None, :]
    in_m = offs_m[:, None] < M
    in_m_mma = offs_m_mma[:, None] < M
    in_n = offs_n[None, :] < N
    in_n_mma = offs_n_mma[None, :] < N

    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma_layout)
    gl.static_assert(NUM_STAGES > 1, "no load would run ahead")
    # rings of NUM_STAGES - 1 tiles; loads run NUM_STAGES - 1 iterations ahead
    a_buf = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_STAGES - 1, BLOCK_M, BLOCK_K], a_shared)
    b_buf = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_STAGES - 1, BLOCK_K, BLOCK_N], b_shared)
    steps = gl.cdiv(K, BLOCK_K)
    drain = gl.maximum(steps - (NUM_STAGES - 1), 0)
    for k in gl.static_range(NUM_STAGES - 1):
        if k > 0:
            a_ptrs += BLOCK_K
            b_ptrs += BLOCK_K * stride_bk
        a_first = gl.load(a_ptrs, mask=in_m & (offs_k[None, :] < K - k * BLOCK_K) & (k < steps), other=0.0)
        b_first = gl.load(b_ptrs, mask=in_n & (offs_k_b[:, None] < K - k * BLOCK_K) & (k < steps), other=0.0)
        a_buf.index(k).store(a_first)
        b_buf.index(k).store(turned_in_threads(b_first))

    slot = NUM_STAGES - 2
    # the slots that tiles are in, the next one to read first
    a_slots = ()
    b_slots = ()
    for s in gl.static_range(NUM_STAGES - 1):
        a_slots = a_slots + (a_buf.index(s),)
        b_slots = b_slots + (b_buf.index(s),)
    for k in range(0, drain):
        # tiles of an iteration ahead come to registers
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
        ahead = k + NUM_STAGES - 1
        a_next = gl.load(a_ptrs, mask=in_m & (offs_k[None, :] < K - ahead * BLOCK_K), other=0.0)
        # the last step may be a short one
        a = a_slots[0].load(lhs_layout)
        b_next = gl.load(b_ptrs, mask=in_n & (offs_k_b[:, None] < K - ahead * BLOCK_K), other=0.0)
        b = b_slots[0].load(rhs_layout)
        acc = gl.amd.cdna3.mfma(a, b, acc)
        # and take the places of those that have been read
        slot = gl.where(slot + 1 >= NUM_STAGES - 1, 0, slot + 1)
        a_slots = a_slots[1:] + (a_buf.index(slot),)
        a_slots[-1].store(a_next)
        b_slots = b_slots[1:] + (b_buf.index(slot),)
        b_slots[-1].store(turned_in_threads(b_next))
    # the last iterations, whose tiles have all come
    for s in gl.static_range(NUM_STAGES - 1):
        exists = s < steps
        a = a_slots[0].load(lhs_layout)
        b = b_slots[0].load(rhs_layout)
        if exists:
            acc = gl.amd.cdna3.mfma(a, b, acc)
        a_slots = a_slots[1:] + a_slots[:1]
        b_slots = b_slots[1:] + b_slots[:1]

    c_ptrs = c_ptr + offs_m_mma[:, None] * stride_cm + offs_n_mma[None, :]
    gl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m_mma & in_n_mma)


@gluon.jit
def matmul_kernel_block_m_below_128(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    NUM_STAGES: gl.constexpr,
):  # fmt: skip
    # coalesced access to a_ptr
    a_layout: gl.constexpr = coalesced(
        [BLOCK_M, BLOCK_K], [1, 0], a_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    # coalesced access to b_ptr
    b_layout: gl.constexpr = coalesced(
        [BLOCK_K, BLOCK_N], [1, 0], b_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps()
    )
    mma_layout: gl.constexpr = gl.amd.AMDMFMALayout(
        3, [32, 32, 8], True, tile_warps([BLOCK_M, BLOCK_N], gl.num_warps(), [32, 32])
    )
    a_shared: gl.constexpr = banked_layout([BLOCK_M, BLOCK_K], [1, 0], a_ptr.dtype.element_ty.primitive_bitwidth, 4)
    b_shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    lhs_layout: gl.constexpr = gl.DotOperandLayout(0, mma_layout, 4)
    rhs_layout: gl.constexpr = gl.DotOperandLayout(1, mma_layout, 4)

    pid = gl.program_id(0)
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    # down GROUP_M tiles before going right
    group = pid // (GROUP_M * tiles_n)
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + pid % rows
    pid_n = pid % (GROUP_M * tiles_n) // rows

    offs_m = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_layout))
    offs_m_mma = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mma_layout))
    offs_n = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_layout))
    offs_n_mma = pid_n * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mma_layout))
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_layout))
    offs_k_b = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_layout))
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k_b[:, None] * stride_bk + offs_n[None, :]
    in_m = offs_m[:, None] < M
    in_m_mma = offs_m_mma[:, None] < M
    in_n = offs_n[None, :] < N
    in_n_mma = offs_n_mma[None, :] < N

    acc = gl.zeros((BLOCK_M, BLOCK_N), dtype=gl.float32, layout=mma_layout)
    gl.static_assert(NUM_STAGES > 1, "no load would run ahead")
    # rings of NUM_STAGES - 1 tiles; loads run NUM_STAGES - 1 iterations ahead
    a_buf = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_STAGES - 1, BLOCK_M, BLOCK_K], a_shared)
    b_buf = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_STAGES - 1, BLOCK_K, BLOCK_N], b_shared)
    steps = gl.cdiv(K, BLOCK_K)
    drain = gl.maximum(steps - (NUM_STAGES - 1), 0)
    for k in gl.static_range(NUM_STAGES - 1):
        if k > 0:
            a_ptrs += BLOCK_K
            b_ptrs += BLOCK_K * stride_bk
        a_first = gl.load(a_ptrs, mask=in_m & (offs_k[None, :] < K - k * BLOCK_K) & (k < steps), other=0.0)
        b_first = gl.load(b_ptrs, mask=in_n & (offs_k_b[:, None] < K - k * BLOCK_K) & (k < steps), other=0.0)
        a_buf.index(k).store(a_first)
        b_buf.index(k).store(b_first)

    slot = NUM_STAGES - 2
    # the slots that tiles are in, the next one to read first
    a_slots = ()
    b_slots = ()
    for s in gl.static_range(NUM_STAGES - 1):
        a_slots = a_slots + (a_buf.index(s),)
        b_slots = b_slots + (b_buf.index(s),)
    for k in range(0, drain):
        # the last step may be a short one
        a = a_slots[0].load(lhs_layout)
        # tiles of an iteration ahead come to registers
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
        ahead = k + NUM_STAGES - 1
        a_next = gl.load(a_ptrs, mask=in_m & (offs_k[None, :] < K - ahead * BLOCK_K), other=0.0)
        b = b_slots[0].load(rhs_layout)
        b_next = gl.load(b_ptrs, mask=in_n & (offs_k_b[:, None] < K - ahead * BLOCK_K), other=0.0)
        acc = gl.amd.cdna3.mfma(a, b, acc)
        # and take the places of those that have been read
        slot = gl.where(slot + 1 >= NUM_STAGES - 1, 0, slot + 1)
        a_slots = a_slots[1:] + (a_buf.index(slot),)
        a_slots[-1].store(a_next)
        b_slots = b_slots[1:] + (b_buf.index(slot),)
        b_slots[-1].store(b_next)
    # the last iterations, whose tiles have all come
    for s in gl.static_range(NUM_STAGES - 1):
        exists = s < steps
        a = a_slots[0].load(lhs_layout)
        b = b_slots[0].load(rhs_layout)
        if exists:
            acc = gl.amd.cdna3.mfma(a, b, acc)
        a_slots = a_slots[1:] + a_slots[:1]
        b_slots = b_slots[1:] + b_slots[:1]

    c_ptrs = c_ptr + offs_m_mma[:, None] * stride_cm + offs_n_mma[None, :]
    gl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m_mma & in_n_mma)


@triton.heuristics({"NUM_STAGES": lambda args: args.get("NUM_STAGES", args.get("num_stages", 3))})
@gluon.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    NUM_STAGES: gl.constexpr = 3,
):  # fmt: skip
    if BLOCK_M >= 128:
        matmul_kernel_block_m_from_128(
            a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M,
            NUM_STAGES=NUM_STAGES
        )
    else:
        matmul_kernel_block_m_below_128(
            a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M,
            NUM_STAGES=NUM_STAGES
        )


def matmul(a, b, c):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )  # fmt: skip
