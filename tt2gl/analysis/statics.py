"""Compile-time values in a kernel: what they are called, so that a layout can be written in the author's words."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tt2gl.analysis.facts import ConstFact, Fact, Position
from tt2gl.trees import nodes_in

_PLAIN = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.IfExp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
    ast.Attribute,
)


@dataclass(frozen=True)
class Static:
    """A value without a layout: `text` spells it in the kernel's own parameters and globals, or is None.

    `pointer` names the kernel's parameter that an address starts from. `dims`: the extents of a descriptor's block.
    """

    text: str | None = None
    fact: Fact | None = None
    pointer: str | None = None
    dims: tuple[str, ...] = ()

    @property
    def is_name(self) -> bool:
        """Whether it is what a parameter or a global is."""
        return self.text is not None and self.text.isidentifier()

    @property
    def integer(self) -> int | None:
        """The value, where it is a known integer."""
        value = self.fact.value if isinstance(self.fact, ConstFact) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def independent(targets: Sequence[ast.expr], values: Sequence[ast.expr]) -> bool:
    """Whether `a, b = x, y` is the same as one statement for each: names, of which no later value reads one."""
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if not len(set(names)) == len(targets) == len(values):
        return False
    reads = [{node.id for node in nodes_in(value) if isinstance(node, ast.Name)} for value in values]
    return not any(name in read for place, name in enumerate(names) for read in reads[place + 1 :])


def position_of(node: ast.expr | ast.stmt) -> Position:
    """A node's extent as facts are keyed."""
    return (node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


class _Substitution(ast.NodeTransformer):
    def __init__(self, texts: Mapping[str, str | None], outer: frozenset[str]) -> None:
        self.texts, self.outer, self.known = texts, outer, True

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.texts:
            text = self.texts[node.id]
            if text is not None:
                return ast.parse(text, mode="eval").body
            self.known = False
        elif node.id not in self.outer:
            self.known = False
        return node


def static_text(
    node: ast.expr, texts: Mapping[str, str | None], outer: frozenset[str], fact: Fact | None
) -> str | None:
    """A compile-time expression in the kernel's own words; `outer` are the module globals that it may name.

    Falls back on the literal value, where that is an integer, and on None.
    """
    if all(isinstance(part, _PLAIN) for part in nodes_in(node)):
        substitution = _Substitution(texts, outer)
        replaced = substitution.visit(copy.deepcopy(node))
        if substitution.known:
            text = ast.unparse(replaced)
            return f"({text})" if isinstance(replaced, ast.IfExp) else text
    integer = Static(None, fact).integer
    return None if integer is None else str(integer)
