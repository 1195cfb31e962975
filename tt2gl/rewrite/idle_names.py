"""Rule `idle_names`: what nothing reads any more, as of offsets that are written another way, is not computed.

Comments stay. So do what the author's file computes for nothing, what may do more than compute, and the last statement
of a block.

rows_scaled = rows[:, None] * stride                                          # before
x = gl.amd.cdna3.buffer_load(x_ptr, pid * BLOCK * stride + rest)

x = gl.amd.cdna3.buffer_load(x_ptr, pid * BLOCK * stride + rest)              # after
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import NONE, Names, inside, reads, writes
from tt2gl.pipelining.static import bound
from tt2gl.trees import blocks, functions_in, nodes_in, python_tree

_GLUON = re.compile(r"^[ \t]*from triton\.experimental\.gluon import language as (\w+)", re.MULTILINE)

# What only computes: functions of Gluon's, and what tensors and shared memory are asked for.
_FUNCTIONS = {
    "SliceLayout",
    "arange",
    "cast",
    "cdiv",
    "expand_dims",
    "full",
    "maximum",
    "minimum",
    "program_id",
    "where",
    "zeros",
}
_METHODS = {"index", "to"}

_PARTS = (ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Slice)
_LISTS = (ast.Tuple, ast.List, ast.keyword)


def without_idle_names(text: str, functions: Collection[str], author: str) -> str:
    """The text with such names gone from some functions; `author` is the file before."""
    gluon = _GLUON.search(text)
    if gluon is None:
        return text
    own = NONE.union(*map(_idle, functions_in(python_tree(author))))
    return in_functions(text, functions, lambda places, function: _edits(places, function, own, gluon[1]))


def _edits(places: Places, function: ast.FunctionDef, own: Names, gluon: str) -> Iterator[Edit]:
    """What takes such names out of a function, and those that nothing but they read."""
    every = [function.body, *(block for each in inside(function.body) for block in blocks(each))]
    names, gone, kept = bound(function), set[ast.stmt](), own
    while idle := _idle(function, gone) - kept:
        giving = [each for each in inside(function.body) if not [*blocks(each)] and writes(each) & idle]
        giving = [each for each in giving if each not in gone]
        kept = kept.union(*(writes(each) for each in giving if not _only_names(each, places, names, gluon)))
        without = gone.union(each for each in giving if not writes(each) & kept)
        if emptied := [block for block in every if without.issuperset(block)]:
            kept = kept.union(*(writes(each) for block in emptied for each in block))
        else:
            gone, kept = without, kept | idle
    for statement in gone:
        yield Edit(*places.lines(statement), "")


def _idle(function: ast.FunctionDef, gone: Collection[ast.stmt] = ()) -> Names:
    """The names that statements of a function bind and none of it reads, but for those that are `gone`."""
    bound_here, read = set[str](), set[str]()
    for statement in inside(function.body):
        if [*blocks(statement)]:
            inner = frozenset(each for block in blocks(statement) for each in block)
            read |= reads(statement, inner)
            read |= writes(statement.target) if isinstance(statement, ast.For) else NONE
        elif statement not in gone:
            bound_here |= writes(statement)
            read |= reads(statement)
    return frozenset(bound_here - read)


def _only_names(statement: ast.stmt, places: Places, names: Names, gluon: str) -> bool:
    """Whether a statement does no more than name what is computed, on lines of its own and without a comment."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) if not isinstance(value, ast.Tuple):
            line = places.raw[slice(*places.lines(statement))]
            return (
                b"#" not in line and b";" not in line and all(_computes(part, names, gluon) for part in nodes_in(value))
            )
    return False


def _computes(node: ast.AST, names: Names, gluon: str) -> bool:
    """Whether a part of an expression does nothing but compute; `names`: the function's own."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=attr)) if owner not in names:
            return owner == gluon and attr in _FUNCTIONS
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _METHODS
    return isinstance(node, _PARTS + _LISTS)


__all__ = ["without_idle_names"]
