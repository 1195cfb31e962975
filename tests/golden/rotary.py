"""Rotary embedding of interleaved pairs."""

import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, HALF: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0)
    pairs = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + pairs)[None, :]
    sin = tl.load(sin_ptr + token * HALF + pairs)[None, :]

    heads = tl.arange(0, HEADS)
    cols = tl.arange(0, 2 * HALF)
    at = x_ptr + (token * HEADS + heads[:, None]) * 2 * HALF + cols[None, :]
    x = tl.load(at)
    even, odd = tl.split(tl.reshape(x, (HEADS, HALF, 2)))
    turned = tl.join(even * cos - odd * sin, odd * cos + even * sin)
    tl.store(at, tl.reshape(turned, (HEADS, 2 * HALF)))
