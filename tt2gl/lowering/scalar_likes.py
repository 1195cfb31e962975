"""Scalars of zero that are made like another one, by their type, Triton to Triton.

    best = tl.where(found, score // n, tl.zeros_like(score))

becomes `best = tl.where(found, score // n, tl.full([], 0, score.dtype))` where `analysis.scalar_likes` has found that
it is one: Gluon's function asks what it is given for its layout, and a scalar has none.
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


def without_scalar_likes(source: SourceFile, places: Collection[tuple[int, int]]) -> Lowered:
    """Make scalars by their type where such calls start at these places of a file, by line and column."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for node in walk(function.node.body):
            match node:
                case cst.Call(
                    func=cst.Attribute(value=language, attr=cst.Name(value="zeros_like")), args=[cst.Arg(value=like)]
                ):
                    at = source.positions[node].start
                    if (at.line, at.column) in places:
                        known = spans.text(like) if isinstance(like, cst.Name) else f"({spans.text(like)})"
                        yield Edit(*spans.of(node), f"{spans.text(language)}.full([], 0, {known}.dtype)")

    return each_function(source, [".zeros_like("], edits)
