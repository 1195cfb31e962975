"""Descriptors of one name that branches make, Triton to Triton: for targets that have no TMA.

    if FP8:
        v = tl.make_tensor_descriptor(v_ptr, shape=[D, rows], strides=[n, 1], block_shape=[D, BLOCK])
    else:
        v = tl.make_tensor_descriptor(v_ptr, shape=[rows, D], strides=[D, 1], block_shape=[BLOCK, D])

becomes, where the compilation decides the condition, one that is made of what the condition chooses:

    v = tl.make_tensor_descriptor(v_ptr, shape=[D if FP8 else rows, rows if FP8 else D],
        strides=[n if FP8 else D, 1], block_shape=[D if FP8 else BLOCK, BLOCK if FP8 else D])

so that `lowering.descriptors` knows it where it is used. So do those that a helper makes (`lowering.making_helpers`).
Branches that do anything else, or make descriptors of different ranks, stay.
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.descriptor_calls import is_make
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.making_helpers import making_helpers
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile
from tt2gl.syntax import comments_in
from tt2gl.visitors import within

_CONDITIONS = (
    cst.Name, cst.Integer, cst.SimpleString, cst.Comparison, cst.ComparisonTarget, cst.BooleanOperation,
    cst.UnaryOperation, cst.BaseCompOp, cst.BaseUnaryOp, cst.BaseBooleanOp,
)  # fmt: skip
"""What a condition that the compilation decides is made of, besides names of constants."""


def joined_descriptors(source: SourceFile) -> Lowered:
    """The file with one descriptor made where branches make one each."""
    helpers = making_helpers(source)

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        constants = {parameter.name for parameter in function.parameters if parameter.is_constexpr}
        branches = [*within(function.node.body, cst.If)]
        later = [branch.orelse for branch in branches]
        first = [branch for branch in branches if branch not in later]
        return [edit for branch in first if (edit := _joined(branch, helpers, constants, source, spans)) is not None]

    return each_function(source, ["make_tensor_descriptor"], edits)


def _joined(
    branch: cst.If, helpers: Collection[str], constants: Collection[str], source: SourceFile, spans: Spans
) -> Edit | None:
    """The edit that makes one statement of an `if`; None where it is another."""
    match branch:
        case cst.If(
            body=cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Assign() as one])]),
            orelse=cst.Else(
                body=cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Assign() as other]) as last]),
            ),
        ) if _is_decided(branch.test, constants):
            first, then = _made(one, helpers, source), _made(other, helpers, source)
        case _:
            return None
    if first is None or then is None or first[0] != then[0]:
        return None
    (target, call), (_, second) = first, then
    code = source.module.code_for_node
    if code(call.func) != code(second.func) or len(call.args) != len(second.args):
        return None
    arguments: list[str] = []
    for arg, beside in zip(call.args, second.args, strict=True):
        keyword = arg.keyword.value if arg.keyword is not None else ""
        if arg.star or beside.star or keyword != (beside.keyword.value if beside.keyword is not None else ""):
            return None
        chosen = _chosen(arg.value, beside.value, branch.test, spans)
        if chosen is None:
            return None
        arguments.append(f"{keyword}={chosen}" if keyword else chosen)
    start, end = spans.of(branch)[0], spans.whole(other.value)[1]
    comments = comments_in(branch.with_changes(leading_lines=[]))
    if last.trailing_whitespace.comment is not None:  # it stays where it is
        comments.remove(last.trailing_whitespace.comment.value)
    before = "".join(f"{each}\n{spans.line(start)[0]}" for each in comments)
    return Edit(start, end, f"{before}{target} = {code(call.func)}({', '.join(arguments)})")


def _made(node: cst.Assign, helpers: Collection[str], source: SourceFile) -> tuple[str, cst.Call] | None:
    """The name and the call of a statement that makes a descriptor."""
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(target))], value=cst.Call(func=func) as call):
            by_helper = isinstance(func, cst.Name) and func.value in helpers
            return (target, call) if by_helper or is_make(source.names.of(func)) else None
    return None


def _is_decided(test: cst.BaseExpression, constants: Collection[str]) -> bool:
    """Whether the compilation decides a condition: it reads constants alone."""
    return all(
        node.value in constants or node.value in ("None", "True", "False")
        if isinstance(node, cst.Name)
        else isinstance(node, _CONDITIONS)
        for node in walk(test)
    )


def _chosen(one: cst.BaseExpression, other: cst.BaseExpression, test: cst.BaseExpression, spans: Spans) -> str | None:
    """What of two arguments the condition chooses, element by element; None where their ranks differ."""
    match one, other:
        case (cst.List() | cst.Tuple(), cst.List() | cst.Tuple()):
            if len(one.elements) != len(other.elements):
                return None
            pairs = zip(one.elements, other.elements, strict=True)
            parts = [_chosen(each.value, beside.value, test, spans) for each, beside in pairs]
            return f"[{', '.join(part or '' for part in parts)}]" if all(parts) else None
    texts = [spans.text(each) for each in (one, other)]
    if texts[0] == texts[1]:
        return texts[0]
    parted = [
        f"({text})" if isinstance(each, cst.IfExp) else text for each, text in zip((one, other), texts, strict=True)
    ]
    condition = spans.text(test)
    return f"{parted[0]} if {condition} else {parted[1]}"
