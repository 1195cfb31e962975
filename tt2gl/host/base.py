"""What every layer of the evaluator shares: the world it reads, the target that answers, and its budget."""

from __future__ import annotations

import ast
from typing import Any

from tt2gl.host import facts
from tt2gl.host.scopes import Binding, Scope, World
from tt2gl.host.values import Cause, External, Frame, Function, HostRaise, Method, Partial, Undecided, Unknown

STEPS = 100_000


ABSENT: Any = object()
"""What an absent name has for a value."""


class Base:
    """State and promises; `Evaluator` is the whole."""

    def __init__(self, world: World, target: str) -> None:
        self.world = world
        self.target = target
        self.device = facts.device(target)
        self.facts = facts.attributes(target)
        self.answers = facts.calls(target)
        self.values: dict[Binding, Any] = {}
        self.busy: set[Any] = set()
        self.outcomes: dict[ast.Try, tuple[int, HostRaise] | Undecided | None] = {}
        self.tests: dict[ast.AST, bool | Undecided] = {}
        self.assumed: set[tuple[str, ast.stmt]] = set()
        self.steps = STEPS
        self.depth = 0

    def undecided(self, scope: Scope, node: ast.AST | None, text: str) -> Undecided:
        """The exception for a place of a module."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return Undecided(Cause(str(scope.module.path), line, column, text))

    def known(self, value: Any) -> Any:
        """The value of a place, or Undecided where it is unknown."""
        if isinstance(value, Unknown):
            raise Undecided(value.cause)
        return value

    def as_callable(self, value: Any) -> Any:
        """A function value as Python's own functions call it; any other value as it is."""
        if isinstance(value, Function | Partial | External | Method):
            return lambda *args: self.call(value, list(args), {})
        return value

    def refill(self) -> None:
        """Begin a new budget of steps, unless a call is under way."""
        if self.depth == 0:
            self.steps = STEPS

    # What the layers above bring, for those below to call.

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression. Raises Undecided or HostRaise."""
        raise NotImplementedError

    def lenient(self, node: ast.expr, frame: Frame) -> Any:
        """A value for a place: what is undecided stays so until it is used."""
        raise NotImplementedError

    def truth(self, value: Any, node: ast.AST, frame: Frame) -> bool:
        """`bool(value)`. Raises Undecided."""
        raise NotImplementedError

    def decide(self, test: ast.expr, frame: Frame) -> bool:
        """The truth of a condition. Raises Undecided at the condition itself."""
        raise NotImplementedError

    def holds(self, scope: Scope, binding: Binding) -> bool:
        """Whether the conditions around a binding let it happen."""
        raise NotImplementedError

    def attribute(self, value: Any, name: str, *, imported: bool = False) -> Any:
        """`value.name`. Raises HostRaise (AttributeError) or Undecided."""
        raise NotImplementedError

    def item(self, value: Any, index: Any, node: ast.AST, frame: Frame) -> Any:
        """`value[index]`."""
        raise NotImplementedError

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST, frame: Frame) -> Any:
        """`left op right`, a constexpr where an operand is one."""
        raise NotImplementedError

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`callee(*args, **kwargs)`. Raises Undecided or HostRaise."""
        raise NotImplementedError
