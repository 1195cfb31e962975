"""Embedding: rows gathered from a table; their gradients added back atomically."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_forward_kernel(
    table_ptr,
    indices_ptr,
    out_ptr,
    n_indices,
    dim,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """BLOCK_M indices by BLOCK_N columns a program."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_m = offs_m < n_indices
    mask_n = offs_n < dim

    index = tl.load(indices_ptr + offs_m, mask=mask_m, other=0).to(tl.int64)
    mask = mask_m[:, None] & mask_n[None, :]
    rows = tl.load(table_ptr + index[:, None] * dim + offs_n[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + offs_m.to(tl.int64)[:, None] * dim + offs_n[None, :], rows, mask=mask)


@triton.jit
def embedding_backward_kernel(
    grad_table_ptr, grad_out_ptr, indices_ptr,
    n_indices, dim, padding_idx,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """grad_table[indices[i]] += grad_out[i], in fp32; `padding_idx` gathers no gradient."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)

    index = tl.load(indices_ptr + offs_m, mask=offs_m < n_indices, other=padding_idx)
    keep = (offs_m < n_indices) & (index != padding_idx)
    mask = keep[:, None] & (offs_n < dim)[None, :]
    grad = tl.load(grad_out_ptr + offs_m[:, None] * dim + offs_n[None, :], mask=mask, other=0.0)
    # several tokens may be the same word
    tl.atomic_add(
        grad_table_ptr + index.to(tl.int64)[:, None] * dim + offs_n[None, :],
        grad.to(tl.float32),
        mask=mask,
        sem="relaxed",
    )


def embedding_forward(
    table: torch.Tensor, indices: torch.Tensor, block_m: int = 16, block_n: int = 128
) -> torch.Tensor:
    flat = indices.view(-1)
    dim = table.shape[1]
    out = torch.empty((flat.numel(), dim), device=table.device, dtype=table.dtype)
    grid = lambda META: (triton.cdiv(flat.numel(), META["BLOCK_M"]), triton.cdiv(dim, META["BLOCK_N"]))
    embedding_forward_kernel[grid](table, flat, out, flat.numel(), dim, BLOCK_M=block_m, BLOCK_N=block_n)
    return out.view(*indices.shape, dim)


def embedding_backward(
    grad_out: torch.Tensor, indices: torch.Tensor, vocab_size: int, padding_idx: int = -1, block_n: int = 128
) -> torch.Tensor:
    dim = grad_out.shape[-1]
    n_indices = indices.numel()
    grad_table = torch.zeros((vocab_size, dim), device=grad_out.device, dtype=torch.float32)
    grid = lambda META: (triton.cdiv(n_indices, META["BLOCK_M"]), triton.cdiv(dim, META["BLOCK_N"]))
    embedding_backward_kernel[grid](
        grad_table, grad_out, indices, n_indices, dim, padding_idx, BLOCK_M=16, BLOCK_N=block_n
    )
    return grad_table
