"""Casts of products to the type that they have, taken away, Triton to Triton.

    acc += tl.dot(p, v).to(tl.float32)

becomes `acc += tl.dot(p, v)` where `analysis.cast_products` has found that this changes nothing. Triton's compiler
drops such a cast first of all, and then has the product start from what it is added to; in the port's text the cast
would stand between the two, and the product's result wait in registers of its own. A gradient of keys and values by
tiles of 16x512 spills 1226 registers a thread so, and 414 without, as Triton's kernel.
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

_TYPES = "triton.language."


def without_idle_casts(source: SourceFile, places: Collection[tuple[int, int]]) -> Lowered:
    """Take away the casts of the calls that start at these places of a file, by line and column."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for node in walk(function.node.body):
            match node:
                case cst.Call(
                    func=cst.Attribute(value=cst.Call() as product, attr=cst.Name(value="to")),
                    args=[cst.Arg(value=cst.Attribute() as kind)],
                ) if _is_a_type(kind, source) and not node.lpar:
                    start = source.positions[node].start
                    if (start.line, start.column) in places:
                        yield Edit(spans.whole(product)[1], spans.of(node)[1], "")

    return each_function(source, [".to("], edits)


def _is_a_type(kind: cst.Attribute, source: SourceFile) -> bool:
    """Whether an expression is a type by name, the same under every launch."""
    return any(name.startswith(_TYPES) for name in source.names.of(kind))
