"""Block pointers that are moved where they are used get a name there, Triton to Triton.

    q = tl.load(q_tiles.advance([start, 0]), boundary_check=(0, 1))

becomes `q_tiles_moved = q_tiles.advance([start, 0])`, and a load of that. So loads and stores go through variables, as
`lowering.block_pointers` reads them. What runs only sometimes, in an arm of an expression, stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.pointer_calls import pointer_argument
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.names import claimed
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_ACCESSES = {"triton.language.load": "load", "triton.language.store": "store"}
_ADVANCE = "triton.language.advance"
_ARMS = (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp)


def named_advances(source: SourceFile) -> Lowered:
    """Have the loads and stores of a file's Triton functions go through variables for block pointers."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        nodes = list(walk(function.node))
        taken = {node.value for node in nodes if isinstance(node, cst.Name)}
        for line in nodes:
            match line:
                case cst.SimpleStatementLine(body=[statement]) if not any(isinstance(x, _ARMS) for x in walk(line)):
                    start = spans.of(statement)[0]
                    indent, _ = spans.line(start)
                    for moved, name in _moved(statement, source):
                        chosen = claimed(f"{name}_moved", taken)
                        yield Edit(start, start, f"{chosen} = {spans.text(moved)}\n{indent}")
                        yield Edit(*spans.whole(moved), chosen)

    return each_function(source, ["advance("], edits)


def _moved(statement: cst.CSTNode, source: SourceFile) -> Iterator[tuple[cst.Call, str]]:
    """The moves of variables, and their names, that a statement's loads and stores are given."""
    for call in walk(statement):
        if not isinstance(call, cst.Call) or not (known := source.names.of(call.func) & _ACCESSES.keys()):
            continue
        match pointer_argument(call, _ACCESSES[known.pop()]):
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="advance"))) as moved if (
                source.names.of(moved.func) != {_ADVANCE}
            ):
                yield moved, name
            case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=name)), *_]) as moved if source.names.of(
                func
            ) == {_ADVANCE}:
                yield moved, name


__all__ = ["named_advances"]
