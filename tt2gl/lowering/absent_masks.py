"""Histograms whose mask may be None, Triton to Triton: Gluon's function takes none by leaving it out alone.

    return tl.histogram(keys, BINS, mask=mask)

becomes, where `mask` is a parameter that has None by default, or for which a call in the file gives that,

    return tl.histogram(keys, BINS) if mask is None else tl.histogram(keys, BINS, mask=mask)

of which the compiler knows which it is; and `mask=None` goes away.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_HISTOGRAM = "triton.language.histogram"
_MASK_PLACE = 2


def absent_masks(source: SourceFile) -> Lowered:
    """Have histograms of a file's Triton functions say nothing of a mask that is None."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        own = list(walk(function.node.body))
        alone = {id(node.value) for node in own if isinstance(node, (cst.Assign, cst.Return, cst.AnnAssign))}
        optional: set[str] | None = None
        for call in own:
            mask = _mask(call, source) if isinstance(call, cst.Call) else None
            if not isinstance(call, cst.Call) or mask is None or not isinstance(mask.value, cst.Name):
                continue
            name, without = mask.value.value, _without(call, mask, spans)
            optional = _optional(function, source) if optional is None else optional
            if name == "None":
                yield Edit(*spans.of(call), without)
            elif name in optional and not _is_bound(name, own):
                start, end = spans.of(call)
                text = f"{without} if {name} is None else {spans.raw[start:end].decode()}"
                yield Edit(start, end, text if id(call) in alone or call.lpar else f"({text})")

    return each_function(source, ["histogram("], edits)


def _mask(call: cst.Call, source: SourceFile) -> cst.Arg | None:
    """What a histogram is given as its mask; of a tensor's method the tensor stands before the arguments."""
    meanings = source.names.of(call.func)
    if meanings == {_HISTOGRAM}:
        return _argument(call, "mask", _MASK_PLACE)
    is_method = isinstance(call.func, cst.Attribute) and call.func.attr.value == "histogram"
    if not is_method or any(each.startswith("triton.") for each in meanings):
        return None
    return _argument(call, "mask", _MASK_PLACE - 1)


def _argument(call: cst.Call, name: str, place: int) -> cst.Arg | None:
    if any(arg.star for arg in call.args):
        return None
    by_name = (arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name)
    by_place = (arg for index, arg in enumerate(call.args) if arg.keyword is None and index == place)
    return next(by_name, None) or next(by_place, None)


def _without(call: cst.Call, left_out: cst.Arg, spans: Spans) -> str:
    """A call without one of its arguments, which is not the first."""
    index = call.args.index(left_out)
    _, before = spans.argument(call.args[index - 1])
    _, last = spans.argument(left_out)
    start, end = spans.of(call)
    return (spans.raw[start:before] + spans.raw[last:end]).decode()


def _optional(function: JitFunction, source: SourceFile) -> set[str]:
    """The parameters of a function that may be None: by default, or by a call in the file."""
    params = [*function.node.params.params, *function.node.params.kwonly_params]
    found = {each.name.value for each in params if _is_none(each.default)}
    for call in walk(source.module):
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == function.name:
            given = ((each.name.value, _argument(call, each.name.value, place)) for place, each in enumerate(params))
            found |= {name for name, arg in given if arg is not None and _is_none(arg.value)}
    return found


def _is_none(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _is_bound(name: str, nodes: list[cst.CSTNode]) -> bool:
    """Whether a function gives a name another value."""
    return any(isinstance(node, cst.AssignTarget) and _is_name(node.target, name) for node in nodes) or any(
        isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For)) and _is_name(node.target, name) for node in nodes
    )


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return any(isinstance(each, cst.Name) and each.value == name for each in walk(node))
