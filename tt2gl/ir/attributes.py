"""Attributes as Python values.

Builtin ones become what Python has: integers `int`, booleans `bool`, strings `str`, arrays and `array<i32: ...>`
`tuple`, dictionaries `dict`, the unit attribute `UNIT`, types `Type`. A float becomes a `FloatAttr` (its type counts),
`dense<...>` a `Dense`, `@name` a `Symbol`, and whatever a dialect defines (`#ttg.blocked<{...}>`) a `DialectAttr`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

# A value as described above: MLIR's attributes have no closed Python type.
Attribute = Any


class Unit(Enum):
    """The type of `UNIT`: an attribute that says something by being there."""

    UNIT = "unit"


UNIT = Unit.UNIT


@dataclass(frozen=True)
class FloatAttr:
    """A float of type `kind` (`f32`): `value`, or where it was printed in hexadecimal its `bits`."""

    kind: str
    value: float
    bits: int | None = None


@dataclass(frozen=True)
class Symbol:
    """`@name`, or `@outer::@name` as "outer::name"."""

    name: str


@dataclass(frozen=True)
class Dense:
    """`dense<...>`: one element for a splat, else all of them, row by row, as integers, booleans or `FloatAttr`."""

    type: Any
    elements: tuple[Any, ...]

    @property
    def is_splat(self) -> bool:
        """Whether all elements are equal, so that one is kept."""
        return len(self.elements) == 1

    @property
    def is_zero(self) -> bool:
        """Whether all elements are zero."""
        return all((each.value if isinstance(each, FloatAttr) else each) == 0 for each in self.elements)


@dataclass(frozen=True)
class DialectAttr:
    """`#ttg.slice<{dim = 0, parent = #blocked}>`: `name` is "ttg.slice", `parameters` its entries by name.

    What is positional is under its position ("0", "1", ...); what has neither form is the bare text under "text".
    Bare words are strings, dictionaries tuples of pairs, and the `64:+4` of padded layouts pairs (64, 4).
    Hashable: `parameters` is a tuple of pairs.
    """

    name: str
    parameters: tuple[tuple[str, Attribute], ...] = ()

    def get(self, name: str, default: Attribute = None) -> Attribute:
        """A parameter by name."""
        return dict(self.parameters).get(name, default)

    def __str__(self) -> str:
        return f"#{self.name}<{', '.join(f'{name} = {value}' for name, value in self.parameters)}>"
