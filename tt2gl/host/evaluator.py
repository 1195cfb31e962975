"""Evaluates host constants and conditions by reading: a small pure interpreter over the user's syntax trees.

Nothing of the user's is run or imported. What reading cannot tell raises `Undecided` with the place; a question
about the machine is answered from the target (`facts`). Steps, depth and sizes are bounded.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from tt2gl.host import facts
from tt2gl.host.builtins import call_builtin, call_method
from tt2gl.host.expressions import Expressions
from tt2gl.host.externals import call_external
from tt2gl.host.lazy_modules import lazy_module
from tt2gl.host.operations import unknown
from tt2gl.host.scopes import Module, Scope, World, all_arguments
from tt2gl.host.stand_ins import stand_in
from tt2gl.host.triton_names import decorator_kind
from tt2gl.host.values import (
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
    Partial,
    Undecided,
    Unknown,
)
from tt2gl.trees import nodes_in

_DEPTH = 40

# Decorators that leave what a function returns as it is.
_TRANSPARENT = ("cache", "lru_cache", "wraps", "staticmethod", "memoize", "disable", "tensor_cache", "no_grad")


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


_CONSTEXPR = "triton.language.constexpr"


class Evaluator(Expressions):
    """Evaluates names and expressions of a world of modules, as they would be on `target`."""

    def call_node(self, node: ast.Call, frame: Frame) -> Any:
        """The value of a call."""
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args.extend(self.iterate(argument.value, frame))
            else:
                args.append(self.lenient(argument, frame))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                extra = self.evaluate(keyword.value, frame)
                if not isinstance(extra, dict):
                    raise self.undecided(frame.scope, node, "its keywords are not known")
                kwargs.update(extra)
            else:
                kwargs[keyword.arg] = self.lenient(keyword.value, frame)
        try:
            return self.call(self._callee(node.func, frame), args, kwargs)
        except Undecided as error:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            answer = facts.question(name, self.target)
            if answer is not None:
                return answer
            if (dtype := facts.asked_dtype(name, self.target)) is not None:
                return External(dtype)
            if error.cause.line:
                raise
            raise self.undecided(frame.scope, node, error.cause.text) from None

    def _callee(self, node: ast.expr, frame: Frame) -> Any:
        """What is called: `tl.constexpr` of a module beside a file that is given alone is Triton's."""
        try:
            return self.evaluate(node, frame)
        except HostRaise as error:
            is_constexpr = isinstance(node, ast.Attribute) and node.attr == "constexpr"
            if error.kind != "ModuleNotFoundError" or not is_constexpr:
                raise
            return External(_CONSTEXPR)

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`callee(*args, **kwargs)`. Raises Undecided or HostRaise."""
        match callee:
            case Function():
                return self._call_function(callee, args, kwargs)
            case Partial(inner, bound, named):
                return self.call(inner, [*bound, *args], {**named, **kwargs})
            case External(dotted):
                if dotted in self.answers:
                    return self.answers[dotted]
                return self._call_external(dotted, args, kwargs)
            case Builtin(name):
                return call_builtin(self, name, args, kwargs)
            case Method(owner, name):
                return call_method(self, owner, name, args, kwargs)
            case Class():
                return self._call_class(callee, args, kwargs)
        raise Undecided(Cause("", 0, 0, "what is called is not known"))

    def _call_class(self, callee: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`Mode(0)`: the member of an Enum with that value; `Lazy("triton")`: the module that it imports."""
        scope = Scope(callee.frame.scope.module, callee.node.body, callee.frame.scope, callee.node)
        for name in scope.bindings:
            member = self.class_attribute(callee, name) if not name.startswith("_") else None
            if isinstance(member, IntMember | Member) and args and member.value == args[0]:
                return member
        if (module := lazy_module(callee.node, [*args, *kwargs.values()])) is not None:
            return module
        raise Undecided(Cause("", 0, 0, f"an object of the class {callee.node.name} is not known"))

    def _call_external(self, dotted: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        kind, dialect = decorator_kind(dotted)
        # One that a package which is not at hand exports is taken for Triton's, as in kernels.
        if args and _CONSTEXPR in (dotted, stand_in(dotted)):
            value = self.known(args[0])
            return value if isinstance(value, Constexpr | Function) else Constexpr(value)
        if kind == "jit":
            if args and isinstance(args[0], Function):
                return Function(args[0].frame, args[0].node, dialect)
            return Partial(External(dotted))
        if kind == "constexpr" and dotted.endswith("_function") and len(args) == 1:
            return _compile_time(args[0])
        if kind in ("autotune", "heuristics"):
            return Builtin("_identity")
        if dotted in ("functools.partial",) and args:
            return Partial(args[0], tuple(args[1:]), kwargs)
        if dotted.rpartition(".")[2] in _TRANSPARENT:
            return args[0] if args and isinstance(args[0], Function) and not kwargs else Builtin("_identity")
        return call_external(self, dotted, args, kwargs)

    def _call_function(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        node = function.node
        scope = function.frame.scope
        if isinstance(node, ast.AsyncFunctionDef):
            raise self.undecided(scope, node, f"{function.name} is asynchronous")
        if self.depth >= _DEPTH:
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
        self.depth += 1
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body, frame)
            if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in nodes_in(node)):
                raise self.undecided(scope, node, f"{function.name} is a generator")
            self._run(node.body, frame)
            return None
        except _Return as result:
            return self.known(result.value)
        finally:
            self.depth -= 1

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
        for name in [each.arg for each in all_arguments(arguments) if each.arg not in bound]:
            if name not in defaults:
                raise HostRaise("TypeError", f"{function.name} misses {name!r}")
            bound[name] = self.lenient(defaults[name], function.frame)
        return bound

    def _run(self, body: list[ast.stmt], frame: Frame) -> None:
        for statement in body:
            self.steps -= 1
            if self.steps < 0:
                raise self.undecided(frame.scope, statement, "it takes too many steps")
            self._statement(statement, frame)

    def _statement(self, statement: ast.stmt, frame: Frame) -> None:
        assert frame.locals is not None
        match statement:
            case ast.Return(value=value):
                raise _Return(None if value is None else self.evaluate(value, frame))
            case ast.Assign(targets=targets, value=value):
                result = self.lenient(value, frame)
                for target in targets:
                    self.assign(target, result, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.lenient(value, frame), frame)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                loaded = ast.copy_location(ast.Name(name, ast.Load()), target)
                frame.locals[name] = self.binary(
                    op, self.evaluate(loaded, frame), self.evaluate(value, frame), statement, frame
                )
            case ast.Expr(value=value):
                self.lenient(value, frame)
            case ast.If(test=test, body=body, orelse=orelse):
                self._run(body if self.decide(test, frame) else orelse, frame)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                self._for(statement, self.iterate(iterable, frame), frame)
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
                raise HostRaise(self.exception_name(exc))
            case ast.Assert(test=test):
                if not self.decide(test, frame):
                    raise HostRaise("AssertionError")
            case ast.Import() | ast.ImportFrom():
                self._import(statement, frame.locals, frame.scope.module)
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

    def _import(self, statement: ast.Import | ast.ImportFrom, names: dict[str, Any], module: Module) -> None:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                self.check_import(alias.name, module)
                dotted = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or dotted] = self.module(dotted, module)
            else:
                self.check_import_from(module, statement, alias.name)
                try:
                    imported = self.import_from(module, statement, alias.name)
                except Undecided as error:
                    imported = Unknown(error.cause)
                names[alias.asname or alias.name] = imported

    def _for(self, statement: ast.For, items: list[Any], frame: Frame) -> None:
        for item in items:
            self.assign(statement.target, item, frame)
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
            handler = self.caught(statement, error, frame.scope)
            if handler is None:
                raise
            self._run(statement.handlers[handler].body, frame)
        else:
            self._run(statement.orelse, frame)
        finally:
            self._run(statement.finalbody, frame)


def _compile_time(function: Any) -> Any:
    """`triton.constexpr_function(function)`."""
    match function:
        case Function(frame, node):
            return Function(frame, node, "constexpr")
        case External():
            return Made("triton.constexpr_function", (function,), {})
    raise unknown("the function is not known")


def open_module(path: Path, text: str, target: str, root: Path | None) -> tuple[Evaluator, Module]:
    """An evaluator for one file and what it imports. Raises SyntaxError."""
    world = World(root)
    module = world.add(path, text)
    return Evaluator(world, target), module
