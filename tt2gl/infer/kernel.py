"""A kernel in its file, and what its expressions come to for a launch."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tt2gl.host.evaluator import Evaluator
from tt2gl.host.scopes import Module, Scope
from tt2gl.host.values import Constexpr, External, Frame, Function, HostRaise, Undecided
from tt2gl.jit_functions import JitFunction, Parameter
from tt2gl.launches import DtypeValue, JitValue

Helpers = Callable[[ast.expr], tuple[ast.FunctionDef, "Helpers"] | None]
"""Finds the jit function that an expression names, and what finds those that it calls in turn."""

MISSING: Any = object()
"""Stands for a value that nobody knows."""

DTYPES: Mapping[str, str] = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32", "float64": "fp64",
    "double": "fp64", "int8": "i8", "int16": "i16", "int32": "i32", "int": "i32", "int64": "i64", "long": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1", "int1": "i1",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8e4nv": "fp8e4nv", "float8e5": "fp8e5",
    "float8e4b8": "fp8e4b8", "float8_e4m3fnuz": "fp8e4b8", "pi32_t": "*i32",
}  # fmt: skip
"""Triton's name for a dtype of torch's or of Triton's language."""


@dataclass(frozen=True)
class Kernel:
    """A jit function, its syntax tree, and the reading of the module that it is in."""

    fn: JitFunction
    node: ast.FunctionDef
    evaluator: Evaluator
    module: Module

    @property
    def names(self) -> list[str]:
        """The names of its parameters."""
        return [parameter.name for parameter in self.fn.parameters]

    @property
    def scope(self) -> Scope:
        """Where its definition stands."""
        return self.module.scopes[self.node]

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """The host value of an expression, MISSING where it cannot be told."""
        try:
            return self.evaluator.evaluate(node, Frame(scope))
        except (Undecided, HostRaise):
            return MISSING

    def helper(self, called: ast.expr, scope: Scope | None = None) -> tuple[ast.FunctionDef, Helpers] | None:
        """The function of the author's that a name in the kernel, or in `scope`, stands for, and what finds its own."""
        value = self.value(called, scope or self.scope)
        if not isinstance(value, Function) or not isinstance(value.node, ast.FunctionDef):
            return None
        return value.node, functools.partial(self.helper, scope=value.frame.scope)

    def default(self, parameter: Parameter) -> Any:
        """The default of a parameter as a launch holds it, MISSING where it has none that can be told."""
        if parameter.default is None:
            return MISSING
        return launch_value(self.value(ast.parse(parameter.default, mode="eval").body, self.scope))


def launch_value(value: Any) -> Any:
    """A host value as a launch holds it, MISSING where it holds none such."""
    match value:
        case Constexpr(inner):
            return launch_value(inner)
        case External(dotted):
            name = dotted.rpartition(".")[2]
            return DtypeValue(DTYPES[name]) if name in DTYPES else MISSING
        case Function():
            return JitValue(f"{value.path.stem}:{value.name}")
        case tuple() | list():
            items = tuple(launch_value(item) for item in value)
            return MISSING if any(item is MISSING for item in items) else items
        case bool() | int() | float() | str() | None:
            return value
    return MISSING
