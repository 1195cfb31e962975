"""Rule `fills`: a scalar given to a block of atomics becomes a tile, as Gluon wants it.

tl.atomic_add(count_ptr + bins, 1)                                                                    # before
gl.atomic_add(count_ptr + bins, gl.full([BLOCK], 1, count_ptr.dtype.element_ty, layout))              # after

    row = tl.program_id(0)[:, None]                                         # before: a tensor of one element
    row = gl.full([1, 1], gl.program_id(0), gl.int32, layout)               # after

    best = tl.broadcast_to(row_best, (BLOCK,))                              # before: of a scalar
    best = gl.full([BLOCK], row_best, gl.float32, layout)                   # after

    tl.broadcast_to(out_ptr + row, (BLOCK,))                                # before: of a pointer
    (out_ptr + row + gl.zeros([BLOCK], gl.int32, layout))                   # after

    best = tl.max(row, axis=0, keep_dims=True)                              # before: a tensor of one element
    best = gl.full([1], gl.max(row, axis=0), gl.float32, layout)            # after
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.rewrite.build import call, expression

_BROADCAST = "broadcast_to"
_POINTER = "gl.pointer"
_REDUCTIONS = ("max", "min", "reduce", "reduce_or", "sum", "xor_sum")


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
    elif isinstance(value, cst.Call):
        value = _to_scalar(value)
    if dtype.startswith(_POINTER):
        zeros = expression(f"gl.zeros([{', '.join(extents)}], gl.int32, {layout})")
        return cst.BinaryOperation(value, cst.Add(), zeros, lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))
    return call("gl.full", expression(f"[{', '.join(extents)}]"), value, expression(dtype), expression(layout))


def _to_scalar(value: cst.Call) -> cst.Call:
    """A reduction without its `keep_dims`; other calls as they are. No flag before that one matters to a scalar."""
    name = value.func.attr.value if isinstance(value.func, cst.Attribute) else ""
    if name not in _REDUCTIONS:
        return value
    args = [
        arg.with_changes(value=cst.Name("False")) if arg.keyword is None and _is_true(arg.value) else arg
        for arg in value.args
        if arg.keyword is None or arg.keyword.value != "keep_dims"
    ]
    if args and len(args) < len(value.args):
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return value.with_changes(args=args)


def _is_true(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Name) and value.value == "True"
