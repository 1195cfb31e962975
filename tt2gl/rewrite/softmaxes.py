"""Rule `softmaxes`: a softmax along the first of several dimensions keeps that of the maxima that it subtracts.

Before 3.9, Triton's own drops it and counts on operands of fewer dimensions being expanded, which Gluon does not do.

    weights = tl.softmax(scores, 0)            # before
    weights = softmax_along(scores, 0)         # after
"""

from __future__ import annotations

SOFTMAX_SOURCE = '''@gluon.jit
def softmax_along(x, dim: gl.constexpr = 0, keep_dims: gl.constexpr = True, ieee_rounding: gl.constexpr = False):
    """Softmax of `x` along `dim`, in its own layout."""
    powers = gl.exp(x - gl.max(x, dim, keep_dims=True))
    return gl.fdiv(powers, gl.sum(powers, dim, keep_dims=True), ieee_rounding)
'''
