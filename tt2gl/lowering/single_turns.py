"""Loops of one turn written out, Triton to Triton.

    for d in range(0, DIM, BLOCK):
        x = tl.load(x_ptrs + d)

becomes, where the bounds are constants and `analysis.single_turns` has found it,

    tl.static_assert(0 < DIM and DIM <= BLOCK, "the loop is taken to have one turn")
    d = 0
    x = tl.load(x_ptrs + d)

and so does one that counts down. As Triton's compiler has no loop there, either, and copies what it loads ahead of the
loop around it. One with a string of several lines in it stays. What a `static_range` counts by is a constant:

    d: tl.constexpr = 0

and stays a loop where the function binds that name elsewhere, too.
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

_MODULE = "triton.language."
_PLAIN = (cst.Name, cst.Attribute, cst.Call, cst.Integer)
_MESSAGE = "the loop is taken to have one turn"


def without_single_turns(source: SourceFile, places: Collection[tuple[int, int]]) -> Lowered:
    """Write out the loops at these places of a file, by line and column; of two in one another that around."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        done = 0
        for loop in (node for node in walk(function.node.body) if isinstance(node, cst.For)):
            start, language = source.positions[loop].start, language_of(loop, source)
            first, last = spans.of(loop)
            plain = isinstance(loop.body, cst.IndentedBlock) and b'"""' not in spans.raw[first:last]
            plain = plain and (not _is_static(loop) or _is_bound_once(loop, function))
            if (start.line, start.column) in places and language and plain and first >= done:
                yield from _written_out(loop, language, spans)
                done = last

    return each_function(source, ["range("], edits)


def _is_static(loop: cst.For) -> bool:
    """Whether a loop over a range is written out by the compiler."""
    called = loop.iter.func if isinstance(loop.iter, cst.Call) else loop.iter
    name = called.attr if isinstance(called, cst.Attribute) else called
    return isinstance(name, cst.Name) and name.value == "static_range"


def _is_bound_once(loop: cst.For, function: JitFunction) -> bool:
    """Whether the name that a loop counts by is given a value by that loop alone: a constant is defined once."""
    assert isinstance(loop.target, cst.Name)
    targets: list[cst.CSTNode] = [*function.node.params.params]
    for node in walk(function.node.body):
        match node:
            case cst.For(target=target) | cst.AssignTarget(target=target) | cst.AnnAssign(target=target):
                targets.append(target)
            case cst.AugAssign(target=target) | cst.NamedExpr(target=target):
                targets.append(target)
    names = [part.value for target in targets for part in walk(target) if isinstance(part, cst.Name)]
    return names.count(loop.target.value) == 1


def language_of(loop: cst.For, source: SourceFile) -> str | None:
    """What Triton's language is called in a loop."""
    for node in walk(loop):
        match node:
            case cst.Attribute(value=cst.Name(value=language), attr=cst.Name(value=name)):
                if _MODULE + name in source.names.of(node):
                    return language
    return None


def _written_out(loop: cst.For, language: str, spans: Spans) -> Iterator[Edit]:
    assert isinstance(loop.iter, cst.Call)
    assert isinstance(loop.target, cst.Name)
    raw, (start, end) = spans.raw, spans.of(loop)
    column = start - (raw.rfind(b"\n", 0, start) + 1)
    inner = spans.of(loop.body.body[0])[0]
    less = inner - (raw.rfind(b"\n", 0, inner) + 1) - column
    bounds = [arg.value for arg in loop.iter.args]
    texts = [spans.text(each) if _is_plain(each) else f"({spans.text(each)})" for each in bounds]
    head = f'{language}.static_assert({_runs_once(texts)}, "{_MESSAGE}")'
    colon = raw.index(b":", spans.whole(loop.iter)[1]) + 1
    name = f"{loop.target.value}: {language}.constexpr" if _is_static(loop) else loop.target.value
    yield Edit(start, colon, f"{head}\n{' ' * column}{name} = {texts[0] if len(texts) > 1 else 0}")
    line = raw.find(b"\n", colon) + 1
    while 0 < line < end:
        if raw.startswith(b" " * less, line):
            yield Edit(line, line + less, "")
        line = raw.find(b"\n", line) + 1


def _runs_once(bounds: list[str]) -> str:
    """Whether a range of these bounds, as source, has one number; a step that begins with a minus counts down."""
    if len(bounds) == 1:
        return f"{bounds[0]} == 1"
    start, stop, step = (*bounds, "1")[:3]
    if step.startswith("-"):
        above = "0" if (stop, step) == ("-1", "-1") else f"{stop} + {step[1:]}"
        return f"{start} == {above}" if step == "-1" else f"{stop} < {start} and {start} <= {above}"
    return f"{start} < {stop} and {stop} <= {step if start == '0' else f'{start} + {step}'}"


def _is_plain(bound: cst.BaseExpression) -> bool:
    """Whether a bound can stand in a comparison, or be added to, without parentheses."""
    match bound:
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Name() | cst.Integer()):
            return True
        case cst.BinaryOperation(left=left):
            return _is_plain(left) and not isinstance(left, cst.UnaryOperation)
    return isinstance(bound, _PLAIN)
