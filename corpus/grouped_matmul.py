"""Products of rows that go to different matrices: mixtures of experts, and groups of any length."""

import torch
import triton
import triton.language as tl


@triton.jit
def store_zeros(c_ptr, rows, cols, stride_cm, mask, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    zeros = tl.zeros((BLOCK_M, BLOCK_N), dtype=c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], zeros, mask=mask)


@triton.jit
def experts_up_kernel(
    a_ptr, b_ptr, c_ptr,
    token_ids_ptr, expert_ids_ptr, num_padded_ptr,
    num_valid, N, K,
    stride_am, stride_ak,
    stride_be, stride_bk, stride_bn,
    stride_cm,
    TOP_K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):  # fmt: skip
    """c[i] = a[token_ids[i] // TOP_K] @ b[expert of i]: the first product of a layer of experts.

    Rows are sorted by expert and padded, so that each block of BLOCK_M has one: expert_ids[block]. Ids from num_valid
    on are padding, which is left alone; the expert -1 is another device's, and gives zeros.
    """
    pid = tl.program_id(axis=0)
    num_padded = tl.load(num_padded_ptr)
    tiles_m = tl.cdiv(num_padded, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_in_group = GROUP_M * tiles_n
    first_m = pid // tiles_in_group * GROUP_M
    # the grid is for the longest case
    if first_m >= tiles_m:
        return
    group_rows = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % tiles_in_group) % group_rows
    pid_n = (pid % tiles_in_group) // group_rows
    if pid_n >= tiles_n:
        return

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    token_ids = tl.load(token_ids_ptr + offs_m)
    token_mask = token_ids < num_valid
    c_mask = token_mask[:, None] & (offs_n[None, :] < N)
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    if expert == -1:
        store_zeros(c_ptr, offs_m, offs_n, stride_cm, c_mask, BLOCK_M, BLOCK_N)
        return

    offs_bn = (offs_n % N).to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (token_ids[:, None] // TOP_K * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + expert * stride_be + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=token_mask[:, None] & (offs_k[None, :] < K - k * BLOCK_K), other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)


@triton.jit
def experts_down_kernel(
    a_ptr, b_ptr, weights_ptr, out_ptr,
    token_ids_ptr, expert_ids_ptr,
    num_valid, N, K,
    stride_am, stride_be, stride_bn, stride_om,
    TOP_K: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out[token_ids[i] // TOP_K] += weight of i * (a[i] @ b[expert of i].T): the second, added up over experts."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    token_ids = tl.load(token_ids_ptr + offs_m)
    token_mask = token_ids < num_valid
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    b_ptr += expert * stride_be

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        a_offsets = offs_m[:, None] * stride_am + offs_k[None, :]
        a = tl.load(a_ptr + a_offsets, mask=token_mask[:, None] & (offs_k[None, :] < K), other=0.0)
        b_offsets = offs_n[None, :] * stride_bn + offs_k[:, None]
        b = tl.load(b_ptr + b_offsets, mask=(offs_n[None, :] < N) & (offs_k[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc)

    if HAS_WEIGHTS:
        weights = tl.load(weights_ptr + token_ids, mask=token_mask, other=0.0)
        acc *= weights[:, None]
    out_ptrs = out_ptr + (token_ids // TOP_K)[:, None] * stride_om + offs_n[None, :]
    tl.atomic_add(out_ptrs, acc, mask=token_mask[:, None] & (offs_n < N)[None, :], sem="relaxed")


@triton.jit
def ragged_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    sizes_ptr,
    N, K,
    stride_am, stride_bg, stride_bk, stride_cm,
    GROUPS: tl.constexpr,
    NUM_SMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c = a @ b[g] for the rows of each group g, which follow each other: sizes[0] rows, sizes[1] rows, ...

    NUM_SMS programs walk over all groups, and take every NUM_SMS-th tile.
    """
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_tile = 0
    first_row = 0
    for g in range(GROUPS):
        rows = tl.load(sizes_ptr + g)
        tiles = tl.cdiv(rows, BLOCK_M) * tiles_n
        while tile < first_tile + tiles:
            within = tile - first_tile
            offs_m = (within // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = (within % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            m_mask = offs_m[:, None] < rows
            n_mask = offs_n[None, :] < N
            a_ptrs = a_ptr + (first_row + offs_m)[:, None] * stride_am + offs_k[None, :]
            b_ptrs = b_ptr + g * stride_bg + offs_k[:, None] * stride_bk + offs_n[None, :]

            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                a = tl.load(a_ptrs, mask=m_mask & (offs_k[None, :] < K - k), other=0.0)
                b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & n_mask, other=0.0)
                acc += tl.dot(a, b)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K * stride_bk

            c_ptrs = c_ptr + (first_row + offs_m)[:, None] * stride_cm + offs_n[None, :]
            tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=m_mask & n_mask)
            tile += NUM_SMS
        first_tile += tiles
        first_row += rows


@triton.jit
def ragged_weight_grad_kernel(
    x_ptr, dy_ptr, dw_ptr,
    sizes_ptr,
    M, N,
    GROUPS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_ROWS: tl.constexpr,
):  # fmt: skip
    """dw[g] = x[rows of g].T @ dy[rows of g], of (rows, M) and (rows, N): the sum is as long as the group."""
    group = tl.program_id(2)
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    m_mask = offs_m < M
    n_mask = offs_n < N
    # where the group begins: the sum of the sizes before it
    groups = tl.arange(0, GROUPS)
    begin = tl.sum(tl.load(sizes_ptr + groups, mask=groups < group, other=0))
    end = begin + tl.load(sizes_ptr + group)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(begin, end, BLOCK_ROWS):
        rows = start + tl.arange(0, BLOCK_ROWS)
        row_mask = (rows < end)[:, None]
        x = tl.load(x_ptr + rows[:, None] * M + offs_m[None, :], mask=row_mask & m_mask[None, :], other=0.0)
        dy = tl.load(dy_ptr + rows[:, None] * N + offs_n[None, :], mask=row_mask & n_mask[None, :], other=0.0)
        acc = tl.dot(x.T, dy, acc)

    dw_ptrs = dw_ptr + group.to(tl.int64) * M * N + offs_m[:, None] * N + offs_n[None, :]
    tl.store(dw_ptrs, acc.to(dw_ptr.dtype.element_ty), mask=m_mask[:, None] & n_mask[None, :])


def sort_by_expert(topk_ids: torch.Tensor, experts: int, block_m: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions in topk_ids sorted by expert, each expert's padded to blocks, and the expert of each block."""
    flat = topk_ids.flatten()
    ids, owners = [], []
    for expert in range(experts):
        mine = (flat == expert).nonzero().flatten().to(torch.int32)
        blocks = triton.cdiv(mine.numel(), block_m)
        padded = torch.full((blocks * block_m,), flat.numel(), dtype=torch.int32, device=flat.device)
        padded[: mine.numel()] = mine
        ids.append(padded)
        owners += [expert] * blocks
    return torch.cat(ids), torch.tensor(owners, dtype=torch.int32, device=flat.device)


def mixture_of_experts(
    x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor
) -> torch.Tensor:
    """x: (tokens, hidden); up: (experts, hidden, inner); down: (experts, hidden, inner); topk: (tokens, top k)."""
    (tokens, hidden), (experts, _, inner) = x.shape, up.shape
    top_k = topk_ids.shape[1]
    BLOCK_M, BLOCK_N, BLOCK_K = 16 if tokens <= 64 else 64, 128, 64
    token_ids, expert_ids = sort_by_expert(topk_ids, experts, BLOCK_M)
    num_padded = torch.tensor([token_ids.numel()], dtype=torch.int32, device=x.device)
    inside = torch.empty((token_ids.numel(), inner), device=x.device, dtype=x.dtype)
    experts_up_kernel[(expert_ids.numel() * triton.cdiv(inner, BLOCK_N),)](
        x, up, inside, token_ids, expert_ids, num_padded, tokens * top_k, inner, hidden,
        *x.stride(), *up.stride(), inside.stride(0),
        TOP_K=top_k, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=8, num_warps=4, num_stages=3,
    )  # fmt: skip
    inside = torch.nn.functional.silu(inside)
    out = torch.zeros((tokens, hidden), device=x.device, dtype=torch.float32)
    experts_down_kernel[(expert_ids.numel(), triton.cdiv(hidden, BLOCK_N))](
        inside, down, topk_weights, out, token_ids, expert_ids, tokens * top_k, hidden, inner,
        inside.stride(0), down.stride(0), down.stride(1), out.stride(0),
        TOP_K=top_k, HAS_WEIGHTS=True, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out.to(x.dtype)


def ragged_matmul(a: torch.Tensor, b: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """a: (rows of all groups, K); b: (groups, K, N); sizes: int32, one a group."""
    groups, K, N = b.shape
    c = torch.empty((a.shape[0], N), device=a.device, dtype=a.dtype)
    num_sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    ragged_matmul_kernel[(num_sms,)](
        a, b, c, sizes, N, K, a.stride(0), b.stride(0), b.stride(1), c.stride(0),
        GROUPS=groups, NUM_SMS=num_sms, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3,
    )  # fmt: skip
    return c


def ragged_weight_grad(x: torch.Tensor, dy: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    M, N, groups = x.shape[1], dy.shape[1], sizes.numel()
    dw = torch.empty((groups, M, N), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(M, 128), triton.cdiv(N, 128), groups)
    ragged_weight_grad_kernel[grid](
        x, dy, dw, sizes, M, N, GROUPS=groups, BLOCK_M=128, BLOCK_N=128, BLOCK_ROWS=32, num_warps=8, num_stages=4
    )
    return dw
