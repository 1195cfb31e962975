"""Rule `index_reductions`: a reduction that gives indices calls a helper that makes the indices in the value's layout.

    best = tl.argmax(scores, axis=1)                    # before
    best = max_with_index(scores, axis=1)[1]            # after

Does not handle tensors of rank three and up (TTG301).
"""

from __future__ import annotations

import libcst as cst

from tt2gl.rewrite.build import MARK

_OPERATORS = {"max": (">", "largest"), "min": ("<", "smallest")}


def with_helper(call: cst.BaseExpression, is_method: bool, what: str) -> cst.BaseExpression:
    """The call through its helper; `what` is `max`, `min`, or either with ` index` for indices alone."""
    if not isinstance(call, cst.Call):
        return call
    name, _, only = what.partition(" ")
    args = [_renamed(arg) for arg in call.args if not _is(arg, "return_indices")]
    place = 1 if is_method else 2
    if not only and len(args) > place and args[place].keyword is None:
        del args[place]
    if isinstance(call.func, cst.Attribute) and is_method:
        args.insert(0, cst.Arg(call.func.value))
    if args:
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    made = cst.Call(cst.Name(f"{MARK}{name}_with_index"), args, whitespace_before_args=call.whitespace_before_args)
    if not only:
        return made.with_changes(lpar=call.lpar, rpar=call.rpar)
    index = cst.ensure_type(cst.parse_expression("x[1]"), cst.Subscript)
    return index.with_changes(value=made, lpar=call.lpar, rpar=call.rpar)


def _is(arg: cst.Arg, keyword: str) -> bool:
    return arg.keyword is not None and arg.keyword.value == keyword


def _renamed(arg: cst.Arg) -> cst.Arg:
    if _is(arg, "return_indices_tie_break_left"):
        return arg.with_changes(keyword=cst.Name("tie_break_left"))
    return arg


def helper_source(name: str) -> str:
    """The helper of one operator, with the function that combines two candidates."""
    word = _OPERATORS[name][1]
    return f'''@gluon.jit
def {name}_with_index(x, axis: gl.constexpr, tie_break_left: gl.constexpr = True, keep_dims: gl.constexpr = False):
    """The {word} along `axis` and where it is; of equal ones the first, or with `tie_break_left=False` any."""
    if x.dtype == gl.bfloat16:
        x = x.to(gl.float32)
    layout: gl.constexpr = x.type.layout
    if len(x.shape) == 1:
        index = gl.arange(0, x.shape[0], layout=layout)
    else:
        along = gl.arange(0, x.shape[axis], layout=gl.SliceLayout(1 - axis % 2, layout))
        index = gl.zeros(x.shape, gl.int32, layout=layout) + gl.expand_dims(along, 1 - axis % 2)
    if tie_break_left:
        return gl.reduce((x, index), axis, _first_{name}, keep_dims)
    else:
        return gl.reduce((x, index), axis, _any_{name}, keep_dims)
'''


def combine_sources(name: str) -> tuple[str, str]:
    """The functions that choose between two candidates, with and without a rule for ties."""
    sign, _ = _OPERATORS[name]
    first = f"""@gluon.jit
def _first_{name}(value, index, other, other_index):
    ahead = (value {sign} other) | ((value == other) & (index < other_index))
    return gl.where(ahead, value, other), gl.where(ahead, index, other_index)
"""
    either = f"""@gluon.jit
def _any_{name}(value, index, other, other_index):
    ahead = value {sign} other
    return gl.where(ahead, value, other), gl.where(ahead, index, other_index)
"""
    return first, either
