"""A gated activation; one helper computes, the other makes tensors in the layout that each caller wants."""

import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def load_block(ptr, start, n, BLOCK: tl.constexpr):
    """A block and where it is."""
    offsets = start + tl.arange(0, BLOCK)
    return tl.load(ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32), offsets


@triton.jit
def gated_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    gate, offsets = load_block(gate_ptr, start, n, BLOCK)
    up, _ = load_block(up_ptr, start, n, BLOCK)
    tl.store(out_ptr + offsets, silu(gate) * up, mask=offsets < n)


@triton.jit
def halves_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The gate and what it gates side by side in one tensor, half a block wide each."""
    gate, offsets = load_block(x_ptr, 0, n, BLOCK // 2)
    up, _ = load_block(x_ptr + n, 0, n, BLOCK // 2)
    tl.store(out_ptr + offsets, silu(gate) * up, mask=offsets < n)
