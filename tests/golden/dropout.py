"""Dropout and a residual; a flag that the launch leaves off, and one branch of a runtime scalar."""

import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, residual_ptr, y_ptr, n, p, seed, HAS_RESIDUAL: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if p > 0.0:
        keep = tl.rand(seed, offsets) > p
        x = tl.where(keep, x / (1.0 - p), tl.zeros([BLOCK], x.dtype)).to(x.dtype)
    if HAS_RESIDUAL:
        x += tl.load(residual_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)
