"""Matrix products with more in one launch: activations, gates, split sums, batches, and programs that stay."""

import torch
import triton
import triton.language as tl


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    elif ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    return x


@triton.jit
def tile_position(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile, in groups of GROUP_M rows of tiles."""
    group = tile // (GROUP_M * tiles_n)
    first = group * GROUP_M
    rows = tl.minimum(tiles_m - first, GROUP_M)
    within = tile % (GROUP_M * tiles_n)
    return first + within % rows, within // rows


@triton.jit
def linear_activation_kernel(
    x_ptr, w_ptr, bias_ptr, residual_ptr, y_ptr,
    M, N, K,
    stride_xm, stride_wn, stride_rm, stride_ym,
    ACTIVATION: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):  # fmt: skip
    """y = activation(x @ w.T + bias) + residual, with w as a linear layer holds it."""
    pid_m, pid_n = tile_position(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    m_mask = rm < M
    n_mask = rn < N

    x_ptrs = x_ptr + rm[:, None] * stride_xm + rk[None, :]
    w_ptrs = w_ptr + rk[:, None] + rn[None, :] * stride_wn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=m_mask[:, None] & (rk[None, :] < K - k), other=0.0)
        w = tl.load(w_ptrs, mask=(rk[:, None] < K - k) & n_mask[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K

    if HAS_BIAS:
        bias = tl.load(bias_ptr + rn, mask=n_mask, other=0.0).to(tl.float32)
        acc += bias[None, :]
    acc = activate(acc, ACTIVATION)
    mask = m_mask[:, None] & n_mask[None, :]
    if HAS_RESIDUAL:
        residual = tl.load(residual_ptr + rm[:, None] * stride_rm + rn[None, :], mask=mask, other=0.0)
        acc += residual.to(tl.float32)
    tl.store(y_ptr + rm[:, None] * stride_ym + rn[None, :], acc.to(y_ptr.dtype.element_ty), mask=mask)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}, num_stages=3, num_warps=8),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, num_stages=4, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def glu_kernel(
    x_ptr, gate_ptr, up_ptr, out_ptr,
    M, N, K,
    stride_xm, stride_wk, stride_om,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out = activation(x @ gate) * (x @ up): each tile of x is loaded once for both products."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_n = tl.max_contiguous(tl.multiple_of(offs_n, BLOCK_N), BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :]
    w_offsets = offs_k[:, None] * stride_wk + offs_n[None, :]
    gate_ptrs = gate_ptr + w_offsets
    up_ptrs = up_ptr + w_offsets

    gate_acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up_acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        k_mask = offs_k < K - k * BLOCK_K
        x = tl.load(x_ptrs, mask=k_mask[None, :], other=0.0)
        gate = tl.load(gate_ptrs, mask=k_mask[:, None], other=0.0)
        up = tl.load(up_ptrs, mask=k_mask[:, None], other=0.0)
        gate_acc += tl.dot(x, gate)
        up_acc += tl.dot(x, up)
        x_ptrs += BLOCK_K
        gate_ptrs += BLOCK_K * stride_wk
        up_ptrs += BLOCK_K * stride_wk

    out = activate(gate_acc, ACTIVATION) * up_acc
    offs_om = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_on = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_om[:, None] < M) & (offs_on[None, :] < N)
    tl.store(out_ptr + offs_om[:, None] * stride_om + offs_on[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.heuristics({"EVEN_K": lambda args: args["K"] % (args["BLOCK_K"] * args["SPLIT_K"]) == 0})
@triton.jit
def split_k_matmul_kernel(
    A, B, C,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
    EVEN_K: tl.constexpr,
):  # fmt: skip
    """C += A @ B for few rows and a long sum, whose every SPLIT_K-th block one program adds up."""
    pid = tl.program_id(0)
    pid_k = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    rm = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    A = A + (ram[:, None] * stride_am + rk[None, :])
    B = B + (rk[:, None] * stride_bk + rbn[None, :])

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        if EVEN_K:
            a = tl.load(A)
            b = tl.load(B)
        else:
            k_left = K - k * (BLOCK_K * SPLIT_K)
            a = tl.load(A, mask=rk[None, :] < k_left, other=0.0)
            b = tl.load(B, mask=rk[:, None] < k_left, other=0.0)
        acc = tl.dot(a, b, acc)
        A += BLOCK_K * SPLIT_K
        B += BLOCK_K * SPLIT_K * stride_bk

    c_ptrs = C + rm[:, None] * stride_cm + rn[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(c_ptrs, acc.to(C.dtype.element_ty), mask=mask)
    else:
        tl.atomic_add(c_ptrs, acc.to(C.dtype.element_ty), mask=mask, sem="relaxed")


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_ab, stride_am, stride_ak,
    stride_bb, stride_bk, stride_bn,
    stride_cb, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c[i] = a[i] @ b[i]: the last axis of the grid is the batch."""
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * stride_ab
    b_ptr += batch * stride_bb
    c_ptr += batch * stride_cb
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K, num_stages=2):
        offs_k = k + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
            mask=(offs_m[:, None] < M) & (offs_k[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
            mask=(offs_k[:, None] < K) & (offs_n[None, :] < N),
            other=0.0,
        )
        acc += tl.dot(a, b)
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@triton.jit
def small_matrices_kernel(
    a_ptr, b_ptr, c_ptr,
    batch, M, N, K,
    BATCH: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The same for many contiguous matrices that fit a tile: BATCH of them a program, in one product of three axes."""
    offs_b = (tl.program_id(0) * BATCH + tl.arange(0, BATCH))[:, None, None]
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_mask = (offs_b < batch) & (offs_m[None, :, None] < M) & (offs_k[None, None, :] < K)
    a = tl.load(a_ptr + offs_b * (M * K) + offs_m[None, :, None] * K + offs_k[None, None, :], mask=a_mask, other=0.0)
    b_mask = (offs_b < batch) & (offs_k[None, :, None] < K) & (offs_n[None, None, :] < N)
    b = tl.load(b_ptr + offs_b * (K * N) + offs_k[None, :, None] * N + offs_n[None, None, :], mask=b_mask, other=0.0)
    c = tl.dot(a, b)
    c_mask = (offs_b < batch) & (offs_m[None, :, None] < M) & (offs_n[None, None, :] < N)
    c_ptrs = c_ptr + offs_b * (M * N) + offs_m[None, :, None] * N + offs_n[None, None, :]
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=c_mask)


@triton.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    NUM_SMS: tl.constexpr,
    FLATTEN: tl.constexpr,
):  # fmt: skip
    """c = a @ b with one program a multiprocessor, each of which takes every NUM_SMS-th tile.

    FLATTEN makes one loop of the two, so that the loads of a tile start before the tile before it is stored.
    """
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    k_tiles = tl.cdiv(K, BLOCK_K)
    offs_k = tl.arange(0, BLOCK_K)

    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, NUM_SMS, flatten=FLATTEN):
        pid_m, pid_n = tile_position(tile, tiles_m, tiles_n, GROUP_M)
        start_m = pid_m * BLOCK_M
        start_n = pid_n * BLOCK_N
        offs_am = start_m + tl.arange(0, BLOCK_M)
        offs_bn = start_n + tl.arange(0, BLOCK_N)
        offs_am = tl.where(offs_am < M, offs_am, 0)
        offs_bn = tl.where(offs_bn < N, offs_bn, 0)
        offs_am = tl.max_contiguous(tl.multiple_of(offs_am, BLOCK_M), BLOCK_M)
        offs_bn = tl.max_contiguous(tl.multiple_of(offs_bn, BLOCK_N), BLOCK_N)

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(k_tiles):
            k = ki * BLOCK_K + offs_k
            a = tl.load(a_ptr + (offs_am[:, None] * stride_am + k[None, :] * stride_ak), mask=k[None, :] < K, other=0.0)
            b = tl.load(b_ptr + (k[:, None] * stride_bk + offs_bn[None, :] * stride_bn), mask=k[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)

        offs_cm = start_m + tl.arange(0, BLOCK_M)
        offs_cn = start_n + tl.arange(0, BLOCK_N)
        c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


def linear_activation(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    activation: str | None = None,
) -> torch.Tensor:
    (M, K), N = x.shape, weight.shape[0]
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
    linear_activation_kernel[grid](
        x, weight, bias, residual, y, M, N, K,
        x.stride(0), weight.stride(0), 0 if residual is None else residual.stride(0), y.stride(0),
        ACTIVATION=activation, HAS_BIAS=bias is not None, HAS_RESIDUAL=residual is not None,
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )  # fmt: skip
    return y


def swiglu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return _glu(x, gate, up, "silu")


def geglu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return _glu(x, gate, up, "gelu")


def _glu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, activation: str) -> torch.Tensor:
    assert gate.stride() == up.stride()
    (M, K), N = x.shape, gate.shape[1]
    out = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]), triton.cdiv(N, META["BLOCK_N"]))
    glu_kernel[grid](
        x, gate, up, out, M, N, K, x.stride(0), gate.stride(0), out.stride(0), ACTIVATION=activation
    )  # fmt: skip
    return out


def split_k_matmul(a: torch.Tensor, b: torch.Tensor, splits: int = 8) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[1]
    # programs add to it
    c = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    grid = (triton.cdiv(M, 16) * triton.cdiv(N, 128), splits)
    split_k_matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=16, BLOCK_N=128, BLOCK_K=64, SPLIT_K=splits, num_warps=4, num_stages=4,
    )  # fmt: skip
    return c


def batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    batch, M, K = a.shape
    N = b.shape[2]
    c = torch.empty((batch, M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(N, 128), triton.cdiv(M, 64), batch)
    batched_matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), BLOCK_M=64, BLOCK_N=128, BLOCK_K=32, num_warps=4
    )  # fmt: skip
    return c


def small_matrices(a: torch.Tensor, b: torch.Tensor, at_once: int = 4) -> torch.Tensor:
    a, b = a.contiguous(), b.contiguous()
    batch, M, K = a.shape
    N = b.shape[2]
    c = torch.empty((batch, M, N), device=a.device, dtype=a.dtype)
    blocks = [max(16, triton.next_power_of_2(extent)) for extent in (M, N, K)]
    small_matrices_kernel[(triton.cdiv(batch, at_once),)](a, b, c, batch, M, N, K, at_once, *blocks, num_warps=4)
    return c


def persistent_matmul(a: torch.Tensor, b: torch.Tensor, flatten: bool = True) -> torch.Tensor:
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    num_sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    grid = (min(num_sms, triton.cdiv(M, 128) * triton.cdiv(N, 256)),)
    persistent_matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8, NUM_SMS=num_sms, FLATTEN=flatten, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c
