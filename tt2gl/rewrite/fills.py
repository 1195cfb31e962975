"""Rule `fills`: a scalar given to a block of atomics becomes a tile, as Gluon wants it.

tl.atomic_add(count_ptr + bins, 1)                                                                    # before
gl.atomic_add(count_ptr + bins, gl.full([BLOCK], 1, count_ptr.dtype.element_ty, layout))              # after

    row = tl.program_id(0)[:, None]                                         # before: a tensor of one element
    row = gl.full([1, 1], gl.program_id(0), gl.int32, layout)               # after
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.rewrite.build import call, expression


def filled(value: cst.BaseExpression, extents_and_dtype: Sequence[str], layout: str) -> cst.BaseExpression:
    """A tile of one value."""
    *extents, dtype = extents_and_dtype
    if isinstance(value, cst.Subscript):
        value = value.value
    return call("gl.full", expression(f"[{', '.join(extents)}]"), value, expression(dtype), expression(layout))
