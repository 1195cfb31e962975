"""Evaluates host constants and conditions by reading: a small pure interpreter over the user's syntax trees.

Nothing of the user's is run or imported. What reading cannot tell raises `Undecided` with the place; a question
about the machine is answered from the target (`hostfacts`). Steps, depth and sizes are bounded.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tt2gl import hostfacts, purecalls
from tt2gl.hostvalues import (
    Builtin,
    Cause,
    Class,
    Constexpr,
    External,
    Frame,
    Function,
    HostRaise,
    IntMember,
    Made,
    Member,
    Method,
    ModuleValue,
    Partial,
    Undecided,
    Unknown,
    is_data,
)
from tt2gl.scopes import Binding, Guard, Module, Scope, World, all_arguments
from tt2gl.source import decorator_kind

_STEPS = 100_000
_DEPTH = 40

# Decorators that leave what a function returns as it is.
_TRANSPARENT = ("cache", "lru_cache", "wraps", "staticmethod", "memoize", "disable", "tensor_cache", "no_grad")

# Packages re-export parts of Triton under names of their own.
_SYNONYMS: Mapping[str, str] = {
    "torch._inductor.runtime.triton_helpers.libdevice": "triton.language.extra.libdevice",
    "torch._inductor.runtime.triton_helpers.math": "triton.language.math",
    "torch._inductor.runtime.triton_compat.libdevice": "triton.language.extra.libdevice",
    "torch._inductor.runtime.triton_compat.tl": "triton.language",
    "torch._inductor.runtime.triton_compat.triton": "triton",
    "triton.language.core.constexpr": "triton.language.constexpr",
}

# Triton's modules whose attributes are all bound in their files, so that absence there is absence.
_CHECKED = ("triton.language", "triton.tools", "triton.experimental", "triton.compiler", "triton.testing")

_EXCEPTIONS: Mapping[str, tuple[str, ...]] = {
    "ModuleNotFoundError": ("ModuleNotFoundError", "ImportError"),
    "KeyError": ("KeyError", "LookupError"),
    "IndexError": ("IndexError", "LookupError"),
    "NotImplementedError": ("NotImplementedError", "RuntimeError"),
    "ZeroDivisionError": ("ZeroDivisionError", "ArithmeticError"),
    "FileNotFoundError": ("FileNotFoundError", "OSError"),
    "PackageNotFoundError": ("PackageNotFoundError", "ModuleNotFoundError", "ImportError"),
}


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Evaluator:
    """Evaluates names and expressions of a world of modules, as they would be on `target`."""

    def __init__(self, world: World, target: str) -> None:
        self.world = world
        self.target = target
        self.device = hostfacts.device(target)
        self._attributes = hostfacts.attributes(target)
        self._calls = hostfacts.calls(target)
        self._values: dict[Binding, Any] = {}
        self._busy: set[Any] = set()
        self._outcomes: dict[ast.Try, tuple[int, HostRaise] | Undecided | None] = {}
        self._tests: dict[ast.AST, bool | Undecided] = {}
        self._steps = _STEPS
        self._depth = 0

    # ------------------------------------------------------------------------------------------------ names

    def resolve(self, scope: Scope, name: str, before: int | None = None) -> Any:
        """The value of a name in a scope. Raises Undecided, or HostRaise (NameError) where nothing binds it."""
        current: Scope | None = scope
        while current is not None:
            if name in current.parameters:
                raise self.undecided(current, current.owner, f"the parameter {name!r} is known at run time only")
            value, found = self._in_scope(current, name, before if current is scope else None)
            if found:
                return value
            current = current.parent
        if name in purecalls.BUILTINS:
            return Builtin(name)
        raise HostRaise("NameError", name)

    def undecided(self, scope: Scope, node: ast.AST | None, text: str) -> Undecided:
        """The exception for a place of a module."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return Undecided(Cause(str(scope.module.path), line, column, text))

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
                if value is not _ABSENT and self._holds(scope, binding):
                    return value, True
            elif self._holds(scope, binding):
                return self.value(scope, binding), True
        return None, False

    def binding(self, scope: Scope, name: str) -> Binding | None:
        """The binding of a name that holds in a scope itself, if one does. Raises Undecided."""
        for binding in reversed(scope.bindings.get(name, [])):
            if self._holds(scope, binding):
                return binding
        return None

    def value(self, scope: Scope, binding: Binding) -> Any:
        """What one binding binds. Raises Undecided or HostRaise."""
        if binding not in self._values:
            if binding in self._busy:
                raise self.undecided(scope, binding.node, f"{binding.name!r} is defined by itself")
            self._busy.add(binding)
            try:
                self._values[binding] = self._bound(scope, binding)
            except Undecided as error:
                self._values[binding] = Unknown(error.cause)
            finally:
                self._busy.discard(binding)
        return self._known(self._values[binding])

    def _known(self, value: Any) -> Any:
        if isinstance(value, Unknown):
            raise Undecided(value.cause)
        return value

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
                return self._import_from(scope.module, node, binding.alias.name)
            case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
                self._refill()
                result = self.evaluate(value, frame)
                for index in binding.path:
                    result = self._item(result, index, value, frame)
                return self._known(result)
            case ast.AugAssign(op=op, value=value) as node:
                left = self.resolve(scope, binding.name, binding.order)
                return self._binary(op, left, self.evaluate(value, frame), node, frame)
        raise self.undecided(scope, binding.node, f"{binding.name!r} is bound by a loop or a context manager")

    def _refill(self) -> None:
        if self._depth == 0:
            self._steps = _STEPS

    # -------------------------------------------------------------------------------------------- imports

    def module(self, dotted: str, importer: Module) -> Any:
        """The module of an absolute name: read where its file is at hand, else external."""
        dotted = _SYNONYMS.get(dotted, dotted)
        path = self.world.find(dotted, importer.path)
        found = self.world.load(path) if path is not None else None
        return ModuleValue(found) if found is not None else External(dotted, module=True)

    def _import_from(self, module: Module, node: ast.ImportFrom, name: str) -> Any:
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
            return _ABSENT
        try:
            base = self.imported_module(scope.module, binding.node)
        except HostRaise:
            return _ABSENT
        if isinstance(base, External):
            return self.attribute(base, name) if hostfacts.has_name(base.dotted, name) else _ABSENT
        key = (base.module, name)
        if key in self._busy:
            return _ABSENT
        self._busy.add(key)
        try:
            value, found = self._in_scope(base.module.scope, name, None)
        finally:
            self._busy.discard(key)
        return value if found else _ABSENT

    # ------------------------------------------------------------------------------------------ conditions

    def _holds(self, scope: Scope, binding: Binding) -> bool:
        return all(self._guard(scope, guard, binding.node) for guard in binding.guards)

    def _guard(self, scope: Scope, guard: Guard, node: ast.AST) -> bool:
        match guard.kind, guard.node:
            case (("then" | "else"), ast.If() as statement):
                return self.decide(statement.test, Frame(scope)) == (guard.kind == "then")
            case (("try" | "except"), ast.Try() as statement):
                outcome = self._outcome(scope, statement)
                if guard.kind == "except":
                    return outcome is not None and self._caught(statement, outcome[1], scope) == guard.handler
                if outcome is None:
                    return True
                index = next((i for i, child in enumerate(statement.body) if node in set(ast.walk(child))), None)
                return index is not None and index < outcome[0]
        if isinstance(guard.node, ast.With | ast.AsyncWith):
            raise self.undecided(scope, guard.node, "a context manager decides it")
        raise self.undecided(scope, guard.node, "a loop binds it")

    def decide(self, test: ast.expr, frame: Frame) -> bool:
        """The truth of a condition. Raises Undecided at the condition itself."""
        cached = self._tests.get(test)
        if cached is None:
            if test in self._busy:
                raise self.undecided(frame.scope, test, "the condition depends on itself")
            self._busy.add(test)
            self._refill()
            try:
                cached = self.truth(self.evaluate(test, frame), test, frame)
            except Undecided as error:
                text = f"the condition `{ast.unparse(test)}` cannot be decided ({error.cause.text})"
                cached = self.undecided(frame.scope, test, text)
            except HostRaise as error:
                text = f"the condition `{ast.unparse(test)}` raises {error}"
                cached = self.undecided(frame.scope, test, text)
            finally:
                self._busy.discard(test)
            if frame.locals is None:
                self._tests[test] = cached
        if isinstance(cached, Undecided):
            raise cached
        return cached

    def _outcome(self, scope: Scope, node: ast.Try) -> tuple[int, HostRaise] | None:
        """Which statement of a `try` block raises what; None where it runs through."""
        if node not in self._outcomes:
            self._outcomes[node] = None  # a block that asks about itself has not raised so far
            try:
                self._outcomes[node] = self._try_block(scope, node)
            except Undecided as error:
                self._outcomes[node] = error
        outcome = self._outcomes[node]
        if isinstance(outcome, Undecided):
            raise outcome
        return outcome

    def _try_block(self, scope: Scope, node: ast.Try) -> tuple[int, HostRaise] | None:
        imports_only = all(
            handler.type is not None
            and {name.id for name in ast.walk(handler.type) if isinstance(name, ast.Name)}
            <= {"ImportError", "ModuleNotFoundError"}
            for handler in node.handlers
        )
        for index, statement in enumerate(node.body):
            try:
                self._attempt(scope, statement)
            except HostRaise as error:
                return index, error
            except Undecided:
                # Only an import raises ImportError, and imports are decided.
                if not imports_only:
                    raise
        return None

    def _attempt(self, scope: Scope, statement: ast.stmt) -> None:
        """Raise HostRaise where a statement of a module's level would raise."""
        frame = Frame(scope)
        match statement:
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._check_import(alias.name, scope.module)
            case ast.ImportFrom(names=aliases) as node:
                for alias in aliases:
                    self._check_import_from(scope.module, node, alias.name)
            case ast.Assign(value=value) | ast.Expr(value=value):
                if not isinstance(value, ast.Constant):
                    self._refill()
                    self.evaluate(value, frame)
            case ast.AnnAssign(value=ast.expr() as value):
                self.evaluate(value, frame)
            case ast.If() as node:
                for child in node.body if self.decide(node.test, frame) else node.orelse:
                    self._attempt(scope, child)
            case ast.Try() as node:
                outcome = self._outcome(scope, node)
                if outcome is not None:
                    handler = self._caught(node, outcome[1], scope)
                    if handler is None:
                        raise outcome[1]
                    for child in node.handlers[handler].body:
                        self._attempt(scope, child)
            case ast.With(body=body):
                for child in body:
                    self._attempt(scope, child)
            case ast.Raise() as node:
                raise HostRaise(self._exception_name(node.exc))
            case ast.Assert(test=test):
                if not self.decide(test, frame):
                    raise HostRaise("AssertionError")

    def _check_import(self, dotted: str, importer: Module) -> None:
        value = self.module(dotted, importer)
        if isinstance(value, External) and not hostfacts.importable(dotted):
            raise HostRaise("ModuleNotFoundError", dotted)

    def _check_import_from(self, importer: Module, node: ast.ImportFrom, name: str) -> None:
        base = self.imported_module(importer, node)
        if isinstance(base, External):
            dotted = base.dotted
            if dotted not in _SYNONYMS.values() and not hostfacts.importable(dotted):
                raise HostRaise("ModuleNotFoundError", dotted)
            if f"{dotted}.{name}" in hostfacts.ABSENT or (name != "*" and hostfacts.has_name(dotted, name) is False):
                raise HostRaise("ImportError", f"{dotted}.{name}")
        elif name != "*":
            try:
                self._import_from(importer, node, name)
            except Undecided:
                pass  # bound, to something that reading cannot tell

    def _caught(self, node: ast.Try, error: HostRaise, scope: Scope) -> int | None:
        kinds = {*_EXCEPTIONS.get(error.kind, (error.kind,)), "Exception", "BaseException"}
        for index, handler in enumerate(node.handlers):
            if handler.type is None:
                return index
            names = {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
            names |= {n.attr for n in ast.walk(handler.type) if isinstance(n, ast.Attribute)}
            if names & kinds:
                return index
        return None

    @staticmethod
    def _exception_name(node: ast.expr | None) -> str:
        if isinstance(node, ast.Call):
            node = node.func
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name
        return "Exception"

    # ------------------------------------------------------------------------------------------ attributes

    def attribute(self, value: Any, name: str, *, imported: bool = False) -> Any:
        """`value.name`. Raises HostRaise (AttributeError), or Undecided with no place of its own."""
        match value:
            case ModuleValue(module):
                return self._module_attribute(module, name)
            case External():
                return self._external_attribute(value, name, imported)
            case Constexpr(inner) if name == "value":
                return inner
            case Class():
                return self._class_attribute(value, name)
            case Function() if name in ("__name__", "__qualname__"):
                return value.name
            case SimpleNamespace():
                if hasattr(value, name):
                    return getattr(value, name)
                raise HostRaise("AttributeError", name)
            case Member(member_name, member_value) if name in ("name", "value"):
                return member_name if name == "name" else member_value
            case IntMember() if name in ("name", "value"):
                return getattr(value, name)
            case hostfacts.Version() if name in (
                "major",
                "minor",
                "micro",
                "release",
                "base_version",
                "public",
                "local",
            ):
                return getattr(value, name)
            case hostfacts.Version() if name == "is_prerelease":
                return value.is_prerelease
            case tuple() if name in ("major", "minor", "micro"):  # sys.version_info
                return value[("major", "minor", "micro").index(name)]
        if is_data(value):
            if name.startswith("_") or not hasattr(value, name):
                raise HostRaise("AttributeError", name)
            found = getattr(value, name)
            return found if is_data(found) else Method(value, name)
        raise Undecided(Cause("", 0, 0, f"the attribute {name!r} cannot be read"))

    def _module_attribute(self, module: Module, name: str) -> Any:
        key = (module, name, "attribute")
        if key in self._busy:
            raise HostRaise("AttributeError", name)
        self._busy.add(key)
        try:
            value, found = self._in_scope(module.scope, name, None)
        finally:
            self._busy.discard(key)
        if found:
            return value
        if module.path.name == "__init__.py":
            inside = hostfacts.submodule(module.path, name)
            child = self.world.load(inside) if inside is not None and inside.suffix == ".py" else None
            if child is not None:
                return ModuleValue(child)
        if "__getattr__" in module.scope.bindings:
            raise self.undecided(
                module.scope, module.scope.bindings["__getattr__"][0].node, f"{name!r} is made on demand"
            )
        if name == "__name__":
            return module.path.stem
        raise HostRaise("AttributeError", name)

    def _external_attribute(self, value: External, name: str, imported: bool) -> Any:
        dotted = f"{value.dotted}.{name}"
        dotted = _SYNONYMS.get(dotted, dotted)
        if dotted in hostfacts.ABSENT:
            raise HostRaise("AttributeError", dotted)
        if dotted in self._attributes:
            fact = self._attributes[dotted]
            if fact is None and dotted.endswith("__version__"):
                raise Undecided(Cause("", 0, 0, f"{dotted} is not installed"))
            return fact
        if dotted == "os.environ":
            return External("os.environ")
        if value.within("math") and value.dotted == "math":
            found = purecalls.MATH.get(name)
            if found is not None:
                return found if isinstance(found, float) else External(dotted)
        if any(value.within(package) for package in _CHECKED) or value.dotted == "triton":
            present = hostfacts.has_name(value.dotted, name)
            if present is False and value.module:
                raise HostRaise("ImportError" if imported else "AttributeError", dotted)
        origin = hostfacts.top_level_origin("triton") if value.within("triton") else None
        is_module = value.module and (
            origin is not None and hostfacts.submodule(origin, dotted.partition(".")[2]) is not None
        )
        if not is_module and value.module and not value.within("triton"):
            is_module = dotted in purecalls.MODULES
        return External(self._backend(dotted), is_module)

    def _backend(self, dotted: str) -> str:
        """Libdevice of the other vendor's backend, named outright, means that of the target."""
        cuda, hip = "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"
        if self.device.hip and dotted.startswith(cuda):
            rest = dotted[len(cuda) :]
            if not rest or hostfacts.has_name(hip, rest[1:]):
                return hip + rest
        return dotted

    def _class_attribute(self, value: Class, name: str) -> Any:
        scope = Scope(value.frame.scope.module, value.node.body, value.frame.scope, value.node)
        if name == "__name__":
            return value.node.name
        binding = self.binding(scope, name)
        if binding is None:
            for base in value.node.bases:
                inherited = self.evaluate(base, value.frame)
                if isinstance(inherited, Class):
                    return self._class_attribute(inherited, name)
            raise HostRaise("AttributeError", name)
        found = self.value(scope, binding)
        bases = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in value.node.bases}
        if bases & {"IntEnum", "IntFlag"} and isinstance(found, int):
            member = IntMember(found)
            member.name = name
            return member
        if bases & {"Enum", "StrEnum", "Flag"} and is_data(found):
            return Member(name, found)
        return found

    # ----------------------------------------------------------------------------------------- expressions

    def truth(self, value: Any, node: ast.AST, frame: Frame) -> bool:
        """`bool(value)`. Raises Undecided."""
        match value:
            case Unknown(cause):
                raise Undecided(cause)
            case Constexpr(inner):
                return self.truth(inner, node, frame)
            case External() if value.module or value.within("triton"):
                return True
            case Function() | Class() | ModuleValue() | Builtin() | Partial() | Made() | SimpleNamespace() | Member():
                return True
        if is_data(value):
            return bool(value)
        raise self.undecided(frame.scope, node, f"nothing is known about `{ast.unparse(node)}`")

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression. Raises Undecided or HostRaise."""
        self._steps -= 1
        if self._steps < 0:
            raise self.undecided(frame.scope, node, "it takes too many steps")
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.undecided(frame.scope, node, f"`{ast.unparse(node)[:60]}` cannot be read")
        try:
            return handler(self, node, frame)
        except Undecided as error:
            if error.cause.line:
                raise
            raise self.undecided(frame.scope, node, error.cause.text) from None
        except RecursionError:
            raise self.undecided(frame.scope, node, "it is nested too deeply") from None

    def _lenient(self, node: ast.expr, frame: Frame) -> Any:
        """A value for a place: what is undecided stays so until it is used."""
        try:
            return self.evaluate(node, frame)
        except Undecided as error:
            return Unknown(error.cause)

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        current: Frame | None = frame
        while current is not None and current.locals is not None:
            if node.id in current.locals:
                return self._known(current.locals[node.id])
            if current.outer is None:
                break
            current = current.outer
        target = current or frame
        return self.resolve(target.scope, node.id, target.before)

    def _attribute_node(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.evaluate(node.value, frame), node.attr)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        return self._known(self._item(value, index, node, frame))

    def _item(self, value: Any, index: Any, node: ast.AST, frame: Frame) -> Any:
        if isinstance(value, External) and value.dotted == "os.environ" and isinstance(index, str):
            return purecalls.environment(index, _ABSENT)
        if isinstance(value, Class):
            return self._class_attribute(value, index)
        if not is_data(value):
            raise self.undecided(frame.scope, node, "its container is not known")
        return purecalls.guarded(lambda: value[index], "the item")

    def _slice(self, node: ast.Slice, frame: Frame) -> Any:
        parts = [None if part is None else self.evaluate(part, frame) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Any:
        items: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items.extend(self._iterate(element.value, frame))
            else:
                items.append(self._lenient(element, frame))
        return {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(node)](items)

    def _dict(self, node: ast.Dict, frame: Frame) -> Any:
        items: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                items.update(self.evaluate(value, frame))
            else:
                found = self.evaluate(key, frame)
                purecalls.guarded(lambda found=found: hash(found), "the key")
                items[found] = self._lenient(value, frame)
        return items

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Any:
        stops = isinstance(node.op, ast.Or)
        pending: Undecided | None = None
        value: Any = None
        for operand in node.values:
            try:
                value = self.evaluate(operand, frame)
                if self.truth(value, operand, frame) == stops:
                    # `unknown and False` is false all the same; which falsy value it is does not matter to a test.
                    return value if pending is None else stops
            except Undecided as error:
                pending = pending or error
        if pending is not None:
            raise pending
        return value

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            return not self.truth(value, node.operand, frame)
        wrap = isinstance(value, Constexpr)
        plain = value.value if isinstance(value, Constexpr) else value
        if not is_data(plain):
            raise self.undecided(frame.scope, node, "its operand is not known")
        operation = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(node.op)]
        result = purecalls.guarded(lambda: operation(plain), "the operation")
        return Constexpr(result) if wrap else result

    def _binary_node(self, node: ast.BinOp, frame: Frame) -> Any:
        return self._binary(node.op, self.evaluate(node.left, frame), self.evaluate(node.right, frame), node, frame)

    def _binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST, frame: Frame) -> Any:
        wrap = isinstance(left, Constexpr) or isinstance(right, Constexpr)
        left = left.value if isinstance(left, Constexpr) else left
        right = right.value if isinstance(right, Constexpr) else right
        if not (is_data(left) and is_data(right)):
            raise self.undecided(frame.scope, node, "an operand is not known")
        result = purecalls.binary(type(op), left, right)
        return Constexpr(result) if wrap else result

    def _compare(self, node: ast.Compare, frame: Frame) -> bool:
        left = self.evaluate(node.left, frame)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(operand, frame)
            if not self._compared(op, left, right, node, frame):
                return False
            left = right
        return True

    def _compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST, frame: Frame) -> bool:
        left = left.value if isinstance(left, Constexpr) else left
        right = right.value if isinstance(right, Constexpr) else right
        if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            same = self._same(left, right, isinstance(op, ast.Is | ast.IsNot))
            if same is not None:
                return same == isinstance(op, ast.Is | ast.Eq)
        elif isinstance(op, ast.In | ast.NotIn):
            if isinstance(right, External) and right.dotted == "os.environ":
                return (purecalls.environment(left, None) is not None) == isinstance(op, ast.In)
            if is_data(right) and not (isinstance(right, (list, tuple)) and any(isinstance(x, Unknown) for x in right)):
                inside = purecalls.guarded(lambda: left in right, "the test")
                return bool(inside) == isinstance(op, ast.In)
        elif is_data(left) and is_data(right):
            return bool(purecalls.compare(type(op), left, right))
        raise self.undecided(frame.scope, node, f"nothing is known about `{ast.unparse(node)}`")

    @staticmethod
    def _same(left: Any, right: Any, identity: bool) -> bool | None:
        if is_data(left) and is_data(right):
            if isinstance(left, hostfacts.Version) != isinstance(right, hostfacts.Version):
                left, right = str(left), str(right)
            return bool(left is right or (left == right and type(left) is type(right))) if identity else left == right
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Function | Class | ModuleValue | SimpleNamespace | Made | Member) and is_data(other):
                return False
            if isinstance(one, External) and other is None and (one.module or one.within("triton")):
                return False
        if isinstance(left, External) and isinstance(right, External):
            if left.dotted == right.dotted:
                return True
            return False if left.dotted.split(".")[0] == right.dotted.split(".")[0] else None
        if type(left) is type(right) and isinstance(left, Function | Class | ModuleValue | Member):
            return left == right
        return None

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Any:
        chosen = node.body if self.decide(node.test, frame) else node.orelse
        return self.evaluate(chosen, frame)

    def _fstring(self, node: ast.JoinedStr, frame: Frame) -> str:
        parts = []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                parts.append(str(piece.value))
            elif isinstance(piece, ast.FormattedValue):
                value = self.evaluate(piece.value, frame)
                specification = (
                    self._fstring(piece.format_spec, frame) if isinstance(piece.format_spec, ast.JoinedStr) else ""
                )
                if not is_data(value):
                    raise self.undecided(frame.scope, node, "a part of the text is not known")
                value = {114: repr, 115: str, 97: ascii}.get(piece.conversion, lambda plain: plain)(value)
                parts.append(purecalls.formatted(value, specification))
        return "".join(parts)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Any:
        results: list[Any] = []
        inner = Frame(frame.scope, {}, frame if frame.locals is not None else None, frame.before)

        def run(index: int) -> None:
            if index == len(node.generators):
                if isinstance(node, ast.DictComp):
                    results.append((self.evaluate(node.key, inner), self._lenient(node.value, inner)))
                else:
                    results.append(self._lenient(node.elt, inner))
                return
            generator = node.generators[index]
            for item in self._iterate(generator.iter, inner):
                self._assign(generator.target, item, inner)
                if all(self.truth(self.evaluate(test, inner), test, inner) for test in generator.ifs):
                    run(index + 1)

        run(0)
        match node:
            case ast.DictComp():
                return dict(results)
            case ast.SetComp():
                return set(results)
        return results

    def _iterate(self, node: ast.expr, frame: Frame) -> list[Any]:
        value = self.evaluate(node, frame)
        if isinstance(value, Class):
            scope = Scope(value.frame.scope.module, value.node.body, value.frame.scope, value.node)
            return [self._class_attribute(value, name) for name in scope.bindings if not name.startswith("_")]
        if not is_data(value) or isinstance(value, hostfacts.Version):
            raise self.undecided(frame.scope, node, f"nothing is known about `{ast.unparse(node)}`")
        return purecalls.listed(value)

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Function:
        return Function(frame, node)

    # ----------------------------------------------------------------------------------------------- calls

    def _call_node(self, node: ast.Call, frame: Frame) -> Any:
        callee = self.evaluate(node.func, frame)
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args.extend(self._iterate(argument.value, frame))
            else:
                args.append(self._lenient(argument, frame))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                extra = self.evaluate(keyword.value, frame)
                if not isinstance(extra, dict):
                    raise self.undecided(frame.scope, node, "its keywords are not known")
                kwargs.update(extra)
            else:
                kwargs[keyword.arg] = self._lenient(keyword.value, frame)
        try:
            return self.call(callee, args, kwargs)
        except Undecided as error:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            answer = hostfacts.question(name, self.target)
            if answer is not None:
                return answer
            if error.cause.line:
                raise
            raise self.undecided(frame.scope, node, error.cause.text) from None

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`callee(*args, **kwargs)`. Raises Undecided or HostRaise."""
        match callee:
            case Function():
                return self._call_function(callee, args, kwargs)
            case Partial(inner, bound, named):
                return self.call(inner, [*bound, *args], {**named, **kwargs})
            case External(dotted):
                if dotted in self._calls:
                    return self._calls[dotted]
                return self._call_external(dotted, args, kwargs)
            case Builtin(name):
                return purecalls.call_builtin(self, name, args, kwargs)
            case Method(owner, name):
                return purecalls.call_method(self, owner, name, args, kwargs)
            case Class():
                return self._call_class(callee, args)
        raise Undecided(Cause("", 0, 0, "what is called is not known"))

    def _call_class(self, callee: Class, args: list[Any]) -> Any:
        """`Mode(0)`: the member of an Enum with that value."""
        scope = Scope(callee.frame.scope.module, callee.node.body, callee.frame.scope, callee.node)
        for name in scope.bindings:
            member = self._class_attribute(callee, name) if not name.startswith("_") else None
            if isinstance(member, IntMember | Member) and args and member.value == args[0]:
                return member
        raise Undecided(Cause("", 0, 0, f"an object of the class {callee.node.name} is not known"))

    def _call_external(self, dotted: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        kind, dialect = decorator_kind(dotted)
        if dotted == "triton.language.constexpr" and args:
            value = self._known(args[0])
            return value if isinstance(value, Constexpr | Function) else Constexpr(value)
        if kind == "jit":
            if args and isinstance(args[0], Function):
                return Function(args[0].frame, args[0].node, dialect)
            return Partial(External(dotted))
        if kind in ("autotune", "heuristics"):
            return Builtin("_identity")
        if dotted in ("functools.partial",) and args:
            return Partial(args[0], tuple(args[1:]), kwargs)
        if dotted.rpartition(".")[2] in _TRANSPARENT:
            return args[0] if args and isinstance(args[0], Function) and not kwargs else Builtin("_identity")
        return purecalls.call_external(self, dotted, args, kwargs)

    def _call_function(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        node = function.node
        scope = function.frame.scope
        if isinstance(node, ast.AsyncFunctionDef):
            raise self.undecided(scope, node, f"{function.name} is asynchronous")
        if self._depth >= _DEPTH:
            raise self.undecided(scope, node, f"{function.name} calls too deeply")
        if isinstance(node, ast.FunctionDef):
            for decorator in reversed(node.decorator_list):
                if self._decorated(decorator, function):
                    raise self.undecided(scope, decorator, f"the decorator `{ast.unparse(decorator)}` may change it")
        frame = Frame(
            scope,
            self._arguments(function, args, kwargs),
            function.frame if function.frame.locals is not None else None,
        )
        self._depth += 1
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body, frame)
            if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
                raise self.undecided(scope, node, f"{function.name} is a generator")
            self._run(node.body, frame)
            return None
        except _Return as result:
            return self._known(result.value)
        finally:
            self._depth -= 1

    def _decorated(self, decorator: ast.expr, function: Function) -> bool:
        """Whether a decorator may change what a function returns."""
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in _TRANSPARENT or "cache" in name or name == "constexpr_function":
            return False
        try:
            value = self.evaluate(target, function.frame)
        except (Undecided, HostRaise):
            return True
        return not (isinstance(value, External) and decorator_kind(value.dotted)[0] == "constexpr")

    def _arguments(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        arguments = function.node.args
        names = [arg.arg for arg in [*arguments.posonlyargs, *arguments.args]]
        bound: dict[str, Any] = dict(zip(names, args, strict=False))
        defaults = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True))
        defaults |= {
            arg.arg: default
            for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        }
        if arguments.vararg:
            bound[arguments.vararg.arg] = tuple(args[len(names) :])
        elif len(args) > len(names):
            raise HostRaise("TypeError", f"{function.name} takes {len(names)} arguments")
        extra: dict[str, Any] = {}
        every = {arg.arg for arg in all_arguments(arguments)}
        for name, value in kwargs.items():
            (bound if name in every else extra)[name] = value
        if arguments.kwarg:
            bound[arguments.kwarg.arg] = extra
        elif extra:
            raise HostRaise("TypeError", f"{function.name} has no parameter {next(iter(extra))!r}")
        for name in every - bound.keys():
            if name not in defaults:
                raise HostRaise("TypeError", f"{function.name} misses {name!r}")
            bound[name] = self._lenient(defaults[name], function.frame)
        return bound

    # ------------------------------------------------------------------------------------------ statements

    def _run(self, body: list[ast.stmt], frame: Frame) -> None:
        for statement in body:
            self._steps -= 1
            if self._steps < 0:
                raise self.undecided(frame.scope, statement, "it takes too many steps")
            self._statement(statement, frame)

    def _statement(self, statement: ast.stmt, frame: Frame) -> None:
        assert frame.locals is not None
        match statement:
            case ast.Return(value=value):
                raise _Return(None if value is None else self.evaluate(value, frame))
            case ast.Assign(targets=targets, value=value):
                result = self._lenient(value, frame)
                for target in targets:
                    self._assign(target, result, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._lenient(value, frame), frame)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                loaded = ast.copy_location(ast.Name(name, ast.Load()), target)
                frame.locals[name] = self._binary(
                    op, self.evaluate(loaded, frame), self.evaluate(value, frame), statement, frame
                )
            case ast.Expr(value=value):
                self._lenient(value, frame)
            case ast.If(test=test, body=body, orelse=orelse):
                self._run(body if self.decide(test, frame) else orelse, frame)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                self._for(statement, self._iterate(iterable, frame), frame)
            case ast.While(test=test, body=body):
                while self.decide(test, frame):
                    try:
                        self._run(body, frame)
                    except _Break:
                        break
                    except _Continue:
                        continue
            case ast.Try():
                self._run_try(statement, frame)
            case ast.Raise(exc=exc):
                raise HostRaise(self._exception_name(exc))
            case ast.Assert(test=test):
                if not self.decide(test, frame):
                    raise HostRaise("AssertionError")
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._check_import(alias.name, frame.scope.module)
                    dotted = alias.name if alias.asname else alias.name.partition(".")[0]
                    frame.locals[alias.asname or dotted] = self.module(dotted, frame.scope.module)
            case ast.ImportFrom(names=aliases):
                for alias in aliases:
                    self._check_import_from(frame.scope.module, statement, alias.name)
                    try:
                        value = self._import_from(frame.scope.module, statement, alias.name)
                    except Undecided as error:
                        value = Unknown(error.cause)
                    frame.locals[alias.asname or alias.name] = value
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                frame.locals[statement.name] = Function(frame, statement)
            case ast.Break():
                raise _Break
            case ast.Continue():
                raise _Continue
            case ast.Pass() | ast.AnnAssign():
                return
            case ast.With(items=items, body=body) if all(item.optional_vars is None for item in items):
                self._run(body, frame)
            case _:
                raise self.undecided(frame.scope, statement, "a statement cannot be read")

    def _for(self, statement: ast.For, items: list[Any], frame: Frame) -> None:
        for item in items:
            self._assign(statement.target, item, frame)
            try:
                self._run(statement.body, frame)
            except _Break:
                return
            except _Continue:
                continue
        self._run(statement.orelse, frame)

    def _run_try(self, statement: ast.Try, frame: Frame) -> None:
        try:
            self._run(statement.body, frame)
        except HostRaise as error:
            handler = self._caught(statement, error, frame.scope)
            if handler is None:
                raise
            self._run(statement.handlers[handler].body, frame)
        else:
            self._run(statement.orelse, frame)
        finally:
            self._run(statement.finalbody, frame)

    def _assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        assert frame.locals is not None
        match target:
            case ast.Name(id=name):
                frame.locals[name] = value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                if isinstance(value, Unknown) or not is_data(value):
                    for element in elements:
                        unknown = (
                            value
                            if isinstance(value, Unknown)
                            else Unknown(self.undecided(frame.scope, target, "not known").cause)
                        )
                        self._assign(element, unknown, frame)
                    return
                items = purecalls.listed(value)
                if len(items) != len(elements):
                    raise HostRaise("ValueError", "unpacking")
                for element, item in zip(elements, items, strict=True):
                    self._assign(element, item, frame)
            case ast.Subscript(value=container, slice=index):
                holder, key = self.evaluate(container, frame), self.evaluate(index, frame)
                if isinstance(holder, dict | list) and self._depth:
                    purecalls.guarded(lambda: holder.__setitem__(key, value), "the item")


_ABSENT: Any = object()

_EXPRESSIONS: Mapping[type[ast.expr], Callable[..., Any]] = {
    ast.Constant: lambda self, node, frame: node.value,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute_node,
    ast.Subscript: Evaluator._subscript,
    ast.Slice: Evaluator._slice,
    ast.Tuple: Evaluator._sequence,
    ast.List: Evaluator._sequence,
    ast.Set: Evaluator._sequence,
    ast.Dict: Evaluator._dict,
    ast.BoolOp: Evaluator._boolean,
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary_node,
    ast.Compare: Evaluator._compare,
    ast.IfExp: Evaluator._conditional,
    ast.JoinedStr: Evaluator._fstring,
    ast.ListComp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.DictComp: Evaluator._comprehension,
    ast.Lambda: Evaluator._lambda,
    ast.Call: Evaluator._call_node,
}


def open_module(path: Path, text: str, target: str, root: Path | None) -> tuple[Evaluator, Module]:
    """An evaluator for one file and what it imports. Raises SyntaxError."""
    world = World(root)
    module = world.add(path, text)
    return Evaluator(world, target), module
