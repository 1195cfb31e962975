"""Rule `flips`: a tensor turned round keeps its layout, by a helper that exchanges halves as Triton's function does.

Triton's own gives back whatever layout its reshapes end in, which is not always the one that it was given.

    last_first = tl.flip(scores, 1)         # before
    last_first = flipped(scores, 1)         # after
"""

from __future__ import annotations

HALVINGS_SOURCE = '''@gluon.constexpr_function
def halvings(extent):
    """How often an extent, a power of two, can be halved."""
    return extent.bit_length() - 1
'''

FLIPPED_SOURCE = '''@gluon.jit
def flipped(x, dim: gl.constexpr = None):
    """`x` turned round along `dim`, in its own layout: its halves change places, then theirs, down to elements."""
    axis: gl.constexpr = (len(x.shape) - 1 if dim is None else dim) % len(x.shape)
    bits: gl.constexpr = x.dtype.primitive_bitwidth
    word: gl.constexpr = gl.int64 if bits == 64 else gl.int32 if bits == 32 else gl.int16 if bits == 16 else gl.int8
    steps: gl.constexpr = halvings(x.shape[axis])
    value = x.to(gl.int1 if bits == 1 else word, bitcast=True)
    value = value.reshape(x.shape[:axis] + [2] * steps + x.shape[axis + 1 :])
    for step in gl.static_range(steps):
        value = value ^ gl.xor_sum(value, axis + step, len(value.shape) > 1)
    return gl.convert_layout(value.reshape(x.shape).to(x.dtype, bitcast=True), x.type.layout)
'''
