"""Sums of what rows and columns multiply to as the matrix products that they are, Triton to Triton.

    o = tl.sum(p[:, :, None] * v[None, :, :], 1)

becomes `o = tl.dot(p, v, input_precision="tf32")` where `analysis.summed_products` has found that Triton's compiler
makes a product of it: by most versions in TF32 where the target has that, whatever the launch asks for. Added up as it
is written, it leaves the matrix units idle, and a thread holds all of its elements' factors.
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


def with_summed_products(source: SourceFile, places: Collection[tuple[int, int]], precision: str) -> Lowered:
    """Write the sums that start at these places of a file, by line and column, as products of a precision."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for node in walk(function.node.body):
            match node:
                case cst.Call(
                    func=cst.Attribute(value=language),
                    args=[
                        cst.Arg(
                            value=cst.BinaryOperation(
                                left=cst.Subscript(value=one), operator=cst.Multiply(), right=cst.Subscript(value=other)
                            )
                        ),
                        *_,
                    ],
                ):
                    start = source.positions[node].start
                    if (start.line, start.column) in places:
                        factors = f"{spans.text(one)}, {spans.text(other)}"
                        made = f'{spans.text(language)}.dot({factors}, input_precision="{precision}")'
                        yield Edit(*spans.of(node), made)

    return each_function(source, [".sum("], edits)
