"""A function as it is walked: what its names are bound to, and what stops the walk."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tt2gl.analysis.facts import CallChain, FunctionFacts
from tt2gl.analysis.graph import FunctionKey, Node, Web
from tt2gl.analysis.statics import Static

Value = Node | Static | tuple["Value", ...]
Binding = Web | Static | tuple[Value, ...]


class Unsupported(Exception):
    """A construct that this version does not convert: `code` and the source position for the diagnostic."""

    def __init__(self, code: str, what: str, site: tuple[str, int, int]) -> None:
        super().__init__(what)
        self.code, self.what, self.site = code, what, site


class SeveralProducts(Unsupported):
    """A product of 32-bit floats that is several. `named`: what says its precision, as source."""

    named = ""


@dataclass
class Frame:
    """One function being walked: what its names are bound to, and how it was reached.

    `loop`: the innermost loop of this function, where every turn of it gets here. `turns`: what the loops around that
    the compiler writes out count by, so that one text is several.
    """

    key: FunctionKey
    facts: FunctionFacts
    globals: frozenset[str]
    chain: CallChain = ()
    env: dict[str, Binding] = field(default_factory=dict)
    depth: int = 0
    loop: ast.For | None = None
    turns: frozenset[str] = frozenset()
    statement: tuple[int, int, int, int] = (0, 0, 0, 0)
    returns: list[Value] = field(default_factory=list)

    @property
    def texts(self) -> dict[str, str | None]:
        """The names bound to compile-time values, as the kernel would spell them."""
        return {name: bound.text if isinstance(bound, Static) else None for name, bound in self.env.items()}


def unsupported(code: str, what: str, node: ast.expr, frame: Frame) -> Unsupported:
    """The error for a construct that stays Triton."""
    return Unsupported(code, what, (frame.key[0], node.lineno, node.col_offset))


def joined(first: dict[str, Binding], second: dict[str, Binding]) -> dict[str, Binding]:
    """What names mean after two ways meet: webs of the same shape become one."""
    both = {**first, **second}
    for name in [each for each in first if each in second]:
        one, other = first[name], second[name]
        if isinstance(one, Web) and isinstance(other, Web) and _shape(other) in (_shape(one), None):
            both[name] = one.join(other)
        elif isinstance(other, Web) and isinstance(one, Web) and _shape(one) is None:
            # The graph knows of the one that has definitions.
            both[name] = other.join(one)
    return both


def _shape(web: Web) -> tuple[int, ...] | None:
    known = web.find().definitions
    return known[0].node.shape if known else None


def dims_of(shape: tuple[int, ...], operands: Sequence[Node]) -> tuple[str | None, ...]:
    """Extents by name, taken from the operand that has each (numpy's broadcasting, aligned on the right)."""
    names: list[str | None] = []
    for index, extent in enumerate(reversed(shape)):
        name = "1" if extent == 1 else None
        for operand in operands:
            if name is None and index < len(operand.shape) and operand.shape[-1 - index] == extent:
                name = operand.dims[-1 - index]
        names.append(name)
    return tuple(reversed(names))
