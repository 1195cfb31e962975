"""Quotients of constants as such, Triton to Triton: `tl.cdiv` makes scalars of them in Triton 3.6.

for k in range(tl.cdiv(K, BLOCK)):                      # before

for k in range((K + BLOCK - 1) // BLOCK):               # after
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Integer, cst.Subscript)


def with_constant_quotients(source: SourceFile, places: Collection[tuple[int, int]]) -> Lowered:
    """Write out the calls of `tl.cdiv` at these places of a file, by line and column."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for call in (node for node in walk(function.node.body) if isinstance(node, cst.Call)):
            start = source.positions[call].start
            if (start.line, start.column) in places and len(call.args) == len(("whole", "part")):
                whole, part = (_said(each.value, spans) for each in call.args)
                yield Edit(*spans.of(call), f"({whole} + {part} - 1) // {part}")

    return each_function(source, ["cdiv("], edits)


def _said(value: cst.BaseExpression, spans: Spans) -> str:
    text = spans.text(value)
    return text if isinstance(value, _PLAIN) or value.lpar else f"({text})"
