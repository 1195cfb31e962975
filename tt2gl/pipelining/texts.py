"""Source of expressions and calls, put together."""

from __future__ import annotations

import ast
import io
import tokenize
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


_OPPOSITE = {ast.Is: "is not", ast.IsNot: "is", ast.Eq: "!=", ast.NotEq: "=="}


def negated(test: str) -> str:
    """A test that holds where another does not."""
    held = f"({test}\n)"
    node = ast.parse(held, mode="eval").body
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return ast.get_source_segment(held, inner) or ast.unparse(inner)
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPPOSITE:
            sides = [ast.get_source_segment(held, side) or ast.unparse(side) for side in (left, right)]
            return f"{operand(sides[0])} {_OPPOSITE[type(operator)]} {operand(sides[1])}"
    return f"not {operand(test)}"


def whole(source: str) -> str:
    """An argument's expression as one that may stand anywhere: in parentheses where its lines need them."""
    try:
        ast.parse(source, mode="eval")
    except SyntaxError:
        return f"({source})"
    return source


def _on_one_line(source: str) -> str:
    """An expression whose author broke it, unbroken; as it is where it has comments, or text of several lines."""
    if "\n" not in source:
        return source
    words = list(tokenize.generate_tokens(io.StringIO(f"({source}\n)").readline))
    if any(word.type == tokenize.COMMENT or "\n" in word.string.strip("\r\n") for word in words):
        return source
    lines = [line.strip() for line in source.splitlines()]
    made = lines[0]
    for line in lines[1:]:
        made += line if made.endswith(("(", "[", "{")) or line.startswith((")", "]", "}")) else f" {line}"
    return made


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
    arguments = [_on_one_line(argument) for argument in arguments]
    flat = f"{function}({', '.join(arguments)})"
    if "\n" not in flat and indent + len(flat) <= WIDTH:
        return flat
    together = "    " + ", ".join(arguments)
    if "\n" not in flat and indent + len(together) < WIDTH:
        return f"{function}(\n{together})"
    return f"{function}(\n" + ",\n".join(f"    {argument}" for argument in arguments) + ")"
