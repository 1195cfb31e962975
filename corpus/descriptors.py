"""Tensor descriptors (TMA on NVIDIA): matmuls with descriptors made in the kernel and by the host, and attention."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def descriptor_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """C = A B^T, with rows of A and of B contiguous along K; loads past an edge give zero, stores there nothing."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_bn, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[stride_cm, 1], block_shape=[BLOCK_M, BLOCK_N])

    offs_m = pid_m * BLOCK_M
    offs_n = pid_n * BLOCK_N
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for offs_k in range(0, K, BLOCK_K):
        a = a_desc.load([offs_m, offs_k])
        b = b_desc.load([offs_n, offs_k])
        accumulator = tl.dot(a, b.T, accumulator)
    c_desc.store([offs_m, offs_n], accumulator.to(c_ptr.dtype.element_ty))


@triton.jit
def _tile_place(tile_id, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Row and column of a tile; GROUP_M rows of tiles go by columns, so that they share B in the L2 cache."""
    in_group = GROUP_M * num_pid_n
    first_m = tile_id // in_group * GROUP_M
    group_m = min(num_pid_m - first_m, GROUP_M)
    return first_m + tile_id % in_group % group_m, tile_id % in_group // group_m


@triton.jit
def persistent_descriptor_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    NUM_PROGRAMS: tl.constexpr,
    SUBTILE: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """As above for contiguous matrices, each program taking every NUM_PROGRAMS-th tile.

    With SUBTILE, a tile is stored in two halves, which takes half the shared memory.
    """
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N // 2 if SUBTILE else BLOCK_N])
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)

    for tile_id in tl.range(
        tl.program_id(0), num_pid_m * num_pid_n, NUM_PROGRAMS, flatten=True, warp_specialize=WARP_SPECIALIZE
    ):
        pid_m, pid_n = _tile_place(tile_id, num_pid_m, num_pid_n, GROUP_M)
        offs_am = pid_m * BLOCK_M
        offs_bn = pid_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(k_tiles):
            a = a_desc.load([offs_am, ki * BLOCK_K])
            b = b_desc.load([offs_bn, ki * BLOCK_K])
            acc = tl.dot(a, b.T, acc)

        if SUBTILE:
            halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
            acc0, acc1 = tl.split(halves)
            c_desc.store([offs_am, offs_bn], acc0.to(c_ptr.dtype.element_ty))
            c_desc.store([offs_am, offs_bn + BLOCK_N // 2], acc1.to(c_ptr.dtype.element_ty))
        else:
            c_desc.store([offs_am, offs_bn], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def host_descriptor_matmul_kernel(
    a_desc, b_desc, c_desc,
    M, N, K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """C = A B^T, with descriptors made by the host; B is [N, K]."""
    pid_m, pid_n = _tile_place(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(tl.cdiv(K, BLOCK_K), warp_specialize=WARP_SPECIALIZE):
        a = a_desc.load([pid_m * BLOCK_M, k * BLOCK_K])
        b = b_desc.load([pid_n * BLOCK_N, k * BLOCK_K])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


@triton.jit
def descriptor_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    sm_scale,
    n_heads, seq_len,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Attention over contiguous [batch, heads, length, HEAD_DIM], a descriptor for each head."""
    start_m = tl.program_id(0) * BLOCK_M
    off_bh = tl.program_id(1) * n_heads + tl.program_id(2)
    base = off_bh.to(tl.int64) * seq_len * HEAD_DIM
    q_desc = tl.make_tensor_descriptor(q_ptr + base, [seq_len, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_M, HEAD_DIM])
    k_desc = tl.make_tensor_descriptor(k_ptr + base, [seq_len, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_N, HEAD_DIM])
    v_desc = tl.make_tensor_descriptor(v_ptr + base, [seq_len, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_N, HEAD_DIM])
    o_desc = tl.make_tensor_descriptor(o_ptr + base, [seq_len, HEAD_DIM], [HEAD_DIM, 1], [BLOCK_M, HEAD_DIM])

    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    # log2(e): exp2 takes its place in the products' scale
    qk_scale = sm_scale * 1.44269504
    q = q_desc.load([start_m, 0])

    end = tl.minimum(start_m + BLOCK_M, seq_len) if CAUSAL else seq_len
    for start_n in tl.range(0, end, BLOCK_N):
        k = k_desc.load([start_n, 0]).T
        qk = tl.dot(q, k)
        # keys past the end come as zeros, and have to count for none
        valid = (start_n + offs_n < seq_len)[None, :]
        if CAUSAL:
            valid = valid & (offs_m[:, None] >= start_n + offs_n[None, :])
        qk = tl.where(valid, qk * qk_scale, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([start_n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij

    tl.store(lse_ptr + off_bh * seq_len + offs_m, m_i + tl.math.log2(l_i), mask=offs_m < seq_len)
    o_desc.store([start_m, 0], (acc / l_i[:, None]).to(o_ptr.dtype.element_ty))


def _allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    return torch.empty(size, device="cuda", dtype=torch.int8)


def descriptor_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b.T; strides of rows are multiples of 16 bytes."""
    (M, K), N = a.shape, b.shape[0]
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    triton.set_allocator(_allocate)
    descriptor_matmul_kernel[(triton.cdiv(M, 128), triton.cdiv(N, 128))](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c


def persistent_descriptor_matmul(a: torch.Tensor, b: torch.Tensor, warp_specialize: bool = True) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[0]
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    triton.set_allocator(_allocate)
    grid = lambda meta: (min(programs, triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])),)
    persistent_descriptor_matmul_kernel[grid](
        a, b, c, M, N, K, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, NUM_PROGRAMS=programs,
        SUBTILE=True, WARP_SPECIALIZE=warp_specialize, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c


def host_descriptor_matmul(a: torch.Tensor, b: torch.Tensor, warp_specialize: bool = False) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[0]
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    block_m, block_n, block_k = 128, 128, 64
    host_descriptor_matmul_kernel[(triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, [block_m, block_n]),
        M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, WARP_SPECIALIZE=warp_specialize,
        num_warps=4, num_stages=4,
    )  # fmt: skip
    return c


def descriptor_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output, and the base-2 logarithm of each row's sum."""
    batch, heads, seq_len, head_dim = q.shape
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, seq_len, device=q.device, dtype=torch.float32)
    triton.set_allocator(_allocate)
    descriptor_attention_kernel[(triton.cdiv(seq_len, 128), batch, heads)](
        q, k, v, o, lse, head_dim**-0.5, heads, seq_len,
        CAUSAL=causal, HEAD_DIM=head_dim, BLOCK_M=128, BLOCK_N=64, num_warps=8, num_stages=3,
    )  # fmt: skip
    return o, lse
