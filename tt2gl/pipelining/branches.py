"""Branches whose statements were filtered: empty ones, neighbours under one condition, and one taken apart."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from tt2gl.pipelining.flow import NONE, Names, reads, writes
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


def parted(line: cst.If, *, own: bool = False) -> Lines:
    """A branch as one for each of its statements, where both sides bind the same names in one order; else whole.

    `own`: what a side binds for itself stays above the statement that it is for.
    """
    if isinstance(line.orelse, cst.If):
        return [line]
    sides = [indented(each.body) for each in (line, line.orelse) if each is not None]
    trees = [[ast.parse(code(each)) for each in side.body] for side in sides]
    both = frozenset.intersection(*(NONE.union(*map(writes, side)) for side in trees))
    rows = [_rows(side, tree, both if own else None) for side, tree in zip(sides, trees, strict=True)]
    if any(each is None or [name for name, _ in each] != [name for name, _ in rows[0] or ()] for each in rows):
        return [line]
    if any(reads(tree) & both for side in trees for tree in side):
        return [line]
    made: Lines = []
    for row in zip(*(each for each in rows if each is not None), strict=True):
        body, *other = (side.with_changes(body=part) for side, (_, part) in zip(sides, row, strict=True))
        orelse = line.orelse.with_changes(body=other[0]) if line.orelse is not None else None
        made.append(line.with_changes(body=body, orelse=orelse, leading_lines=[] if made else line.leading_lines))
    return made


def _rows(
    side: cst.IndentedBlock, trees: Sequence[ast.AST], both: Names | None
) -> list[tuple[Names, list[cst.BaseStatement]]] | None:
    """A side's statements, each with what it binds; those that bind none of `both`, if given, with the one below."""
    made: list[tuple[Names, list[cst.BaseStatement]]] = []
    above: list[cst.BaseStatement] = []
    for each, tree in zip(side.body, trees, strict=True):
        bound = writes(tree)
        if both is None or bound & both:
            made.append((bound, [*above, each]))
            above = []
        else:
            above.append(each)
    return None if above else made


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
