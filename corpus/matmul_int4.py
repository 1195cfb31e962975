"""Matrix products with weights of four or eight bits, which become floats in the loop that needs them."""

import torch
import triton
import triton.language as tl


@triton.jit
def packed_int4_matmul_kernel(
    a_ptr, qweight_ptr, scales_ptr, qzeros_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_qk, stride_qn,
    stride_sg, stride_sn,
    stride_zg, stride_zn,
    stride_cm, stride_cn,
    GROUP_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):  # fmt: skip
    """c = a @ ((q - zero) * scale), with a scale and a zero for GROUP_SIZE rows of a column of q.

    Eight rows of q are one row of int32 in qweight, the first in the lowest bits; eight columns of the zeros are one
    column of qzeros. K is a multiple of BLOCK_K.
    """
    pid = tl.program_id(axis=0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_in_group = GROUP_M * tiles_n
    first_m = pid // tiles_in_group * GROUP_M
    group_rows = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % tiles_in_group) % group_rows
    pid_n = (pid % tiles_in_group) // group_rows

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_mask = offs_m[:, None] < M
    n_mask = offs_n < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    # one int32 is read by the eight rows that it holds
    q_ptrs = qweight_ptr + (offs_k[:, None] // 8) * stride_qk + offs_n[None, :] * stride_qn
    scale_ptrs = scales_ptr + offs_n * stride_sn
    zero_ptrs = qzeros_ptr + (offs_n // 8) * stride_zn
    weight_shift = (offs_k % 8) * 4
    zero_shift = (offs_n % 8) * 4

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        group = k * BLOCK_K // GROUP_SIZE
        scales = tl.load(scale_ptrs + group * stride_sg, mask=n_mask, other=0.0)
        zeros = tl.load(zero_ptrs + group * stride_zg, mask=n_mask, other=0)
        zeros = (zeros >> zero_shift) & 0xF

        a = tl.load(a_ptrs, mask=a_mask, other=0.0)
        q = tl.load(q_ptrs, mask=n_mask[None, :], other=0)
        q = (q >> weight_shift[:, None]) & 0xF
        b = ((q - zeros[None, :]) * scales[None, :]).to(a.dtype)
        acc = tl.dot(a, b, acc)

        a_ptrs += BLOCK_K * stride_ak
        q_ptrs += (BLOCK_K // 8) * stride_qk

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=a_mask & n_mask[None, :])


@triton.jit
def packed_columns_matmul_kernel(
    a_ptr, qweight_ptr, scales_ptr, qzeros_ptr, c_ptr,
    M, N, K,
    GROUP_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):  # fmt: skip
    """The same for weights packed along N, in the order 0 2 4 6 1 3 5 7 of columns; SPLIT_K programs add up a tile.

    Every int32 is loaded once, and doubled three times to make its eight columns. N is a multiple of 8.
    """
    pid = tl.program_id(0)
    pid_k = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offs_m = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    pid_n = pid % tiles_n
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_packed = pid_n * (BLOCK_N // 8) + tl.arange(0, BLOCK_N // 8)
    m_mask = offs_m < M
    n_mask = offs_n < N
    packed_mask = offs_packed < N // 8

    # which four bits are a column's: 0, 4, 1, 5, 2, 6, 3, 7
    column = tl.arange(0, BLOCK_N) % 8
    shifts = ((column % 2) * 4 + column // 2) * 4

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(pid_k * BLOCK_K, K, BLOCK_K * SPLIT_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        k_mask = offs_k < K
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :], mask=m_mask[:, None] & k_mask[None, :], other=0.0)

        q_ptrs = qweight_ptr + offs_k[:, None] * (N // 8) + offs_packed[None, :]
        q = tl.load(q_ptrs, mask=k_mask[:, None] & packed_mask[None, :], other=0)
        q = tl.interleave(q, q)
        q = tl.interleave(q, q)
        q = tl.interleave(q, q)
        q = (q >> shifts[None, :]) & 0xF

        # a block is within one group of rows: its scales and zeros are rows too
        group = start // GROUP_SIZE
        z = tl.load(qzeros_ptr + group * (N // 8) + offs_packed, mask=packed_mask, other=0)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = (z >> shifts) & 0xF
        scales = tl.load(scales_ptr + group * N + offs_n, mask=n_mask, other=0.0)

        b = ((q - z[None, :]) * scales[None, :]).to(a.dtype)
        acc += tl.dot(a, b)

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.atomic_add(c_ptrs, acc, mask=m_mask[:, None] & n_mask[None, :])


@triton.jit
def low_nibble(x):
    """The four lower bits of a byte, as a number from -8 to 7."""
    return (x.to(tl.int8) << 4).to(tl.int8) >> 4


@triton.jit
def high_nibble(x):
    return x.to(tl.int8) >> 4


@triton.jit
def nibble_matmul_kernel(
    a_ptr, w_ptr, scale_ptr, c_ptr,
    M, N, K,
    stride_am, stride_wn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c = a @ (w * scale).T with two signed weights of a row in a byte, the even one in its lower half."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    HALF: tl.constexpr = BLOCK_K // 2
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    offs_byte = tl.arange(0, HALF)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    w_ptrs = w_ptr + offs_n[:, None] * stride_wn + offs_byte[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
        packed = tl.load(w_ptrs, mask=offs_byte[None, :] * 2 < K - k, other=0)
        w = tl.join(low_nibble(packed), high_nibble(packed)).reshape(BLOCK_N, BLOCK_K)
        acc = tl.dot(a, w.to(a.dtype).trans(1, 0), acc)
        a_ptrs += BLOCK_K
        w_ptrs += HALF

    scale = tl.load(scale_ptr + offs_n)
    acc *= scale[None, :]
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + offs_cm[:, None] * stride_cm + offs_cn[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 128, "BLOCK_K": 64}, num_stages=4, num_warps=4),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 128}, num_stages=3, num_warps=4),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, num_stages=3, num_warps=8),
    ],
    key=["M", "N", "K"],
)
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def int8_weight_matmul_kernel(
    a_ptr, w_ptr, scale_ptr, bias_ptr, c_ptr,
    M, N, K,
    stride_am, stride_wk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    """c = a @ w * scale + bias with int8 weights, one scale a column, applied once after the sum."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rm % M)[:, None] * stride_am + rk[None, :]
    w_ptrs = w_ptr + rk[:, None] * stride_wk + (rn % N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            a = tl.load(a_ptrs)
            w = tl.load(w_ptrs)
        else:
            a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BLOCK_K, other=0.0)
            w = tl.load(w_ptrs, mask=rk[:, None] < K - k * BLOCK_K, other=0)
        acc = tl.dot(a, w.to(a.dtype), acc)
        a_ptrs += BLOCK_K
        w_ptrs += BLOCK_K * stride_wk

    acc *= tl.load(scale_ptr + rn, mask=rn < N, other=0.0)[None, :]
    if HAS_BIAS:
        acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
    c_ptrs = c_ptr + rm[:, None] * stride_cm + rn[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def packed_int4_matmul(
    a: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor, group_size: int = 128
) -> torch.Tensor:
    """a: (M, K); qweight: (K / 8, N); scales: (K / group_size, N); qzeros: (K / group_size, N / 8)."""
    (M, K), N = a.shape, qweight.shape[1]
    assert K % group_size == 0
    assert group_size % 32 == 0
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    BLOCK_M = 16 if M <= 16 else 64
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, 128),)
    packed_int4_matmul_kernel[grid](
        a, qweight, scales, qzeros, c, M, N, K,
        *a.stride(), *qweight.stride(), *scales.stride(), *qzeros.stride(), *c.stride(),
        GROUP_SIZE=group_size, BLOCK_M=BLOCK_M, BLOCK_N=128, BLOCK_K=32, GROUP_M=8, num_warps=4, num_stages=4,
    )  # fmt: skip
    return c


def packed_columns_matmul(
    a: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor, splits: int = 4
) -> torch.Tensor:
    """a: (M, K); qweight: (K, N / 8); scales: (groups, N); qzeros: (groups, N / 8)."""
    (M, K), N = a.shape, scales.shape[1]
    c = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    grid = (triton.cdiv(M, 16) * triton.cdiv(N, 128), splits)
    packed_columns_matmul_kernel[grid](
        a.contiguous(), qweight, scales, qzeros, c, M, N, K,
        GROUP_SIZE=K // scales.shape[0], BLOCK_M=16, BLOCK_N=128, BLOCK_K=64, SPLIT_K=splits, num_warps=4,
    )  # fmt: skip
    return c.to(a.dtype)


def nibble_matmul(a: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """a: (M, K); weight: (N, K / 2) bytes; scale: (N)."""
    (M, K), N = a.shape, weight.shape[0]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 128))
    nibble_matmul_kernel[grid](
        a, weight, scale, c, M, N, K, a.stride(0), weight.stride(0), c.stride(0),
        BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=3,
    )  # fmt: skip
    return c


def int8_weight_matmul(
    a: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    (M, K), N = a.shape, weight.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]), triton.cdiv(N, META["BLOCK_N"]))
    int8_weight_matmul_kernel[grid](
        a, weight, scale, bias, c, M, N, K, a.stride(0), weight.stride(0), c.stride(0), HAS_BIAS=bias is not None
    )
    return c
