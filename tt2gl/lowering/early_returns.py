"""A tensor that is made and returned behind a branch that returns, by that branch's other side, Triton to Triton.

    if GATED:                                           if GATED:
        return sigmoid(tl.load(gate_ptrs))                  return sigmoid(tl.load(gate_ptrs))
    return tl.full(shape, 1.0, tl.float32)              else:
                                                            return tl.full(shape, 1.0, tl.float32)

Where the condition is a constant of the compilation, Triton's frontend goes on behind the branch, to no effect; Gluon's
would make the tensor there, and compare its layout with that of what the branch returns. Within another branch, all
that stands behind goes to the other side, as the layouts there are those of launches that get to it:

    if expert == -1:                                    if expert == -1:
        if FUSED:                                           if FUSED:
            return                                              return
        write_zeros(c_ptr, rows, BLOCK)                     else:
                                                                write_zeros(c_ptr, rows, BLOCK)
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

_MAKING = {f"triton.language.{name}" for name in ("arange", "full", "zeros")}


def early_returns(source: SourceFile) -> Lowered:
    """Have every function of a file with such a `return` return in both sides of the branch."""
    return each_function(source, ["return"], lambda function, spans: list(_edits(function, source, spans)))


def _edits(function: JitFunction, source: SourceFile, spans: Spans) -> Iterator[Edit]:
    match list(function.node.body.body):
        case [*_, cst.If(orelse=None) as branch, cst.SimpleStatementLine() as last]:
            if _returns(branch.body) and _returns(last) and any(_makes(call, source) for call in walk(last)):
                yield _in_the_other_side(branch, last, spans)
    constants = {each.name for each in function.parameters if each.is_constexpr}
    found = [
        edit
        for outer in walk(function.node.body)
        if isinstance(outer, cst.If) and isinstance(outer.body, cst.IndentedBlock)
        for edit in _behind_known_tests(list(outer.body.body), constants, spans)
    ]
    end = 0
    for edit in sorted(found, key=lambda each: each.start):
        # What stands within another one moves with that.
        if edit.start >= end:
            yield edit
            end = edit.end


def _behind_known_tests(lines: list[cst.BaseStatement], constants: set[str], spans: Spans) -> Iterator[Edit]:
    """What stands in a branch behind the first test of constants under which nothing else is done."""
    for line in lines[:-1]:
        if not isinstance(line, cst.If) or line.orelse is not None or not _only_returns(line.body):
            continue
        names = {each.value for each in walk(line.test) if isinstance(each, cst.Name)}
        behind = spans.raw[spans.of(line)[1] : spans.of(lines[-1])[1]]
        if names and names <= constants and b'"""' not in behind and b"'''" not in behind:
            yield _in_the_other_side(line, lines[-1], spans)
        return


def _only_returns(block: cst.BaseSuite) -> bool:
    """Whether a block is a `return` of nothing alone."""
    match block:
        case cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Return(value=None)])]):
            return True
    return False


def _returns(node: cst.CSTNode) -> bool:
    """Whether a line, or the last one of a block, is a `return` of something."""
    match node:
        case cst.IndentedBlock(body=[*_, last]):
            return _returns(last)
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression())]):
            return True
    return False


def _makes(node: cst.CSTNode, source: SourceFile) -> bool:
    """Whether a node is a call that makes a tensor of a layout that Gluon has to be told."""
    return isinstance(node, cst.Call) and bool(source.names.of(node.func) & _MAKING)


def _in_the_other_side(branch: cst.If, last: cst.BaseStatement, spans: Spans) -> Edit:
    """What comes after a branch in its `else`, to the last statement, with what is noted there."""
    column, _ = spans.line(spans.of(branch)[0])
    start = spans.raw.rindex(b"\n", 0, spans.of(branch)[1]) + 1
    start = spans.raw.index(b"\n", start) + 1
    end = spans.of(last)[1]
    lines = spans.raw[start:end].decode().split("\n")
    inner = "".join(f"    {line}\n" for line in lines if line.strip())
    return Edit(start, end, f"{column}else:\n{inner.removesuffix(chr(10))}")
