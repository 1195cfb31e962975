"""Reshapes that may leave elements in another order, Triton to Triton.

    pairs = x.reshape(BLOCK // 2, 2, can_reorder=True)
    rows = tl.view(x, (ROWS, COLS))
    flat = tl.ravel(x, can_reorder=True)

become `x.reshape(BLOCK // 2, 2)`, `tl.reshape(x, (ROWS, COLS))` and `tl.ravel(x)`: Gluon reshapes in order only, which
is one of those that the author allows.
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


def reorderings(source: SourceFile) -> Lowered:
    """Have every reshape of a file's Triton functions keep its order."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        calls = [node for node in walk(function.node.body) if isinstance(node, cst.Call)]
        return [edit for call in calls if _is_tensors(call.func, source) for edit in _in_order(call, spans)]

    return each_function(source, ["can_reorder", ".view("], edits)


def _is_tensors(called: cst.BaseExpression, source: SourceFile) -> bool:
    """Whether what is called is Triton's own function, or a method of a value of the kernel's."""
    root = called
    while isinstance(root, cst.Attribute):
        root = root.value
    meanings = source.names.of(called)
    own = any(meaning.startswith("triton.language.") or "<locals>" in meaning for meaning in meanings)
    return isinstance(called, cst.Attribute) and (own or not isinstance(root, cst.Name))


def _in_order(call: cst.Call, spans: Spans) -> Iterator[Edit]:
    """The edits of one call."""
    match call.func:
        case cst.Attribute(attr=cst.Name(value="view" | "reshape" | "ravel") as name):
            if name.value == "view":
                yield Edit(*spans.of(name), "reshape")
            for before, argument in zip(call.args, call.args[1:], strict=False):
                if argument.keyword is not None and argument.keyword.value == "can_reorder":
                    yield Edit(spans.argument(before)[1], spans.argument(argument)[1], "")
