"""Loads and products that a name has already, made once, Triton to Triton.

    k = tl.load(k_ptrs, mask=k_mask)
    k2 = tl.load(k2_ptrs, mask=k2_mask)
    v = tl.load(v_ptrs)

becomes, where `analysis.equal_values` has found that the addresses are the same if two constants are,

    k = tl.load(k_ptrs, mask=k_mask)
    if K == V:
        k2 = k
    else:
        k2 = tl.load(k2_ptrs, mask=k2_mask)
    v = tl.load(v_ptrs)

and `k2 = k` where they always are. Triton's CSE pass makes one of both, and its pipeliner copies that one ahead; a port
would load the other where it stands, or have two rings, and two products. The states of a linear attention, whose keys
are values of one more product, ran at 0.71 of Triton's speed on an H100.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.plan import EqualValue
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile


def made_once(source: SourceFile, equal: Collection[EqualValue]) -> Lowered:
    """Give names what others have, at these places of a file."""
    found = {each.place: each for each in equal}

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for node in walk(function.node.body):
            match node:
                case cst.SimpleStatementLine(
                    body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value) as given]
                ):
                    start = source.positions[given].start
                    known = found.get((start.line, start.column))
                    if known is not None:
                        yield from _once(name, known, given, value, spans)

    return each_function(source, ["load(", "dot("], edits)


def _once(name: str, known: EqualValue, given: cst.Assign, value: cst.BaseExpression, spans: Spans) -> Iterator[Edit]:
    if not known.test:
        yield Edit(*spans.whole(value), known.name)
        return
    start, end = spans.of(given)
    indent, _ = spans.line(start)
    original = spans.raw[start:end].decode()
    text = f"if {known.test}:\n{indent}    {name} = {known.name}\n{indent}else:\n{indent}    {original}"
    yield Edit(start, end, text)
