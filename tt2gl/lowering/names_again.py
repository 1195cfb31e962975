"""What has the name of something before its loop gets one of its own, Triton to Triton.

    do = tl.load(do_ptrs)
    dq = tl.dot(do, v)
    for j in range(i, N):
        do = tl.load(do_ptrs)
        dk += tl.dot(do, k)
        dv += tl.dot(p, do)

becomes

    for j in range(i, N):
        do_2 = tl.load(do_ptrs)
        dk += tl.dot(do_2, k)
        dv += tl.dot(p, do_2)

where `analysis.names_again` has found that nothing carries one value to the other. A loop's variable has one layout,
that of its value before the loop, and Gluon's frontend takes any for one that has such a value; Triton's compiler drops
what no turn reads. So each product reads a tile of the loop as it takes it: a gradient by tiles of 32x64 that are
copied ahead takes 128 registers a thread on sm80 for 168, and two layout conversions less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.names import claimed
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

NameAgain = tuple[int, int, str]
"""A loop, by line and column, and a name that is another thing in it than before it."""


def with_names_again(source: SourceFile, places: Collection[NameAgain]) -> Lowered:
    """Give such names of the loops that start at these places of a file, by line and column, others there."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        taken = {node.value for node in walk(function.node) if isinstance(node, cst.Name)}
        for loop in walk(function.node.body):
            if isinstance(loop, cst.For | cst.While):
                start = source.positions[loop].start
                for name in sorted(name for *at, name in places if at == [start.line, start.column]):
                    own = claimed(f"{name}_2", taken)
                    yield from (Edit(*spans.of(node), own) for node in _variables(loop.body, name))

    return each_function(source, ["load"], edits)


def _variables(block: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """Where a variable of that name stands in a block: no attribute, and no keyword, is one."""
    nodes = list(walk(block))
    others = {id(node.attr) for node in nodes if isinstance(node, cst.Attribute)}
    others |= {id(node.keyword) for node in nodes if isinstance(node, cst.Arg)}
    yield from (node for node in nodes if isinstance(node, cst.Name) and node.value == name and id(node) not in others)
