"""Branches whose statements were filtered: empty ones, neighbours under one condition, and one taken apart."""

from __future__ import annotations

import ast

import libcst as cst

from tt2gl.pipelining.flow import NONE, reads, writes
from tt2gl.pipelining.texts import negated
from tt2gl.pipelining.trees import code, indented, leading
from tt2gl.pipelining.walking import Lines


def branched(line: cst.If, body: Lines, other: Lines) -> Lines:
    """An `if` with other branches, either of which may have become empty."""
    if not body and not other:
        return []
    if not body:
        space = cst.SimpleWhitespace(" ")  # the author may have written `if(x)`
        block = cst.IndentedBlock(other)
        return [
            line.with_changes(
                test=cst.parse_expression(negated(code(line.test))),
                whitespace_before_test=space,
                body=block,
                orelse=None,
            )
        ]
    orelse: cst.If | cst.Else | None = None
    if len(other) == 1 and isinstance(line.orelse, cst.If) and isinstance(other[0], cst.If):
        orelse = other[0]
    elif other and isinstance(line.orelse, cst.Else):
        orelse = line.orelse.with_changes(body=indented(line.orelse.body).with_changes(body=other))
    elif other:
        orelse = cst.Else(cst.IndentedBlock(other))
    return [line.with_changes(body=indented(line.body).with_changes(body=body), orelse=orelse)]


def joined(lines: Lines) -> Lines:
    """The lines with each two neighbouring branches under one condition made one."""
    made: Lines = []
    for line in lines:
        together = _joined(made[-1], line) if made else None
        if together is None:
            made.append(line)
        else:
            made[-1] = together
    return made


def parted(line: cst.If) -> Lines:
    """A branch as one for each of its statements, where both sides bind the same names in one order; else whole."""
    if isinstance(line.orelse, cst.If):
        return [line]
    sides = [indented(each.body) for each in (line, line.orelse) if each is not None]
    rows = list(zip(*(side.body for side in sides), strict=False))
    trees = [[ast.parse(code(each)) for each in row] for row in rows]
    bound = [{writes(tree) for tree in row} for row in trees]
    every = NONE.union(*(names for row in bound for names in row))
    alike = all(len(side.body) == len(rows) for side in sides) and all(len(names) == 1 for names in bound)
    if not alike or any(reads(tree) & every for row in trees for tree in row):
        return [line]
    made: Lines = []
    for row in rows:
        body, *other = (side.with_changes(body=[each]) for side, each in zip(sides, row, strict=True))
        orelse = line.orelse.with_changes(body=other[0]) if line.orelse is not None else None
        made.append(line.with_changes(body=body, orelse=orelse, leading_lines=[] if made else line.leading_lines))
    return made


def _joined(first: cst.BaseStatement, second: cst.BaseStatement) -> cst.If | None:
    if not (isinstance(first, cst.If) and isinstance(second, cst.If)) or leading(second):
        return None
    if code(first.test) != code(second.test) or any(isinstance(each.orelse, cst.If) for each in (first, second)):
        return None
    test = ast.parse(code(first.test), mode="eval")
    if reads(test) & writes(ast.parse(cst.Module([first]).code)):
        return None
    body = [*indented(first.body).body, *indented(second.body).body]
    others = [each.orelse for each in (first, second) if isinstance(each.orelse, cst.Else)]
    orelse = None
    if others:
        other = [line for each in others for line in indented(each.body).body]
        orelse = others[0].with_changes(body=indented(others[0].body).with_changes(body=joined(other)))
    return first.with_changes(body=indented(first.body).with_changes(body=joined(body)), orelse=orelse)
