"""Helpers that make tensor descriptors, written out at their calls, Triton to Triton: for targets that have no TMA.

    def maybe_desc(desc_or_ptr, shape, strides, block_shape):
        if isinstance(desc_or_ptr, tl.tensor_descriptor):
            return desc_or_ptr
        else:
            return tl.make_tensor_descriptor(desc_or_ptr, shape, strides, block_shape)

    k = maybe_desc(k, [rows, D], [D, 1], [BLOCK, D])
    x = k.load([start, 0])

becomes, where `k` is no descriptor before,

    k_tensor_desc = tl.make_tensor_descriptor(k, [rows, D], [D, 1], [BLOCK, D])
    x = k_tensor_desc.load([start, 0])

of which `lowering.descriptors` makes pointers and masks; a call that is given a descriptor goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.descriptor_calls import is_make
from tt2gl.lowering.descriptor_texts import Assigned, stem_of
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.naming import Names
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.source import SourceFile
from tt2gl.visitors import VariableReader


@dataclass(frozen=True)
class _Helper:
    """A helper that makes a descriptor by `call`; one that `asks` gives a descriptor back that it is given for that."""

    parameters: tuple[cst.Param, ...]
    call: cst.Call
    asks: str = ""


def written_out(source: SourceFile) -> Lowered:
    """The file with the calls of such helpers written out in its kernels."""
    found = making_helpers(source)

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        return list(_edits(function, found, source, spans)) if function in source.kernels else []

    return each_function(source, found, edits)


def making_helpers(source: SourceFile) -> dict[str, _Helper]:
    """The helpers of a file that do nothing but make a descriptor, by name."""
    return {each.name: helper for each in source.functions if (helper := _helper(each, source)) is not None}


def _helper(function: JitFunction, source: SourceFile) -> _Helper | None:
    """A function as a helper that does nothing but make a descriptor; None for any other."""
    body = function.node.body
    if function.dialect != "triton" or function.nested or not isinstance(body, cst.IndentedBlock):
        return None
    parameters = function.node.params
    if parameters.star_kwarg is not None or not isinstance(parameters.star_arg, cst.MaybeSentinel):
        return None
    statements = list(body.body[1 if function.node.get_docstring() is not None else 0 :])
    plain = (*parameters.posonly_params, *parameters.params)
    match statements:
        case [cst.If() as branch, last] if branch.orelse is None:
            otherwise = _returned(last)
        case [cst.If(orelse=cst.Else(body=cst.IndentedBlock(body=[last]))) as branch]:
            otherwise = _returned(last)
        case [last]:
            call = _made(_returned(last), source)
            return _Helper(plain, call) if call is not None and _is_plain(call, plain) else None
        case _:
            return None
    call, asked = _made(otherwise, source), _asked(branch.test)
    then = branch.body.body[0] if len(branch.body.body) == 1 else None
    given = _returned(then) if isinstance(then, cst.BaseStatement) else None
    if call is None or not _is_plain(call, plain) or not isinstance(given, cst.Name) or given.value != asked:
        return None
    return _Helper(plain, call, asked)


def _returned(statement: cst.CSTNode) -> cst.BaseExpression | None:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as value)]):
            return value
    return None


def _made(value: cst.BaseExpression | None, source: SourceFile) -> cst.Call | None:
    """A call that makes a descriptor."""
    return value if isinstance(value, cst.Call) and is_make(source.names.of(value.func)) else None


def _is_plain(call: cst.Call, parameters: Sequence[cst.Param]) -> bool:
    """Whether each argument is a parameter, or reads none."""
    own = {parameter.name.value for parameter in parameters}
    return not any(arg.star or not isinstance(arg.value, cst.Name) and own & _names_in(arg.value) for arg in call.args)


def _asked(test: cst.BaseExpression) -> str:
    """The name that a test asks whether it is a descriptor; empty for any other test."""
    match test:
        case cst.Call(
            func=cst.Name("isinstance"),
            args=[
                cst.Arg(value=cst.Name(name)),
                cst.Arg(value=cst.Attribute(attr=cst.Name("tensor_descriptor" | "tensor_descriptor_base"))),
            ],
        ):
            return name
    return ""


def _edits(function: JitFunction, helpers: Mapping[str, _Helper], source: SourceFile, spans: Spans) -> Iterator[Edit]:
    """The edits of one kernel."""
    names = Names.of(source.text)
    assigned = Assigned()
    function.node.body.visit(assigned)
    own = {parameter.name for parameter in function.parameters}
    made: set[str] = set()
    # What is made under a condition may be none after it: those helpers stay.
    for line in function.node.body.body:
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(target))], value=cst.Call() as call) as step]
            ):
                pass
            case _:
                continue
        if is_make(source.names.of(call.func)):
            made.add(target)
            continue
        helper = helpers.get(call.func.value) if isinstance(call.func, cst.Name) else None
        given = _arguments(helper, call) if helper is not None else None
        if helper is None or given is None:
            continue
        asked = given.get(helper.asks)
        if isinstance(asked, cst.Name) and asked.value in made:
            if asked.value == target:
                yield spans.gone(spans.of(step)[0], spans.whole(call)[1])
            continue
        again = assigned.names.count(target)
        if again > 1 or asked is not None and not (isinstance(asked, cst.Name) and asked.value in own):
            continue
        arguments = ", ".join(
            (f"{arg.keyword.value}=" if arg.keyword is not None else "") + spans.text(given.get(_name(arg), arg.value))
            for arg in helper.call.args
        )
        text = f"{source.module.code_for_node(helper.call.func)}({arguments})"
        name = target
        if target in own:
            name = names.fresh(f"{stem_of(target)}_tensor_desc")
            reads = _Reads()
            function.node.body.visit(reads)
            since = spans.of(call)[1]
            later = [spans.of(node) for read, node in reads.found if read == target]
            yield from (Edit(*place, name) for place in later if place[0] >= since)
        yield Edit(spans.of(step)[0], spans.whole(call)[1], f"{name} = {text}")


def _name(arg: cst.Arg) -> str:
    return arg.value.value if isinstance(arg.value, cst.Name) else ""


def _arguments(helper: _Helper, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What a call gives a helper, by parameter; None where it does not say all that is made of it."""
    names = [parameter.name.value for parameter in helper.parameters]
    given: dict[str, cst.BaseExpression] = {p.name.value: p.default for p in helper.parameters if p.default is not None}
    for place, arg in enumerate(call.args):
        if arg.star or arg.keyword is None and place >= len(names):
            return None
        given[arg.keyword.value if arg.keyword is not None else names[place]] = arg.value
    wanted = {helper.asks, *(_name(arg) for arg in helper.call.args)} & set(names)
    return given if wanted <= given.keys() <= set(names) else None


def _names_in(node: cst.BaseExpression) -> set[str]:
    reads = _Reads()
    node.visit(reads)
    return {name for name, _ in reads.found}


class _Reads(VariableReader):
    """The names that are read, with their nodes."""

    def __init__(self) -> None:
        self.found: list[tuple[str, cst.Name]] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append((node.value, node))
