"""What calls in kernels do besides computing, and which pointers an address comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tt2gl.pipelining.flow import NONE, Names, inside
from tt2gl.pipelining.static import called

_BUILTINS = {"abs", "bool", "float", "int", "len", "max", "min", "range", "tuple"}

# Functions that must not be done early, or that are not worth doing twice.
_EXPENSIVE = {"dot", "dot_scaled", "sort", "histogram"}
_OPAQUE = {"inline_asm_elementwise", "device_print", "debug_barrier"}


def _writes_memory(name: str) -> bool:
    return name == "store" or name.startswith("atomic_") or name.endswith(("_store", "_scatter"))


@dataclass
class Effects:
    """What calls do, those of jit functions by what their bodies do. `helpers`: the functions known, by name."""

    helpers: Mapping[str, ast.FunctionDef]
    _pure: dict[str, bool] = field(default_factory=dict)

    def trouble(self, node: ast.Call) -> str:
        """Why a call cannot be made early and twice, as the end of a sentence; empty where it can."""
        name = called(node)
        if _writes_memory(name):
            return f"is computed by {name}, which writes to memory"
        if name in _EXPENSIVE:
            return f"is computed by {name}"
        if name in _OPAQUE:
            return f"is computed by {name}, which may do anything"
        if isinstance(node.func, ast.Name) and name not in _BUILTINS and not self._is_pure(name):
            return f"is computed by {name}, which may do more than compute"
        return ""

    def only_computes(self, statement: ast.stmt) -> bool:
        """Whether a statement can be made early and twice, and reads no memory either."""
        calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return not any(self.trouble(call) or called(call) == "load" for call in calls)

    def _is_pure(self, name: str) -> bool:
        if name not in self._pure:
            helper = self.helpers.get(name)
            # A function that calls itself does not compile.
            self._pure[name] = False
            if helper is not None:
                self._pure[name] = not any(self.trouble(call) for call in _calls(helper)) and not _loads(helper)
        return self._pure[name]

    def written(self, node: ast.Call) -> Iterator[ast.expr]:
        """The addresses that a call may write to."""
        name = called(node)
        if _writes_memory(name):
            yield from node.args[:1]
            yield from (each.value for each in node.keywords if each.arg == "pointer")
        elif isinstance(node.func, ast.Name) and name not in _BUILTINS:
            helper = self.helpers.get(name)
            if helper is None or any(list(self.written(call)) for call in _calls(helper)):
                yield from node.args
                yield from (each.value for each in node.keywords)

    def orders(self, node: ast.Call) -> bool:
        """Whether a call makes other programs' accesses seen, so that loads must stay behind it."""
        return called(node) in ("debug_barrier", "atomic_cas", "atomic_xchg")


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for statement in function.body for node in ast.walk(statement) if isinstance(node, ast.Call))


def _loads(function: ast.FunctionDef) -> bool:
    return any(called(call) == "load" for call in _calls(function))


@dataclass
class Pointers:
    """The parameters that addresses of a function start from. `known`: which are pointers, if that is known."""

    function: ast.FunctionDef
    constexprs: Names
    known: Names | None

    def __post_init__(self) -> None:
        arguments = self.function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters = frozenset(each.arg for each in every) - self.constexprs
        self.parameters = parameters if self.known is None else parameters & self.known
        self.loads_addresses = False
        self.definitions: dict[str, list[ast.expr]] = {}
        for statement in inside(self.function.body):
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._define(target, statement.value)
            elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
                self._define(statement.target, statement.value)
        self.loads_addresses = any(map(self._casts_to_pointer, ast.walk(self.function)))

    def _casts_to_pointer(self, node: ast.AST) -> bool:
        """Whether numbers become pointers by an expression: `tl.pointer_type(...)`, `.to(x_ptr.dtype)`."""
        if isinstance(node, ast.Attribute):
            return node.attr in ("pointer_type", "PointerType")
        kinds = node.args if isinstance(node, ast.Call) and called(node) == "to" else []
        return any(
            isinstance(each, ast.Attribute) and each.attr == "dtype" and self.roots(each.value) for each in kinds
        )

    def _define(self, target: ast.expr, value: ast.expr) -> None:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(parts) else [value] * len(parts)
        for part, each in zip(parts, values, strict=True):
            if isinstance(part, ast.Name):
                self.definitions.setdefault(part.id, []).append(each)

    def roots(self, address: ast.expr, seen: Names = NONE) -> Names:
        """The parameters that an address is an offset from; a loaded one is where its table is, if any is loaded."""
        match address:
            case ast.Name(id=name):
                if name in seen:
                    return NONE
                own = frozenset({name}) & self.parameters
                return own.union(*(self.roots(each, seen | {name}) for each in self.definitions.get(name, ())))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self.roots(left, seen) | self.roots(right, seen)
            case ast.IfExp(body=body, orelse=orelse):
                return self.roots(body, seen) | self.roots(orelse, seen)
            case ast.Subscript(value=value):
                return self.roots(value, seen)
            case ast.Call(func=function, args=arguments) if called(address) != "load" or self.loads_addresses:
                parts = [function.value, *arguments] if isinstance(function, ast.Attribute) else arguments
                return NONE.union(*(self.roots(each, seen) for each in parts))
        return NONE
