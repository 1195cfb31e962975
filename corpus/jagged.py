"""Pooling over sequences of different lengths, packed one after another."""

import torch
import triton
import triton.language as tl


@triton.jit
def jagged_mean_kernel(values_ptr, offsets_ptr, out_ptr, dim, BLOCK_L: tl.constexpr, BLOCK_D: tl.constexpr):
    """out[s] = mean of values[offsets[s] : offsets[s + 1]]; zero for an empty sequence."""
    seq = tl.program_id(0)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    d_mask = d < dim
    begin = tl.load(offsets_ptr + seq)
    end = tl.load(offsets_ptr + seq + 1)
    out_ptrs = out_ptr + seq * dim + d

    if begin >= end:
        tl.store(out_ptrs, tl.zeros([BLOCK_D], dtype=tl.float32), mask=d_mask)
        return

    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    l = tl.arange(0, BLOCK_L)  # noqa: E741
    pos = begin
    while pos < end:
        rows = pos + l
        tile = tl.load(
            values_ptr + rows[:, None] * dim + d[None, :], mask=(rows < end)[:, None] & d_mask[None, :], other=0.0
        )
        acc += tl.sum(tile.to(tl.float32), 0)
        pos += BLOCK_L
    acc = acc / (end - begin).to(tl.float32)
    tl.store(out_ptrs, acc, mask=d_mask)


def jagged_mean(values: torch.Tensor, offsets: torch.Tensor, block_l: int = 16, block_d: int = 128) -> torch.Tensor:
    """values: (total length, dim); offsets: sequences + 1 positions, ascending from 0 to the total length."""
    sequences, dim = offsets.numel() - 1, values.shape[1]
    out = torch.empty((sequences, dim), device=values.device, dtype=values.dtype)
    jagged_mean_kernel[(sequences, triton.cdiv(dim, block_d))](
        values, offsets, out, dim, BLOCK_L=block_l, BLOCK_D=block_d
    )
    return out
