"""Rule `sorts`: rows are sorted by helpers that compare and exchange as Triton's functions do, in Gluon's words.

Triton's own make ranges, which in Gluon need a layout.

    scores = tl.sort(scores, descending=True)          # before
    scores = sorted_rows(scores, descending=True)      # after

    best = tl.topk(scores, 8)                          # before
    best = top_of_rows(scores, 8)                      # after

    best = tl.bitonic_merge(best)                      # before
    best = merged_rows(best)                           # after
"""

from __future__ import annotations

from tt2gl.rewrite.flips import HALVINGS_SOURCE

ALONG_SOURCE = '''@gluon.constexpr_function
def along(layout, rank, dim):
    """The layout of one dimension of a tensor: the others are cut off."""
    for other in reversed(range(rank)):
        layout = layout if other == dim else gl.SliceLayout(other, layout)
    return layout
'''

IS_SECOND_SOURCE = '''@gluon.jit
def is_second(x, dim: gl.constexpr):
    """Along a dimension of two: 0 for the first and 1 for the second, in the layout of `x`."""
    value = gl.arange(0, 2, layout=along(x.type.layout, len(x.shape), dim))
    for other in gl.static_range(len(x.shape)):
        if other != dim:
            value = value.expand_dims(other)
    return value
'''

ORDERED_PAIRS_SOURCE = '''@gluon.jit
def ordered_pairs(x, dim: gl.constexpr, descending):
    """Pairs along a dimension of two in order: the larger last, or first where it is descending."""
    bits: gl.constexpr = x.dtype.primitive_bitwidth
    word: gl.constexpr = gl.int64 if bits == 64 else gl.int32 if bits == 32 else gl.int16 if bits == 16 else gl.int8
    value = x.to(gl.int1 if bits == 1 else word, bitcast=True)
    other = (value ^ gl.xor_sum(value, dim, len(x.shape) > 1)).to(x.dtype, bitcast=True)
    return gl.where((x > other) != (descending ^ is_second(x, dim)).to(gl.int1), other, x)
'''

MERGED_SOURCE = '''@gluon.jit
def merged(x, stage: gl.constexpr, last: gl.constexpr, descending: gl.constexpr):
    """Rows of two sorted halves sorted, `stage` dimensions of two each; every other row downwards but at last."""
    rank: gl.constexpr = len(x.shape)
    downwards = gl.to_tensor(descending).to(gl.int32) if last else is_second(x, rank - 1 - stage)
    for step in gl.static_range(stage):
        x = ordered_pairs(x, rank - stage + step, downwards)
    return x
'''

SORTED_ROWS_SOURCE = '''@gluon.jit
def sorted_rows(x, dim: gl.constexpr = None, descending: gl.constexpr = False):
    """Sorted along the last dimension, in the layout of `x`: a bitonic network over dimensions of two."""
    gl.static_assert(dim is None or dim == len(x.shape) - 1, "only the last dimension is sorted")
    rank: gl.constexpr = halvings(x.numel)
    steps: gl.constexpr = halvings(x.shape[-1])
    value = x.reshape([2] * rank if rank else [1])
    for stage in gl.static_range(1, steps + 1):
        value = merged(value, stage, stage == steps, descending)
    return gl.convert_layout(value.reshape(x.shape), x.type.layout)
'''

TOP_OF_ROWS_SOURCE = '''@gluon.jit
def top_of_rows(x, k: gl.constexpr, dim: gl.constexpr = None, descending: gl.constexpr = True):
    """The first `k` along the last dimension as if sorted: runs of `k` are sorted, and the better of two stays."""
    gl.static_assert(dim is None or dim == len(x.shape) - 1, "only the last dimension is sorted")
    rank: gl.constexpr = halvings(x.numel)
    steps: gl.constexpr = halvings(x.shape[-1])
    kept: gl.constexpr = halvings(k)
    if kept == 0:
        return gl.max(x, len(x.shape) - 1, True) if descending else gl.min(x, len(x.shape) - 1, True)
    value = x.reshape([2] * rank if rank else [1])
    for stage in gl.static_range(1, kept + 1):
        value = merged(value, stage, stage == steps, descending)
    for stage in gl.static_range(kept + 1, steps + 1):
        value = gl.max(value, rank - stage) if descending else gl.min(value, rank - stage)
        value = merged(value, kept, stage == steps, descending)
    return value.reshape(x.shape[:-1] + [k])
'''

MERGED_ROWS_SOURCE = '''@gluon.jit
def merged_rows(x, dim: gl.constexpr = None, descending: gl.constexpr = False):
    """Sorted along the last dimension, in the layout of `x`, where one half rises and the other falls."""
    gl.static_assert(dim is None or dim == len(x.shape) - 1, "only the last dimension is sorted")
    rank: gl.constexpr = halvings(x.numel)
    value = merged(x.reshape([2] * rank if rank else [1]), halvings(x.shape[-1]), True, descending)
    return gl.convert_layout(value.reshape(x.shape), x.type.layout)
'''

SORTING_SOURCES = (HALVINGS_SOURCE, ALONG_SOURCE, IS_SECOND_SOURCE, ORDERED_PAIRS_SOURCE, MERGED_SOURCE)
"""What these helpers call, in the order of their needs."""
