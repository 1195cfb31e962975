"""Rule `softmaxes`: a softmax along the first of several dimensions keeps that of the maxima that it subtracts.

Before 3.9, Triton's own drops it and counts on operands of fewer dimensions being expanded, which Gluon does not do.
From 3.9 on it keeps that of a row, too, whose maximum is a scalar, which Gluon does not expand either.

    weights = tl.softmax(scores, 0)            # before
    weights = softmax_along(scores, 0)         # after
"""

from __future__ import annotations

SOFTMAX_SOURCE = '''@gluon.jit
def softmax_along(x, dim: gl.constexpr = 0, keep_dims: gl.constexpr = True, ieee_rounding: gl.constexpr = False):
    """Softmax of `x` along `dim`, in its own layout."""
    kept: gl.constexpr = len(x.shape) > 1
    powers = gl.exp(x - gl.max(x, dim, keep_dims=kept))
    return gl.fdiv(powers, gl.sum(powers, dim, keep_dims=kept), ieee_rounding)
'''
