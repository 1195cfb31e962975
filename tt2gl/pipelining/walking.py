"""Walks the blocks of a function, both trees side by side, and puts other lines in the place of some statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import libcst as cst

from tt2gl.pipelining.rings import NotPipelinedError
from tt2gl.pipelining.trees import indented, lines_of

Lines = list[cst.BaseStatement]
Compound = Callable[[ast.stmt, cst.BaseStatement, int], Lines]


def with_blocks(statement: ast.stmt, line: cst.BaseStatement, each: Compound, indent: int) -> cst.BaseStatement:
    """A compound statement with `each` done to the compound statements in its blocks; `indent` is its own."""

    def block(statements: Sequence[ast.stmt], suite: cst.BaseSuite) -> cst.IndentedBlock:
        return indented(suite).with_changes(body=walked(statements, suite, each, indent + 4))

    if isinstance(statement, ast.If) and isinstance(line, cst.If):
        orelse: cst.If | cst.Else | None = line.orelse
        if isinstance(orelse, cst.If):
            other = with_blocks(statement.orelse[0], orelse, each, indent)
            assert isinstance(other, cst.If)
            orelse = other
        elif isinstance(orelse, cst.Else):
            orelse = orelse.with_changes(body=block(statement.orelse, orelse.body))
        return line.with_changes(body=block(statement.body, line.body), orelse=orelse)
    if isinstance(statement, ast.Try) and isinstance(line, cst.Try):  # kernels where Triton may be missing
        return line.with_changes(
            body=block(statement.body, line.body),
            handlers=[
                handler.with_changes(body=block(given.body, handler.body))
                for given, handler in zip(statement.handlers, line.handlers, strict=True)
            ],
            orelse=line.orelse and line.orelse.with_changes(body=block(statement.orelse, line.orelse.body)),
        )
    inner = getattr(statement, "body", None)
    if inner and isinstance(line, (cst.For, cst.While, cst.With, cst.FunctionDef, cst.ClassDef)):
        return line.with_changes(body=block(inner, line.body))
    raise NotPipelinedError(f"line {statement.lineno} cannot hold a pipelined loop")


def walked(statements: Sequence[ast.stmt], block: cst.BaseSuite, each: Compound, indent: int) -> Lines:
    """The lines of a block with `each` done to its compound statements."""
    return [
        made
        for line, members, first in lines_of(statements, block)
        for made in ([line] if members else each(first, line, indent))
    ]
