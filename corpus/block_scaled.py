"""Matmuls of microscaled operands (OCP MX): 8- and 4-bit floats, with a power of two for every 32 along K."""

import torch
import triton
import triton.language as tl


@triton.jit
def mxfp8_matmul_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bn, stride_cm,
    stride_a_scale, stride_b_scale,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """C = A B^T: A [M, K] and B [N, K] in 8 bits, scales [M, K / 32] and [N, K / 32] in e8m0; K % 32 == 0."""
    GROUP: tl.constexpr = 32
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_scale = tl.arange(0, BLOCK_K // GROUP)

    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]
    a_scale_ptrs = a_scale_ptr + offs_m[:, None] * stride_a_scale + offs_scale[None, :]
    # scales of the right operand come as [N, K / 32] too
    b_scale_ptrs = b_scale_ptr + offs_n[:, None] * stride_b_scale + offs_scale[None, :]
    m_mask = offs_m < M
    n_mask = offs_n < N

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        k_mask = k + offs_k < K
        scale_mask = k // GROUP + offs_scale < K // GROUP
        a = tl.load(a_ptrs, mask=m_mask[:, None] & k_mask[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=k_mask[:, None] & n_mask[None, :], other=0.0)
        a_scale = tl.load(a_scale_ptrs, mask=m_mask[:, None] & scale_mask[None, :], other=0)
        b_scale = tl.load(b_scale_ptrs, mask=n_mask[:, None] & scale_mask[None, :], other=0)
        accumulator = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, accumulator)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
        a_scale_ptrs += BLOCK_K // GROUP
        b_scale_ptrs += BLOCK_K // GROUP

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=m_mask[:, None] & n_mask[None, :])


@triton.jit
def mxfp4_matmul_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr,
    M, N, K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):  # fmt: skip
    """C = A B^T with two 4-bit floats a byte: A [M, K / 2] and B [N, K / 2], the even one in the lower bits."""
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_m = min(num_pid_m - first_m, GROUP_M)
    pid_m = first_m + pid % (GROUP_M * num_pid_n) % group_m
    pid_n = pid % (GROUP_M * num_pid_n) // group_m

    # rows past an edge wrap around, so that only the stores are masked
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BLOCK_K)):
        offs_byte = k * (BLOCK_K // 2) + tl.arange(0, BLOCK_K // 2)
        offs_scale = k * (BLOCK_K // 32) + tl.arange(0, BLOCK_K // 32)
        a = tl.load(a_ptr + offs_m[:, None] * (K // 2) + offs_byte[None, :], mask=offs_byte[None, :] < K // 2, other=0)
        b = tl.load(b_ptr + offs_n[:, None] * (K // 2) + offs_byte[None, :], mask=offs_byte[None, :] < K // 2, other=0)
        scale_mask = offs_scale[None, :] < K // 32
        a_scale = tl.load(a_scale_ptr + offs_m[:, None] * (K // 32) + offs_scale[None, :], mask=scale_mask, other=0)
        b_scale = tl.load(b_scale_ptr + offs_n[:, None] * (K // 32) + offs_scale[None, :], mask=scale_mask, other=0)
        acc = tl.dot_scaled(a, a_scale, "e2m1", b.T, b_scale, "e2m1", acc)

    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptr + offs_cm[:, None] * N + offs_cn[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)


@triton.jit
def mxfp4_weight_matmul_kernel(
    x_ptr, w_ptr, w_scale_ptr, bias_ptr, y_ptr,
    M, N, K,
    stride_xm, stride_ym,
    FORMAT: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):  # fmt: skip
    """y = x W^T + bias, with activations in 16 bits, which have no scales, and weights [N, K / 2] in 4."""
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_byte = tl.arange(0, BLOCK_K // 2)
    offs_scale = tl.arange(0, BLOCK_K // 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)[None, :]
    for k in range(0, K, BLOCK_K):
        x = tl.load(
            x_ptr + offs_m[:, None] * stride_xm + k + offs_k[None, :],
            mask=(offs_m[:, None] < M) & (k + offs_k[None, :] < K),
            other=0.0,
        )
        w = tl.load(
            w_ptr + offs_n[None, :] * (K // 2) + k // 2 + offs_byte[:, None],
            mask=(offs_n[None, :] < N) & (k // 2 + offs_byte[:, None] < K // 2),
            other=0,
        )
        w_scale = tl.load(
            w_scale_ptr + offs_n[:, None] * (K // 32) + k // 32 + offs_scale[None, :],
            mask=(offs_n[:, None] < N) & (k // 32 + offs_scale[None, :] < K // 32),
            other=0,
        )
        acc = tl.dot_scaled(x, None, FORMAT, w, w_scale, "e2m1", acc=acc, fast_math=True)
    y_ptrs = y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


_FORMATS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "bfloat16": "bf16", "float16": "fp16"}


def _format(x: torch.Tensor) -> str:
    return _FORMATS[str(x.dtype).removeprefix("torch.")]


def mxfp8_matmul(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[0]
    mxfp8_matmul_kernel[(triton.cdiv(M, 128), triton.cdiv(N, 128))](
        a, a_scale, b, b_scale, out, M, N, K, a.stride(0), b.stride(0), out.stride(0),
        a_scale.stride(0), b_scale.stride(0), A_FORMAT=_format(a), B_FORMAT=_format(b),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=128, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


def mxfp4_matmul(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    M, N, K = a.shape[0], b.shape[0], 2 * a.shape[1]
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)
    mxfp4_matmul_kernel[grid](
        a, a_scale, b, b_scale, out, M, N, K,
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=128, GROUP_M=8, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


def mxfp4_linear(
    x: torch.Tensor, w: torch.Tensor, w_scale: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    (M, K), N = x.shape, w.shape[0]
    y = torch.empty(M, N, device=x.device, dtype=x.dtype)
    block_m = 16 if M <= 16 else 64
    mxfp4_weight_matmul_kernel[(triton.cdiv(N, 128), triton.cdiv(M, block_m))](
        x, w, w_scale, bias, y, M, N, K, x.stride(0), y.stride(0), FORMAT=_format(x), HAS_BIAS=bias is not None,
        BLOCK_M=block_m, BLOCK_N=128, BLOCK_K=128, num_warps=4, num_stages=3,
    )  # fmt: skip
    return y
