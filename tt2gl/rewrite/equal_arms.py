"""Rule `equal_arms`: a branch whose arms have become the same product is that product.

Of operands that have one way to be multiplied, as of 16 bits, nothing is left of what the author chose between. Where
a product stands in the loop itself, it is known to be in each iteration, and may run on. A branch with a comment in its
second arm stays.

    if IEEE:                                                                    # before
        acc = mma_v2(a, b, acc)
    else:
        acc = mma_v2(a, b, acc)

    acc = mma_v2(a, b, acc)                                                     # after
"""

from __future__ import annotations

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.named_sums import is_any_product
from tt2gl.visitors import Editor


def with_equal_arms(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function without branches on names whose arms are the same lines, with a product among them."""
    if not any(isinstance(node, cst.If) for node in walk(function)):
        return function
    made = function.visit(_EqualArms())
    assert isinstance(made, cst.FunctionDef)
    return made


class _EqualArms(Editor):
    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.FlattenSentinel[cst.BaseStatement]:
        body, other = updated_node.body, updated_node.orelse
        if not isinstance(other, cst.Else) or not isinstance(body, cst.IndentedBlock) or _has_calls(updated_node.test):
            return updated_node
        if not body.deep_equals(other.body.with_changes(header=body.header)) or _has_comments(other):
            return updated_node
        if not any(isinstance(node, cst.Call) and is_any_product(node) for node in walk(body)):
            return updated_node
        first, *lines = body.body
        assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        leading = [*updated_node.leading_lines, *first.leading_lines]
        return cst.FlattenSentinel([first.with_changes(leading_lines=leading), *lines])


def _has_calls(test: cst.BaseExpression) -> bool:
    """Whether a test calls something: what it does may be wanted."""
    return any(isinstance(node, cst.Call) for node in walk(test))


def _has_comments(arm: cst.Else) -> bool:
    return any(isinstance(node, cst.Comment) for node in walk(arm))
