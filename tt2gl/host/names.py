"""Names: which binding of a name holds, and what it binds, through imports and across files."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from tt2gl.host import facts
from tt2gl.host.base import ABSENT, Base
from tt2gl.host.builtins import BUILTINS
from tt2gl.host.factories import given
from tt2gl.host.scopes import Binding, Module, Scope
from tt2gl.host.values import (
    Builtin,
    Class,
    External,
    Frame,
    Function,
    HostRaise,
    ModuleValue,
    Undecided,
    Unknown,
)

# Packages re-export parts of Triton under names of their own.
SYNONYMS: Mapping[str, str] = {
    "torch._inductor.runtime.triton_helpers.libdevice": "triton.language.extra.libdevice",
    "torch._inductor.runtime.triton_helpers.math": "triton.language.math",
    "torch._inductor.runtime.triton_compat.libdevice": "triton.language.extra.libdevice",
    "torch._inductor.runtime.triton_compat.tl": "triton.language",
    "torch._inductor.runtime.triton_compat.triton": "triton",
    "triton.language.core.constexpr": "triton.language.constexpr",
}


class Names(Base):
    """Resolves names."""

    def resolve(self, scope: Scope, name: str, before: int | None = None) -> Any:
        """The value of a name in a scope. Raises Undecided, or HostRaise (NameError) where nothing binds it."""
        current: Scope | None = scope
        while current is not None:
            if name in current.parameters:
                argument = given(current, name)
                if argument is not None:
                    return self.known(self.evaluate(argument, Frame(current.module.scope)))
                raise self.undecided(current, current.owner, f"the parameter {name!r} is known at run time only")
            value, found = self._in_scope(current, name, before if current is scope else None)
            if found:
                return value
            current = current.parent
        if name in BUILTINS:
            return Builtin(name)
        raise HostRaise("NameError", name)

    def _in_scope(self, scope: Scope, name: str, before: int | None) -> tuple[Any, bool]:
        own = scope.bindings.get(name, ())
        candidates = sorted([*own, *scope.bindings.get("*", ())], key=lambda binding: -binding.order)
        if before is not None:
            earlier = [binding for binding in candidates if binding.order < before]
            # Inside a function called by the statement, later bindings are seen too; an order is no proof.
            candidates = earlier or candidates
        for binding in candidates:
            if binding.name == "*":
                value = self._star(scope, binding, name)
                if value is not ABSENT and self.holds(scope, binding):
                    return value, True
            elif self.holds(scope, binding):
                return self.value(scope, binding), True
        return None, False

    def binding(self, scope: Scope, name: str) -> Binding | None:
        """The binding of a name that holds in a scope itself, if one does. Raises Undecided."""
        for binding in reversed(scope.bindings.get(name, [])):
            if self.holds(scope, binding):
                return binding
        return None

    def value(self, scope: Scope, binding: Binding) -> Any:
        """What one binding binds. Raises Undecided or HostRaise."""
        if binding not in self.values:
            if binding in self.busy:
                raise self.undecided(scope, binding.node, f"{binding.name!r} is defined by itself")
            self.busy.add(binding)
            try:
                self.values[binding] = self._bound(scope, binding)
            except Undecided as error:
                self.values[binding] = Unknown(error.cause)
            finally:
                self.busy.discard(binding)
        return self.known(self.values[binding])

    def _bound(self, scope: Scope, binding: Binding) -> Any:
        frame = Frame(scope, before=binding.order)
        match binding.node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
                return Function(Frame(scope), node)
            case ast.ClassDef() as node:
                return Class(Frame(scope), node)
            case ast.Import() if binding.alias is not None:
                dotted = binding.alias.name
                return self.module(dotted if binding.alias.asname else dotted.partition(".")[0], scope.module)
            case ast.ImportFrom() as node if binding.alias is not None:
                return self.import_from(scope.module, node, binding.alias.name)
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
                self.refill()
                result = self.evaluate(value, frame)
                for index in binding.path:
                    result = self.item(result, index, value, frame)
                return self.known(result)
            case ast.AugAssign(op=op, value=value) as node:
                left = self.resolve(scope, binding.name, binding.order)
                return self.binary(op, left, self.evaluate(value, frame), node, frame)
        raise self.undecided(scope, binding.node, f"{binding.name!r} is bound by a loop or a context manager")

    def module(self, dotted: str, importer: Module) -> Any:
        """The module of an absolute name: read where its file is at hand, else external."""
        dotted = SYNONYMS.get(dotted, dotted)
        path = self.world.find(dotted, importer.path)
        found = self.world.load(path) if path is not None else None
        return ModuleValue(found) if found is not None else External(dotted, module=True)

    def import_from(self, module: Module, node: ast.ImportFrom, name: str) -> Any:
        """What `from module import name` binds."""
        base = self.imported_module(module, node)
        if isinstance(base, ModuleValue):
            try:
                return self.attribute(base, name)
            except HostRaise:
                raise HostRaise("ImportError", name) from None
        return self.attribute(base, name, imported=True)

    def imported_module(self, module: Module, node: ast.ImportFrom) -> Any:
        """The module that a `from ... import` names. Raises HostRaise where a relative one is not there."""
        if not node.level:
            return self.module(node.module or "", module)
        path = self.world.relative(node.level, node.module, module.path)
        found = self.world.load(path) if path is not None else None
        if found is None:
            raise HostRaise("ModuleNotFoundError", node.module or ".")
        return ModuleValue(found)

    def _star(self, scope: Scope, binding: Binding, name: str) -> Any:
        if not isinstance(binding.node, ast.ImportFrom) or name.startswith("_"):
            return ABSENT
        try:
            base = self.imported_module(scope.module, binding.node)
        except HostRaise:
            return ABSENT
        if isinstance(base, External):
            return self.attribute(base, name) if facts.has_name(base.dotted, name) else ABSENT
        key = (base.module, name)
        if key in self.busy:
            return ABSENT
        self.busy.add(key)
        try:
            value, found = self._in_scope(base.module.scope, name, None)
        finally:
            self.busy.discard(key)
        return value if found else ABSENT
