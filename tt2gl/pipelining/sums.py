"""A product that adds to a changed sum: the change becomes a statement of its own, so that the sum can stay.

o = _tt2gl_tcgen05(p, v, o * r[:, None], ...)          # before

o = o * r[:, None]                                     # after
o = _tt2gl_tcgen05(p, v, o, ...)

What adds to the name that it gets stays in tensor memory for a loop (`accumulators`), and its product may run on.
"""

from __future__ import annotations

import ast

import libcst as cst

from tt2gl.pipelining.flow import reads
from tt2gl.visitors import Editor
from tt2gl.words import TCGEN05_MARK


def with_plain_sums(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products by `tcgen05_mma` that add to what their own sum is made into add to the sum itself."""
    made = function.visit(_Sums())
    assert isinstance(made, cst.FunctionDef)
    return made


class _Sums(Editor):
    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        match updated_node.body:
            case [
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(func=cst.Name(value=called), args=[a, b, added, *_]) as call,
                ) as assign
            ] if called == TCGEN05_MARK and not isinstance(added.value, cst.Name):
                if name not in _names(added.value) or name in _names(a.value) | _names(b.value):
                    return updated_node
                sum_of = cst.Assign([cst.AssignTarget(cst.Name(name))], added.value)
                args = [*call.args[:2], added.with_changes(value=cst.Name(name)), *call.args[3:]]
                product = assign.with_changes(value=call.with_changes(args=args))
                return cst.FlattenSentinel(
                    [
                        cst.SimpleStatementLine([sum_of], leading_lines=updated_node.leading_lines),
                        updated_node.with_changes(body=[product], leading_lines=()),
                    ]
                )
        return updated_node


def _names(node: cst.BaseExpression) -> frozenset[str]:
    return reads(ast.parse(f"({cst.Module([]).code_for_node(node)}\n)", mode="eval"))
