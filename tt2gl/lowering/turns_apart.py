"""Loops that the compiler writes out, written out, Triton to Triton, a turn after the other.

    for s in tl.static_range(LOG):
        x = fold(tl.reshape(x, (D >> (s + 1), 2)))

becomes, where turns compute with tensors of other shapes, as `analysis.turns_apart` has found,

    tl.static_assert(LOG == 2, "the loop is taken to have so many turns")
    x = fold(tl.reshape(x, (D >> (0 + 1), 2)))
    x = fold(tl.reshape(x, (D >> (1 + 1), 2)))

as one text would give all of them the layouts of one. Where launches have more turns or fewer, those that not all have
stand under `if 1 < LOG`. What reads the number after the loop, or sets it, and a string of several lines in it, keep it
a loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.single_turns import language_of
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.plan import TurnsApart
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_MESSAGE = "the loop is taken to have so many turns"


def with_turns_apart(source: SourceFile, loops: Collection[TurnsApart]) -> Lowered:
    """Write out these loops of a file; of two in one another that around."""
    wanted = _joined(loops)

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        done = 0
        for loop in (node for node in walk(function.node.body) if isinstance(node, cst.For)):
            start, language = source.positions[loop].start, language_of(loop, source)
            asked = wanted.get((start.line, start.column))
            first, last = spans.of(loop)
            if asked is not None and language and first >= done and _is_plain(loop, function, spans):
                yield _edit(loop, asked, language, spans)
                done = last

    return each_function(source, ["static_range("], edits)


def _joined(loops: Collection[TurnsApart]) -> dict[tuple[int, int], TurnsApart]:
    """What each loop counts under the launches of all kernels that reach it, if that is one list of numbers."""
    found: dict[tuple[int, int], TurnsApart] = {}
    unlike = set[tuple[int, int]]()
    for loop in loops:
        before = found.get(loop.place, loop)
        longer = max(before.values, loop.values, key=len)
        if any(longer[: len(each)] != each for each in (before.values, loop.values)):
            unlike.add(loop.place)
        found[loop.place] = TurnsApart(loop.place, longer, min(before.fewest, loop.fewest))
    return {place: loop for place, loop in found.items() if place not in unlike}


def _is_plain(loop: cst.For, function: JitFunction, spans: Spans) -> bool:
    """Whether the lines of a loop can be repeated, with numbers for what it counts by."""
    first, last = spans.of(loop)
    if not isinstance(loop.body, cst.IndentedBlock) or not isinstance(loop.target, cst.Name):
        return False
    if b'"""' in spans.raw[first:last] or b"'''" in spans.raw[first:last]:
        return False
    name, own = loop.target.value, {id(node) for node in walk(loop)}
    if any(isinstance(node, cst.FormattedStringExpression) and _reads(node, name) for node in walk(loop)):
        return False
    elsewhere = [node for node in walk(function.node.body) if id(node) not in own]
    others = [node for node in elsewhere if isinstance(node, cst.For | cst.CompFor) and _reads(node.target, name)]
    bound = {id(part) for node in others for part in walk(node)}
    if any(isinstance(node, cst.Name) and node.value == name and id(node) not in bound for node in elsewhere):
        return False
    sets = cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.NamedExpr | cst.For | cst.CompFor
    return not any(isinstance(node, sets) and _reads(node.target, name) for node in walk(loop.body))


def _reads(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(part, cst.Name) and part.value == name for part in walk(node))


def _edit(loop: cst.For, asked: TurnsApart, language: str, spans: Spans) -> Edit:
    assert isinstance(loop.iter, cst.Call)
    raw, (start, end) = spans.raw, spans.of(loop)
    column = start - (raw.rfind(b"\n", 0, start) + 1)
    inner = spans.of(loop.body.body[0])[0]
    less = inner - (raw.rfind(b"\n", 0, inner) + 1) - column
    colon = raw.index(b":", spans.whole(loop.iter)[1]) + 1
    first = raw.index(b"\n", colon) + 1
    end = len(raw[:end].rstrip())
    comment, margin = raw[colon : first - 1].strip().decode(), " " * column
    lines = [f"{margin}{comment}"] if comment else []
    asserted = _counts(loop.iter, asked, spans)
    lines += [f'{margin}{language}.static_assert({asserted}, "{_MESSAGE}")'] if asserted else []
    above = "<" if len(asked.values) == 1 or asked.values[0] < asked.values[1] else ">"
    for turn, value in enumerate(asked.values):
        body = _with_number(loop, value, (first, end), spans).split("\n")
        if turn >= asked.fewest:
            lines.append(f"{margin}if {value} {above} {_stop(loop.iter, spans)}:")
            lines += body
        else:
            lines += [line[less:] if line[:less].isspace() else line for line in body]
    return Edit(start, end, "\n".join(lines)[column:])


def _counts(call: cst.Call, asked: TurnsApart, spans: Spans) -> str:
    """That a range counts what it is taken to count, as source: of numbers nothing is to be said."""
    values = asked.values
    step = values[1] - values[0] if len(values) > 1 else 1
    start, stop, by = {1: (None, 0, None), 2: (0, 1, None), 3: (0, 1, 2)}[len(call.args)]
    fixed = ((call.args[at].value, value) for at, value in ((start, values[0]), (by, step)) if at is not None)
    said = [f"{spans.text(bound)} == {value}" for bound, value in fixed if not _is_number(bound)]
    bound = call.args[stop].value
    if not _is_number(bound):
        last, text = values[-1] + step, _stop(call, spans)
        if asked.fewest < len(values):
            said.append(f"{text} {'<=' if step > 0 else '>='} {last}")
        elif step in (1, -1):
            said.append(f"{text} == {last}")
        else:
            less, more = (values[-1] + 1, last) if step > 0 else (last, values[-1] - 1)
            said.append(f"{less} <= {text} and {text} <= {more}")
    return " and ".join(said)


def _stop(call: cst.Call, spans: Spans) -> str:
    """The bound of a range as source that can stand in a comparison."""
    bound = call.args[0 if len(call.args) == 1 else 1].value
    text = spans.text(bound)
    return text if isinstance(bound, cst.Name | cst.Attribute | cst.Call | cst.Integer) or bound.lpar else f"({text})"


def _is_number(bound: cst.BaseExpression) -> bool:
    plain = bound.expression if isinstance(bound, cst.UnaryOperation) else bound
    return isinstance(plain, cst.Integer)


def _with_number(loop: cst.For, value: int, span: tuple[int, int], spans: Spans) -> str:
    """The lines of a loop's body with a number for what it counts by."""
    assert isinstance(loop.target, cst.Name)
    name, number = loop.target.value, (str(value) if value >= 0 else f"({value})").encode()
    labels = {id(node.keyword) for node in walk(loop.body) if isinstance(node, cst.Arg)}
    labels |= {id(node.attr) for node in walk(loop.body) if isinstance(node, cst.Attribute)}
    parts, place = list[bytes](), span[0]
    read = (node for node in walk(loop.body) if isinstance(node, cst.Name) and node.value == name)
    for start, end in sorted(spans.of(node) for node in read if id(node) not in labels):
        parts += [spans.raw[place:start], number]
        place = end
    return b"".join([*parts, spans.raw[place : span[1]]]).decode()
