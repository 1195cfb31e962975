"""Small builders of LibCST nodes that several rules share."""

from __future__ import annotations

import libcst as cst


def expression(source: str) -> cst.BaseExpression:
    """A parsed expression."""
    return cst.parse_expression(source)


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression without its own parentheses, where it may stand as an argument without them."""
    if isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.Yield, cst.NamedExpr)) or not node.lpar:
        return node
    inside = [*node.lpar, *node.rpar]
    if any(isinstance(par, cst.LeftParen) and not _plain(par.whitespace_after) for par in inside):
        return node
    return node.with_changes(lpar=(), rpar=())


def _plain(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.SimpleWhitespace)


def call(function: str, *arguments: cst.BaseExpression) -> cst.Call:
    """A call with positional arguments."""
    return cst.Call(expression(function), [cst.Arg(bare(argument)) for argument in arguments])
