"""Truth values that are copied ahead are loaded as bytes, Triton to Triton.

    keep = tl.load(mask_ptr + offsets)

becomes `keep = tl.load((mask_ptr + offsets).to(tl.pointer_type(tl.int8), bitcast=True)) != 0` where
`analysis.copied_truths` has found that Triton copies them: it loads them so itself. A ring holds what a copy moves, and
no copy moves a bit.
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


def with_truths_as_bytes(source: SourceFile, places: Collection[tuple[int, int]]) -> Lowered:
    """Load bytes by the calls that start at these places of a file, by line and column."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        assigned = {id(node.value) for node in walk(function.node.body) if isinstance(node, cst.Assign)}
        for node in walk(function.node.body):
            match node:
                case cst.Call(
                    func=cst.Attribute(value=cst.Name(value=language)),
                    args=[cst.Arg(keyword=None, star="", value=pointer), *_],
                ):
                    at = source.positions[node].start
                    if (at.line, at.column) not in places:
                        continue
                    byte = f".to({language}.pointer_type({language}.int8), bitcast=True)"
                    is_bare = isinstance(pointer, cst.Name) and not pointer.lpar
                    first, last = spans.whole(pointer)
                    yield Edit(first, last, f"{spans.text(pointer) if is_bare else _grouped(pointer, spans)}{byte}")
                    start, end = spans.of(node)
                    yield Edit(start, start, "" if id(node) in assigned else "(")
                    yield Edit(end, end, " != 0" if id(node) in assigned else " != 0)")

    return each_function(source, [".load("], edits)


def _grouped(node: cst.BaseExpression, spans: Spans) -> str:
    """An expression in parentheses, which it may have already."""
    return spans.text(node) if node.lpar else f"({spans.text(node)})"
