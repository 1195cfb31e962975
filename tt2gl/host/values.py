"""The values that host code can have while it is only read: plain Python data, and names for all that is not."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tt2gl.host.facts import Version
from tt2gl.host.scopes import Module, Scope


@dataclass(frozen=True)
class Cause:
    """Why, and where, something could not be decided: `line` from 1, `column` from 0."""

    file: str
    line: int
    column: int
    text: str


class Undecided(Exception):
    """Reading alone cannot tell the value."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.text)
        self.cause = cause


class HostRaise(Exception):
    """The host code would raise: `kind` is the exception's class name."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass(frozen=True)
class Unknown:
    """An undecided value kept in a place (a list, a local variable); using it raises Undecided."""

    cause: Cause


@dataclass(frozen=True)
class External:
    """Something of a package that is not read, by its dotted name (`triton.language.float32`, `torch`)."""

    dotted: str
    module: bool = False

    def within(self, package: str) -> bool:
        """Whether this is the package or something of it."""
        return self.dotted == package or self.dotted.startswith(package + ".")


@dataclass(frozen=True, eq=False)
class ModuleValue:
    """A module of the user's, read but not run."""

    module: Module


@dataclass(eq=False)
class Frame:
    """Where an expression is evaluated. `before`: only bindings of the scope that come earlier count."""

    scope: Scope
    locals: dict[str, Any] | None = None
    outer: Frame | None = None
    before: int | None = None


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the user's. `frame`: where it was defined; `wrapped`: what a call such as `jit(fn)` makes it."""

    frame: Frame
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    wrapped: Literal["triton", "gluon", "constexpr"] | None = None

    @property
    def name(self) -> str:
        """The name after `def`."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def path(self) -> Path:
        """The file that defines it."""
        return self.frame.scope.module.path


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the user's."""

    frame: Frame
    node: ast.ClassDef


@dataclass(frozen=True)
class Constexpr:
    """`tl.constexpr(value)`."""

    value: Any


@dataclass(frozen=True)
class Builtin:
    """A function of Python's own, by name."""

    name: str


@dataclass(frozen=True)
class Method:
    """A bound method of plain data, or of an external object."""

    owner: Any
    name: str


@dataclass(frozen=True)
class Partial:
    """`functools.partial(callee, ...)`, and decorators waiting for their function."""

    callee: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Made:
    """An object made by an external class that stays opaque (`triton.Config(...)`)."""

    callee: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class IntMember(int):
    """A member of an IntEnum."""

    name: str

    @property
    def value(self) -> int:
        """The plain integer."""
        return int(self)


@dataclass(frozen=True)
class Member:
    """A member of another Enum."""

    name: str
    value: Any


DATA = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, range, slice, type(None))


def is_data(value: Any) -> bool:
    """Whether a value is plain Python data (or a version number, which behaves as such)."""
    return isinstance(value, (*DATA, Version))
