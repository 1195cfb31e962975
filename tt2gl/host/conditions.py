"""Conditions: the tests of `if` and the outcomes of `try` around a binding, decided or declared undecidable."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence

from tt2gl.host import facts
from tt2gl.host.names import SYNONYMS, Names
from tt2gl.host.scopes import Binding, Guard, Module, Scope
from tt2gl.host.values import (
    External,
    Frame,
    HostRaise,
    Undecided,
)
from tt2gl.trees import nodes_in

_EXCEPTIONS: Mapping[str, tuple[str, ...]] = {
    "ModuleNotFoundError": ("ModuleNotFoundError", "ImportError"),
    "KeyError": ("KeyError", "LookupError"),
    "IndexError": ("IndexError", "LookupError"),
    "NotImplementedError": ("NotImplementedError", "RuntimeError"),
    "ZeroDivisionError": ("ZeroDivisionError", "ArithmeticError"),
    "FileNotFoundError": ("FileNotFoundError", "OSError"),
    "PackageNotFoundError": ("PackageNotFoundError", "ModuleNotFoundError", "ImportError"),
}


class Conditions(Names):
    """Decides whether a statement runs."""

    def holds(self, scope: Scope, binding: Binding) -> bool:
        """Whether the conditions around a binding let it happen."""
        return all(
            (guard.kind, guard.node) in self.assumed or self._guard(scope, guard, binding.node)
            for guard in binding.guards
        )

    def assume(self, scope: Scope, node: ast.AST) -> None:
        """Take the conditions around a definition to hold: it is at hand, so they did."""
        current: Scope | None = scope
        inner: ast.AST = node
        while current is not None:
            for bindings in current.bindings.values():
                for binding in bindings:
                    if binding.node is inner:
                        self.assumed.update((guard.kind, guard.node) for guard in binding.guards)
            inner = current.owner or inner
            current = current.parent

    def _guard(self, scope: Scope, guard: Guard, node: ast.AST) -> bool:
        match guard.kind, guard.node:
            case (("then" | "else"), ast.If() as statement):
                return self._taken(statement, self._frame_before(scope, statement)) == (guard.kind == "then")
            case (("try" | "except"), ast.Try() as statement):
                outcome = self._outcome(scope, statement)
                if guard.kind == "except":
                    return outcome is not None and self.caught(statement, outcome[1], scope) == guard.handler
                if outcome is None:
                    return True
                index = next((i for i, child in enumerate(statement.body) if node in set(nodes_in(child))), None)
                return index is not None and index < outcome[0]
        if isinstance(guard.node, ast.With | ast.AsyncWith):
            raise self.undecided(scope, guard.node, "a context manager decides it")
        raise self.undecided(scope, guard.node, "a loop binds it")

    def _taken(self, statement: ast.If, frame: Frame) -> bool:
        """Whether an `if` takes its first side.

        Where its test cannot be decided, it is the one that imports Triton: what is read is there for kernels, and
        these run only where that was imported.
        """
        try:
            return self.decide(statement.test, frame)
        except Undecided:
            first, other = (_imports_triton(side) for side in (statement.body, statement.orelse))
            if first == other:
                raise
            return first

    def _frame_before(self, scope: Scope, statement: ast.If) -> Frame:
        """Where the test of an `if` is evaluated: before anything that its branches bind, such as its own subject."""
        orders = (
            binding.order
            for bindings in scope.bindings.values()
            for binding in bindings
            if any(guard.node is statement for guard in binding.guards)
        )
        return Frame(scope) if statement.test in self.tests else Frame(scope, before=min(orders, default=None))

    def decide(self, test: ast.expr, frame: Frame) -> bool:
        """The truth of a condition. Raises Undecided at the condition itself."""
        cached = self.tests.get(test)
        if cached is None:
            if test in self.busy:
                raise self.undecided(frame.scope, test, "the condition depends on itself")
            self.busy.add(test)
            self.refill()
            try:
                cached = self.truth(self.evaluate(test, frame), test, frame)
            except Undecided as error:
                text = f"the condition `{ast.unparse(test)}` cannot be decided ({error.cause.text})"
                cached = self.undecided(frame.scope, test, text)
            except HostRaise as error:
                text = f"the condition `{ast.unparse(test)}` raises {error}"
                cached = self.undecided(frame.scope, test, text)
            finally:
                self.busy.discard(test)
            if frame.locals is None:
                self.tests[test] = cached
        if isinstance(cached, Undecided):
            raise cached
        return cached

    def _outcome(self, scope: Scope, node: ast.Try) -> tuple[int, HostRaise] | None:
        """Which statement of a `try` block raises what; None where it runs through."""
        if node not in self.outcomes:
            self.outcomes[node] = None  # a block that asks about itself has not raised so far
            try:
                self.outcomes[node] = self._try_block(scope, node)
            except Undecided as error:
                self.outcomes[node] = error
        outcome = self.outcomes[node]
        if isinstance(outcome, Undecided):
            raise outcome
        return outcome

    def _try_block(self, scope: Scope, node: ast.Try) -> tuple[int, HostRaise] | None:
        imports_only = all(
            handler.type is not None
            and {name.id for name in nodes_in(handler.type) if isinstance(name, ast.Name)}
            <= {"ImportError", "ModuleNotFoundError"}
            for handler in node.handlers
        )
        for index, statement in enumerate(node.body):
            try:
                self._attempt(scope, statement)
            except HostRaise as error:
                if not _is_import(statement) or _imports_triton([statement]) or not self._loses_triton(scope, node):
                    return index, error
            except Undecided:
                # Only an import raises ImportError, and imports are decided.
                if not imports_only and not self._loses_triton(scope, node):
                    raise
        return None

    def _loses_triton(self, scope: Scope, node: ast.Try) -> bool:
        """Whether Triton is imported in a `try` block alone, so that none is left where something else there fails.

            try:
                import triton
                import triton.language as tl
                from another_package import extra       # which is not at hand
                found = is_any_driver_active()              # which nothing tells
            except Exception:
                triton = tl = None

        What is read is there for kernels, and these run only where that was imported, so all of the block ran.
        """
        return any(
            {binding.node for binding in scope.bindings[name] if isinstance(binding.node, ast.Import | ast.ImportFrom)}
            <= inside
            for inside in [set(nodes_in(ast.Module(node.body, [])))]
            for name in _names_of_triton(node.body)
        )

    def _attempt(self, scope: Scope, statement: ast.stmt) -> None:
        """Raise HostRaise where a statement of a module's level would raise."""
        frame = Frame(scope)
        match statement:
            case ast.Import(names=aliases):
                for alias in aliases:
                    self.check_import(alias.name, scope.module)
            case ast.ImportFrom(names=aliases) as node:
                for alias in aliases:
                    self.check_import_from(scope.module, node, alias.name)
            case ast.Assign(value=value) | ast.Expr(value=value):
                if not isinstance(value, ast.Constant):
                    self.refill()
                    self.evaluate(value, frame)
            case ast.AnnAssign(value=ast.expr() as value):
                self.evaluate(value, frame)
            case ast.If() as node:
                for child in node.body if self._taken(node, frame) else node.orelse:
                    self._attempt(scope, child)
            case ast.Try() as node:
                outcome = self._outcome(scope, node)
                if outcome is not None:
                    handler = self.caught(node, outcome[1], scope)
                    if handler is None:
                        raise outcome[1]
                    for child in node.handlers[handler].body:
                        self._attempt(scope, child)
            case ast.With(body=body):
                for child in body:
                    self._attempt(scope, child)
            case ast.Raise() as node:
                raise HostRaise(self.exception_name(node.exc))
            case ast.Assert(test=test):
                if not self.decide(test, frame):
                    raise HostRaise("AssertionError")

    def check_import(self, dotted: str, importer: Module) -> None:
        """Raise HostRaise where `import dotted` would fail."""
        value = self.module(dotted, importer)
        if isinstance(value, External) and not facts.importable(dotted):
            raise HostRaise("ModuleNotFoundError", dotted)

    def check_import_from(self, importer: Module, node: ast.ImportFrom, name: str) -> None:
        """Raise HostRaise where `from ... import name` would fail."""
        base = self.imported_module(importer, node)
        if isinstance(base, External):
            dotted = base.dotted
            if dotted not in SYNONYMS.values() and not facts.importable(dotted):
                raise HostRaise("ModuleNotFoundError", dotted)
            if f"{dotted}.{name}" in facts.ABSENT or (name != "*" and facts.has_name(dotted, name) is False):
                raise HostRaise("ImportError", f"{dotted}.{name}")
        elif name != "*":
            # Undecided is bound all the same, to something that reading cannot tell.
            with contextlib.suppress(Undecided):
                self.import_from(importer, node, name)

    def caught(self, node: ast.Try, error: HostRaise, scope: Scope) -> int | None:
        """Which handler of a `try` catches an exception, None where none does."""
        kinds = {*_EXCEPTIONS.get(error.kind, (error.kind,)), "Exception", "BaseException"}
        for index, handler in enumerate(node.handlers):
            if handler.type is None:
                return index
            names = {n.id for n in nodes_in(handler.type) if isinstance(n, ast.Name)}
            names |= {n.attr for n in nodes_in(handler.type) if isinstance(n, ast.Attribute)}
            if names & kinds:
                return index
        return None

    @staticmethod
    def exception_name(node: ast.expr | None) -> str:
        """The class name of what `raise` raises."""
        if isinstance(node, ast.Call):
            node = node.func
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
        return "Exception"


def _is_import(node: ast.stmt) -> bool:
    """Whether a statement imports something."""
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imports_triton(body: Sequence[ast.stmt]) -> bool:
    """Whether statements, themselves, import Triton or parts of it."""
    return any(True for _ in _names_of_triton(body))


def _names_of_triton(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements, themselves, give to Triton or parts of it."""
    for node in body:
        match node:
            case ast.Import(names=aliases):
                found = [(alias.name, alias.asname or alias.name.partition(".")[0]) for alias in aliases]
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                found = [(module, alias.asname or alias.name) for alias in aliases]
            case _:
                continue
        yield from (name for module, name in found if module.partition(".")[0] == "triton")
