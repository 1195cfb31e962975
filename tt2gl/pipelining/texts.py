"""Source of expressions and calls, put together."""

from __future__ import annotations

import ast
from collections.abc import Sequence

WIDTH = 120
"""Lines are kept to this length."""

_TIGHT = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)


def operand(source: str) -> str:
    """An expression as an operand of arithmetic or of a comparison."""
    return source if isinstance(_parsed(source), _TIGHT) or _enclosed(source) else f"({source})"


def conjunction(mask: str | None, condition: str) -> str:
    """A mask with a comparison on top."""
    if mask is None:
        return condition
    node = _parsed(mask)
    joined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd)
    return f"{mask if joined else operand(mask)} & {operand(condition)}"


def guarded(mask: str | None, condition: str) -> str:
    """A mask under a comparison, which comes first, as Triton's pipeliner has it.

    ptxas starts the first copies earlier by that, where several have addresses that take long to compute.
    """
    return condition if mask is None else f"{operand(condition)} & {operand(mask)}"


def whole(source: str) -> str:
    """An argument's expression as one that may stand anywhere: in parentheses where its lines need them."""
    try:
        ast.parse(source, mode="eval")
    except SyntaxError:
        return f"({source})"
    return source


def _parsed(source: str) -> ast.expr:
    return ast.parse(f"({source}\n)", mode="eval").body


def _enclosed(source: str) -> bool:
    """Whether one pair of parentheses holds the whole."""
    depth = 0
    for index, character in enumerate(source):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return index == len(source) - 1
    return False


def call(function: str, arguments: Sequence[str], indent: int) -> str:
    """A call as a statement: on one line where it fits, else with its arguments on lines below."""
    flat = f"{function}({', '.join(arguments)})"
    if "\n" not in flat and indent + len(flat) <= WIDTH:
        return flat
    together = "    " + ", ".join(arguments)
    if "\n" not in flat and indent + len(together) < WIDTH:
        return f"{function}(\n{together})"
    return f"{function}(\n" + ",\n".join(f"    {argument}" for argument in arguments) + ")"
