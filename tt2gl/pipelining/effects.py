"""What calls in kernels do besides computing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tt2gl.pipelining.static import called
from tt2gl.trees import nodes_in

_BUILTINS = {"abs", "bool", "float", "int", "len", "max", "min", "range", "tuple"}

# Functions that must not be done early, or that are not worth doing twice.
_EXPENSIVE = {"dot", "dot_scaled", "sort", "histogram"}
_OPAQUE = {"inline_asm_elementwise", "device_print", "debug_barrier"}


_WRITES = {"store", "scatter", "store_tensor_descriptor"}


def _writes_memory(name: str) -> bool:
    return name in _WRITES or name.startswith("atomic_") or name.endswith(("_store", "_scatter"))


@dataclass
class Effects:
    """What calls do, those of jit functions by what their bodies do.

    `helpers`: the functions known, by name. `others`: names that the file has for Triton's own functions.
    """

    helpers: Mapping[str, ast.FunctionDef]
    others: Mapping[str, str] = field(default_factory=dict)
    _pure: dict[str, bool] = field(default_factory=dict)
    _writing: dict[str, bool] = field(default_factory=dict)
    _ordering: dict[str, bool] = field(default_factory=dict)

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
        calls = [node for node in nodes_in(statement) if isinstance(node, ast.Call)]
        return not any(self.trouble(call) or called(call) == "load" for call in calls)

    def _is_pure(self, name: str) -> bool:
        if name not in self._pure:
            helper = self.helpers.get(name)
            # A function that calls itself does not compile.
            self._pure[name] = False
            if helper is not None and any(map(_is_constexpr_function, helper.decorator_list)):
                self._pure[name] = True
            elif helper is not None:
                self._pure[name] = not any(self.trouble(call) for call in _calls(helper)) and not _loads(helper)
        return self._pure[name]

    def written(self, node: ast.Call) -> Iterator[ast.expr]:
        """The addresses that a call may write to; of a descriptor or a pointer whose method it is, that."""
        name, of_the_file = self._named(node), isinstance(node.func, ast.Name) and node.func.id not in self.others
        if not of_the_file and _writes_memory(name):
            yield from [node.func.value] if isinstance(node.func, ast.Attribute) else []
            yield from node.args[:1]
            yield from (each.value for each in node.keywords if each.arg in ("pointer", "desc"))
        if not of_the_file and name == "inline_asm_elementwise" and not _is_pure_assembly(node):
            yield from node.args[2:3]
            yield from (each.value for each in node.keywords if each.arg == "args")
        unknown = of_the_file and name not in _BUILTINS and name not in self.helpers
        if unknown or self._some_call(name, self._writing, lambda call: any(self.written(call))):
            yield from node.args
            yield from (each.value for each in node.keywords)

    def orders(self, node: ast.Call) -> bool:
        """Whether a call makes other programs' accesses seen, so that loads must stay behind it."""
        name = self._named(node)
        own = name in ("debug_barrier", "atomic_cas", "atomic_xchg")
        return own or self._some_call(name, self._ordering, self.orders)

    def _some_call(self, name: str, known: dict[str, bool], holds: Callable[[ast.Call], bool]) -> bool:
        """Whether something holds of a call in the helper of that name, if there is one; `known`: of which it does."""
        if name not in known:
            # A function that calls itself does not compile; one named as what it calls asks of that.
            known[name] = False
            helper = self.helpers.get(name)
            known[name] = helper is not None and any(map(holds, _calls(helper)))
        return known[name]

    def _named(self, node: ast.Call) -> str:
        """The last of a function's own names."""
        return self.others.get(node.func.id, node.func.id) if isinstance(node.func, ast.Name) else called(node)


def _is_pure_assembly(node: ast.Call) -> bool:
    """Whether inline assembly is said to do nothing but compute."""
    said = [*node.args[4:5], *(each.value for each in node.keywords if each.arg == "is_pure")]
    return any(isinstance(each, ast.Constant) and each.value is True for each in said)


def _is_constexpr_function(decorator: ast.expr) -> bool:
    """Whether a decorator has the compiler call the function."""
    return ast.unparse(decorator).rpartition(".")[2] == "constexpr_function"


def _calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """The calls that a kernel makes where it calls a function: of those that the compiler calls, none."""
    if any(map(_is_constexpr_function, function.decorator_list)):
        return iter(())
    return (node for statement in function.body for node in nodes_in(statement) if isinstance(node, ast.Call))


def _loads(function: ast.FunctionDef) -> bool:
    return any(called(call) == "load" for call in _calls(function))


def own_names(tree: ast.Module) -> dict[str, str]:
    """What functions of Triton's that a file imports are called, by what it calls them."""
    found = (node for node in nodes_in(tree) if isinstance(node, ast.ImportFrom))
    ours = (node for node in found if (node.module or "").partition(".")[0] == "triton")
    return {each.asname or each.name: each.name for node in ours for each in node.names}
