"""Arguments that helpers are given once more, Triton to Triton: one for each layout that a helper wants them in.

    @triton.jit
    def scaled(x_ptr, y_ptr, rows, N: tl.constexpr):
        x = tl.load(x_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
        tl.store(y_ptr + rows, tl.sum(x, axis=1))

    scaled(x_ptr, y_ptr, start + tl.arange(0, M), N)

becomes

    @triton.jit
    def scaled(x_ptr, y_ptr, rows, rows_2, N: tl.constexpr):
        x = tl.load(x_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
        tl.store(y_ptr + rows_2, tl.sum(x, axis=1))

    scaled(x_ptr, y_ptr, start + tl.arange(0, M), start + tl.arange(0, M), N)

so that its callers make them in each, where a conversion would go through memory. So a name that a helper computes of
them is made by as many statements. Which those are is decided by who asks; helpers stay as they are that are handed on,
or given arguments by stars.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.inlining import File
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.names import claimed
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile
from tt2gl.visitors import VariableReader


@dataclass(frozen=True)
class Again:
    """A parameter, or a name made of some, that a helper wants in several layouts.

    `layouts` numbers them, for each place in the text where it stands.
    """

    helper: str
    parameter: str
    layouts: tuple[int, ...]


def arguments_again(source: SourceFile, wanted: Collection[Again]) -> Lowered:
    """The file with such parameters, and what calls give them, once for each layout."""
    step = Step(source)
    file = File(source, step.spans, ())
    by_helper: dict[str, dict[str, list[tuple[int, ...]]]] = defaultdict(lambda: defaultdict(list))
    for each in sorted(wanted, key=lambda each: (each.helper, each.parameter, each.layouts)):
        by_helper[each.helper][each.parameter].append(each.layouts)
    edits: dict[str, list[Edit]] = {}
    for name, parameters in by_helper.items():
        helper = file.functions.get(name)
        calls = _calls(file, helper) if helper is not None and helper not in source.kernels else []
        if helper is None or not calls:
            continue
        taken = {node.value for node in walk(helper.node) if isinstance(node, cst.Name)}
        for parameter, numberings in parameters.items():
            made = _renamed(step.spans, helper, parameter, numberings, taken)
            if made is None:
                continue
            added, inside = made
            edits.setdefault(name, []).extend(inside)
            for caller, call in calls if any(each.name == parameter for each in helper.parameters) else ():
                edits.setdefault(caller.name, []).append(_given(step.spans, helper, call, parameter, added))
    return step.done([edit for own in edits.values() for edit in own], edits, originals=file.originals(edits))


def _calls(file: File, helper: JitFunction) -> list[tuple[JitFunction, cst.Call]]:
    """The calls of a helper, each with its caller; none where not all that is done with it is calls without stars."""
    found = [
        (function, call)
        for function in file.functions.values()
        for call in file.calls(function)
        if file.helper(call) is helper
    ]
    plain = not any(arg.star for _, call in found for arg in call.args)
    mentioned = [node for node in walk(file.source.module) if isinstance(node, cst.Name) and node.value == helper.name]
    handed_on = len(mentioned) > len(found) + 1
    return found if plain and not handed_on else []


def _renamed(
    spans: Spans, helper: JitFunction, name: str, numberings: Sequence[tuple[int, ...]], taken: set[str]
) -> tuple[list[str], list[Edit]] | None:
    """The parameters added to a helper for one of it, and its edits; None where they cannot be."""
    reader = _Reads(name)
    helper.node.body.visit(reader)
    known = [each for each in numberings if len(each) == len(reader.found)]
    place = _place(helper, name)
    if not known or place is None:
        return None
    wants = list(zip(*known, strict=True))
    layouts = list(dict.fromkeys(wants))
    added = [claimed(name, taken) for _ in layouts[1:]]
    names = dict(zip(layouts, [name, *added], strict=True))
    edits = [
        Edit(*spans.of(read), names[want])
        for read, want in zip(reader.found, wants, strict=True)
        if names[want] != name
    ]
    start, end = spans.of(place)
    if isinstance(place, cst.Name):
        return added, [Edit(end, end, _behind(spans, start, end, added)), *edits]
    text, line_end = spans.text(place.value), spans.raw.find(b"\n", end)
    more = "".join(f"\n{spans.line(start)[0]}{each} = {text}" for each in added)
    return added, [Edit(line_end, line_end, more), *edits]


def _place(helper: JitFunction, name: str) -> cst.Name | cst.Assign | None:
    """A parameter without a default or an annotation, or the only statement of a name; None where there is neither."""
    if any(each.name == name for each in helper.parameters):
        param = next((each for each in helper.node.params.params if each.name.value == name), None)
        return param.name if param is not None and param.default is None and param.annotation is None else None
    statements = [each for each in walk(helper.node.body) if isinstance(each, cst.SimpleStatementLine)]
    made = [each for each in statements if any(name in _targets(small) for small in each.body)]
    alone = made[0].body[0] if len(made) == 1 and len(made[0].body) == 1 else None
    return alone if isinstance(alone, cst.Assign) and _targets(alone) == [name] else None


def _targets(statement: cst.BaseSmallStatement) -> list[str]:
    """The names that stand in a statement where it gives values."""
    targets = [each.target for each in statement.targets] if isinstance(statement, cst.Assign) else []
    if isinstance(statement, cst.AugAssign | cst.AnnAssign):
        targets = [statement.target]
    return [node.value for target in targets for node in walk(target) if isinstance(node, cst.Name)]


def _given(spans: Spans, helper: JitFunction, call: cst.Call, parameter: str, added: Sequence[str]) -> Edit:
    """A call's argument given once more for each parameter that was added."""
    place = [each.name for each in helper.parameters].index(parameter)
    named: Mapping[str, cst.Arg] = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    arg = named[parameter] if parameter in named else call.args[place]
    text = spans.text(arg.value)
    more = [text if arg.keyword is None else f"{name}={text}" for name in added]
    start, end = spans.argument(arg)
    return Edit(end, end, _behind(spans, start, end, more))


def _behind(spans: Spans, start: int, end: int, texts: Sequence[str]) -> str:
    """What is written behind something in a list: on lines of its own where that has one."""
    indent, before = spans.line(start)
    line_end = spans.raw.find(b"\n", end)
    alone = before == len(indent.encode()) and spans.raw[end:line_end].strip() == b","
    return "".join(f",\n{indent}{text}" if alone else f", {text}" for text in texts)


class _Reads(VariableReader):
    """The places where a variable's name stands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[cst.Name] = []

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            self.found.append(node)
