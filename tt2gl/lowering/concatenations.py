"""Tensors of one dimension put one after the other, Triton to Triton.

    both = tl.cat(x, y, can_reorder=True)

becomes `both = tl.ravel(tl.permute(tl.join(x, y), (1, 0)))`, for Gluon has no `cat`: in any order is in theirs, too. A
concatenation that may not be reordered stays: Triton itself makes it of joins, in Gluon, too.
"""

from __future__ import annotations

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_CAT = "triton.language.cat"


def concatenations(source: SourceFile) -> Lowered:
    """Write every concatenation in any order of a file's Triton functions with what Gluon has."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        calls = [node for node in walk(function.node.body) if isinstance(node, cst.Call)]
        return [edit for call in calls if source.names.of(call.func) == {_CAT} for edit in _joined(call, spans)]

    return each_function(source, [".cat("], edits)


def _joined(call: cst.Call, spans: Spans) -> list[Edit]:
    """The edits of one call; none where its order may be asked for."""
    match call:
        case cst.Call(
            func=cst.Attribute(value=module),
            args=[
                cst.Arg(keyword=None, star=""),
                cst.Arg(keyword=None, star="") as second,
                cst.Arg(keyword=None | cst.Name(value="can_reorder"), value=cst.Name(value="True")) as any_order,
            ],
        ):
            name = spans.source.module.code_for_node(module)
            (start, _), (_, end) = spans.of(call.func), spans.of(call)
            return [
                Edit(start, spans.of(call.func)[1], f"{name}.ravel({name}.permute({name}.join"),
                Edit(spans.argument(second)[1], spans.argument(any_order)[1], ""),
                Edit(end, end, ", (1, 0)))"),
            ]
    return []
