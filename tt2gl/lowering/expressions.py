"""The author's expressions as they are put together again: their text, the names in it, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from tt2gl.visitors import VariableReader

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float, cst.SimpleString)
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)

# Functions of Triton and Python whose results depend on their arguments alone, for the whole run of a program.
_PURE = frozenset(
    ("program_id", "num_programs", "cdiv", "min", "max", "minimum", "maximum", "abs", "cast", "to", "full", "int")
)


@dataclass(frozen=True, eq=False)
class Expression:
    """An expression of the author's. `names`: those it reads; `pure`: it can be evaluated again while they hold."""

    node: cst.BaseExpression
    text: str
    names: frozenset[str]
    pure: bool

    @property
    def literal(self) -> int | None:
        """Its value where it is an integer as written."""
        return literal(self.node)

    def operand(self) -> str:
        """The text as an operand of a product or subscript."""
        return self.text if isinstance(self.node, _ATOMS) or self.node.lpar else f"({self.text})"

    def summand(self) -> str:
        """The text as the first operand of a sum, or an operand of a comparison."""
        if isinstance(self.node, cst.BinaryOperation) and isinstance(self.node.operator, _ARITHMETIC):
            return self.text
        return self.operand()


def expression(node: cst.BaseExpression, module: cst.Module) -> Expression:
    """An expression node with its text on one line."""
    found = _Reads()
    node.visit(found)
    text = module.code_for_node(node)
    if "\n" in text:
        text = " ".join(line.partition("#")[0].strip() for line in text.splitlines())
        text = text.replace("( ", "(").replace(" )", ")").replace("[ ", "[").replace(" ]", "]")
    return Expression(node, text.strip(), frozenset(found.names), found.pure)


def literal(node: cst.BaseExpression) -> int | None:
    """The value of an integer as written, a sign before it or not."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = literal(node.expression)
        return None if value is None else -value
    return None


def called(node: cst.Call) -> str:
    """The last name of what a call calls (`load` of `tl.load`), or nothing."""
    function = node.func
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


def target_names(targets: Iterable[cst.BaseExpression]) -> frozenset[str]:
    """The names that assignment targets bind."""
    names: set[str] = set()
    for target in targets:
        if isinstance(target, cst.Name):
            names.add(target.value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            names |= target_names(element.value for element in target.elements)
    return frozenset(names)


class _Reads(VariableReader):
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.pure = True

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)

    def visit_Call(self, node: cst.Call) -> None:
        if called(node) not in _PURE:
            self.pure = False
