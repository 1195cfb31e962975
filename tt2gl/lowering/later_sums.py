"""Products that the next statement adds to something, with it in one statement, Triton to Triton.

    out = tl.dot(p, v)
    out += rest * decay[:, None]

becomes `out = tl.dot(p, v) + rest * decay[:, None]`: Triton's compiler lets such a product start from what it is added
to, and that can be said where both stand in one expression. A product that is added is left to that one's start, and
statements with a comment between them stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.precise_dots import DOT
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.source import SourceFile
from tt2gl.visitors import Reader

_TIGHT = (cst.Name, cst.Call, cst.Attribute, cst.Subscript)


def later_sums(source: SourceFile) -> Lowered:
    """Join the products of every Triton function of a file with the sums that follow them."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        pairs = _Pairs(source)
        function.node.body.visit(pairs)
        return [_joined(product, term, source.module, spans) for product, term in pairs.found]

    return each_function(source, [".dot("], edits)


class _Pairs(Reader):
    """Products, each with what the next statement adds to it."""

    def __init__(self, source: SourceFile) -> None:
        self.names = source.names
        self.found: list[tuple[cst.Call, cst.BaseExpression]] = []

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        for before, after in zip(node.body, node.body[1:], strict=False):
            match before, after:
                case (
                    cst.SimpleStatementLine(
                        body=[
                            cst.Assign(
                                targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call() as product
                            )
                        ],
                        trailing_whitespace=cst.TrailingWhitespace(comment=None),
                    ),
                    cst.SimpleStatementLine(
                        body=[cst.AugAssign(target=cst.Name(value=other), operator=cst.AddAssign(), value=term)]
                    ),
                ) if name == other and not any(line.comment for line in after.leading_lines):
                    if self._starts_from_nothing(product) and not self._has_product(term) and name not in _names(term):
                        self.found.append((product, term))

    def _starts_from_nothing(self, call: cst.Call) -> bool:
        acc = any(arg.keyword is not None and arg.keyword.value == "acc" for arg in call.args)
        return self._is_product(call) and not acc and sum(arg.keyword is None for arg in call.args) <= 2

    def _has_product(self, term: cst.BaseExpression) -> bool:
        """Whether what is added is a product, alone: that one starts from the first."""
        return isinstance(term, cst.Call) and self._is_product(term)

    def _is_product(self, call: cst.Call) -> bool:
        return any(map(DOT.search, self.names.of(call.func)))


def _names(node: cst.CSTNode) -> set[str]:
    return set(_walk(node))


def _walk(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    for child in node.children:
        yield from _walk(child)


def _joined(product: cst.Call, term: cst.BaseExpression, module: cst.Module, spans: Spans) -> Edit:
    """The edit from the product's end to that of the term."""
    bare = isinstance(term, _TIGHT) or isinstance(term, cst.BinaryOperation) and isinstance(term.operator, cst.Multiply)
    source = module.code_for_node(term)
    said = source if bare or _lpar(term) else f"({source})"
    return Edit(spans.whole(product)[1], spans.whole(term)[1], f" + {said}")


def _lpar(term: cst.BaseExpression) -> Sequence[cst.LeftParen]:
    return getattr(term, "lpar", ())
