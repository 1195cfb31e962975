"""Sums of what rows and columns multiply to, as authors write them: matrix products, to Triton's compiler.

o = tl.sum(p[:, :, None] * v[None, :, :], 1)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tt2gl.trees import nodes_in

LEAST = 16
"""How many rows and columns such a product has at least for Triton's compiler to make it one (its Combine pass)."""

_RANK = 3


def product_sums(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.BinOp]]:
    """The calls in a tree that add up such products along their second dimension, with these."""
    for node in nodes_in(tree):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(attr="sum"),
                    args=[ast.BinOp(op=ast.Mult()) as product, ast.Constant(value=1)],
                    keywords=[],
                )
                | ast.Call(
                    func=ast.Attribute(attr="sum"),
                    args=[ast.BinOp(op=ast.Mult()) as product],
                    keywords=[ast.keyword(arg="axis", value=ast.Constant(value=1))],
                )
            ) if (_repeated(product.left), _repeated(product.right)) == (_RANK - 1, 0):
                yield node, product


def _repeated(side: ast.expr) -> int | None:
    """The one dimension of three that a value is repeated along: 2 of `x[:, :, None]`; None where it is not so."""
    match side:
        case ast.Subscript(slice=ast.Tuple(elts=elements)) if len(elements) == _RANK:
            added = [at for at, each in enumerate(elements) if isinstance(each, ast.Constant) and each.value is None]
            whole = [each for each in elements if isinstance(each, ast.Slice) and ast.unparse(each) == ":"]
            return added[0] if len(added) == 1 and len(whole) == _RANK - 1 else None
    return None
