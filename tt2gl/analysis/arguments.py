"""A call's arguments."""

from __future__ import annotations

import ast

from tt2gl.analysis.facts import ConstFact
from tt2gl.analysis.frames import Frame
from tt2gl.analysis.statics import position_of


class Arguments:
    """A call's arguments, by keyword or place; a method's own tensor is the first."""

    def __init__(self, node: ast.Call, receiver: ast.expr | None) -> None:
        self.places = [*([receiver] if receiver is not None else []), *node.args]
        self.keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}

    def get(self, name: str, place: int) -> ast.expr | None:
        """The argument's expression, if given."""
        if name in self.keywords:
            return self.keywords[name]
        return self.places[place] if place < len(self.places) else None

    def all(self) -> list[ast.expr]:
        """Every argument, in order."""
        return [*self.places, *self.keywords.values()]


def constant(node: ast.expr | None, frame: Frame) -> object:
    """The value of an argument that is a constant of the compilation, if given."""
    if node is None:
        return None
    fact = frame.facts.expressions.get(position_of(node))
    return fact.value if isinstance(fact, ConstFact) else None


def integer(node: ast.expr | None, frame: Frame) -> int | None:
    """The same, where it is an integer."""
    value = constant(node, frame)
    return value if isinstance(value, int) else None
