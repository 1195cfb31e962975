"""Comparisons of a loop that a load's mask has, too, made above that load, Triton to Triton (AMD).

    k = tl.load(k_ptrs, mask=offs_n[None, :] < n)
    qk = tl.dot(q, k)
    keep = offs_n[None, :] < n
    qk = tl.where(keep, qk, float("-inf"))

becomes `keep = offs_n[None, :] < n`, then the load, and the rest as it was. Triton's CSE pass makes one comparison of
both, where the first is, and LLVM's scheduler for AMD keeps that order: attention with tiles of 128x128 waits 42 times
a step on gfx942 for 90 so, and spills 37 registers for 63 (Triton's kernel 44 and 42). Where what is compared, or the
name, is touched in between, and where a comment stands beside the comparison, it stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_OF_VALUES = (cst.Name, cst.Integer, cst.Subscript, cst.BinaryOperation)


def early_masks(source: SourceFile) -> Lowered:
    """Make comparisons of every Triton function of a file above the loads that have them in their masks."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        loops = [node for node in walk(function.node.body) if isinstance(node, cst.For | cst.While)]
        return [edit for loop in loops for edit in _moved(loop.body.body, source, spans)]

    return each_function(source, [".load("], edits)


def _moved(
    block: Sequence[cst.BaseStatement | cst.BaseSmallStatement], source: SourceFile, spans: Spans
) -> Iterator[Edit]:
    """The edits that take comparisons of a loop's own block above the first load that has them."""
    above: set[int] = set()
    for place, line in enumerate(block):
        match line:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Comparison() as compared
                    ) as given
                ],
                trailing_whitespace=cst.TrailingWhitespace(comment=None),
            ) if _is_of_values(compared) and not any(each.comment for each in line.leading_lines):
                at = next((at for at, other in enumerate(block[:place]) if _loads(other, compared, source)), None)
                if (
                    at is not None
                    and at not in above
                    and not _touched({name, *_names(compared)}, name, block[at:place])
                ):
                    above.add(at)
                    yield spans.gone(*spans.of(given))
                    start = spans.of(block[at])[0]
                    indent, _ = spans.line(start)
                    yield Edit(start, start, f"{name} = {spans.text(compared)}\n{indent}")


def _is_of_values(compared: cst.Comparison) -> bool:
    """Whether a comparison is of names, numbers and what is computed of those, in sight."""
    sides = (compared.left, *(each.comparator for each in compared.comparisons))
    return all(isinstance(side, _OF_VALUES) for side in sides) and not any(
        isinstance(node, cst.Call | cst.Attribute | cst.NamedExpr) for node in walk(compared)
    )


def _loads(line: cst.BaseStatement | cst.BaseSmallStatement, compared: cst.Comparison, source: SourceFile) -> bool:
    """Whether a statement is a load that has such a comparison in its mask."""
    calls = [node for node in walk(line) if isinstance(node, cst.Call)] if _is_plain(line) else []
    masks = [
        arg.value
        for call in calls
        if "triton.language.load" in source.names.of(call.func)
        for arg in call.args
        if arg.keyword is not None and arg.keyword.value == "mask"
    ]
    compares = (node for mask in masks for node in walk(mask) if isinstance(node, cst.Comparison))
    return any(_said(node) == _said(compared) for node in compares)


def _said(compared: cst.Comparison) -> str:
    """What a comparison says, however it is spaced and put in parentheses."""
    return ast.unparse(ast.parse(cst.Module([]).code_for_node(compared), mode="eval"))


def _is_plain(line: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1


def _touched(names: set[str], name: str, between: Sequence[cst.CSTNode]) -> bool:
    """Whether statements assign one of these names, or read the one that is to be made above them."""
    kinds = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)
    nodes = [node for line in between for node in walk(line)]
    assigned = {each for node in nodes if isinstance(node, kinds) for each in _names(node.target)}
    return not names.isdisjoint(assigned) or any(isinstance(node, cst.Name) and node.value == name for node in nodes)


def _names(node: cst.CSTNode) -> Iterator[str]:
    return (each.value for each in walk(node) if isinstance(each, cst.Name))
