"""Rule `fills`: a scalar given to a block of atomics becomes a tile, as Gluon wants it.

tl.atomic_add(count_ptr + bins, 1)                                                                    # before
gl.atomic_add(count_ptr + bins, gl.full([BLOCK], 1, count_ptr.dtype.element_ty, layout))              # after

    row = tl.program_id(0)[:, None]                                         # before: a tensor of one element
    row = gl.full([1, 1], gl.program_id(0), gl.int32, layout)               # after

    best = tl.broadcast_to(row_best, (BLOCK,))                              # before: of a scalar
    best = gl.full([BLOCK], row_best, gl.float32, layout)                   # after
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.rewrite.build import call, expression

_BROADCAST = "broadcast_to"


def filled(
    value: cst.BaseExpression, extents_and_dtype: Sequence[str], layout: str, is_method: bool = False
) -> cst.BaseExpression:
    """A tile of one value: of what is given, or of the scalar that it makes a tensor of. `is_method`: by its own."""
    *extents, dtype = extents_and_dtype
    if isinstance(value, cst.Subscript):
        value = value.value
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == _BROADCAST:
        own = (arg.value for arg in value.args if arg.keyword is None or arg.keyword.value == "input")
        value = value.func.value if is_method else next(own)
    return call("gl.full", expression(f"[{', '.join(extents)}]"), value, expression(dtype), expression(layout))
