"""Dropout that keeps no mask: the random numbers are a function of seed and offset (Philox)."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    # survivors are scaled up, so that the expectation stays
    out = tl.where(keep, x / (1 - p), 0.0)
    tl.store(out_ptr + offsets, out, mask=mask)


def dropout(x: torch.Tensor, p: float, seed: int, block: int = 1024) -> torch.Tensor:
    out = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), p, seed, BLOCK=block)
    return out
