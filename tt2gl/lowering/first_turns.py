"""The first turn of a loop that the compiler writes out, apart from the others, Triton to Triton.

    for k in tl.static_range(DIMS):
        hi = tl.load(dims_ptr + k)
        for d in range(lo, hi, BLOCK):
            a = tl.load(a_ptrs + d)
            ...

becomes, where `analysis.first_turns` has found that Triton copies the loads of that turn ahead alone,

    for k in tl.static_range(DIMS):
        if k == 0:
            hi = tl.load(dims_ptr + k)
            ...
        else:
            hi = tl.load(dims_ptr + k)
            ...

as one text has one way to load. A loss over prefixes of vectors ran at 0.88 of Triton's speed on an H100, loading all
of them where they are multiplied, and spilled 64 registers for 38.
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


def with_first_turns_apart(source: SourceFile, places: Collection[tuple[int, int]]) -> Lowered:
    """Write the bodies of the loops at these places of a file twice; one with a string of several lines stays."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for loop in (node for node in walk(function.node.body) if isinstance(node, cst.For)):
            start = source.positions[loop].start
            first, last = spans.of(loop)
            several = b'"""' in spans.raw[first:last] or b"'''" in spans.raw[first:last]
            if (start.line, start.column) in places and isinstance(loop.body, cst.IndentedBlock) and not several:
                yield _edit(loop, spans)

    return each_function(source, ["static_range("], edits)


def _edit(loop: cst.For, spans: Spans) -> Edit:
    assert isinstance(loop.iter, cst.Call)
    assert isinstance(loop.target, cst.Name)
    raw, (start, end) = spans.raw, spans.of(loop)
    colon = raw.index(b":", spans.whole(loop.iter)[1]) + 1
    first, last = raw.index(b"\n", colon) + 1, len(raw[:end].rstrip())
    inner, _ = spans.line(spans.of(loop.body.body[0])[0])
    more = " " * (len(inner) - len(spans.line(start)[0]))
    body = "\n".join(more + line if line.strip() else line for line in raw[first:last].decode().split("\n"))
    begins = spans.text(loop.iter.args[0].value) if len(loop.iter.args) > 1 else "0"
    return Edit(first, last, f"{inner}if {loop.target.value} == {begins}:\n{body}\n{inner}else:\n{body}")
