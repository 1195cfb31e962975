"""The calls in a file's host code that launch its kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class LaunchCall:
    """`kernel[grid](...)`, `kernel.run(..., grid=...)` or `kernel.warmup(..., grid=...)` in host code.

    `line` counts from 1, `column` from 0 in UTF-8 bytes, as `ast` counts.
    """

    kernel: str
    line: int
    column: int


class _LaunchCalls(ast.NodeVisitor):
    """Collects launches; a simple alias (`k = kernel`) anywhere in the file counts as the kernel."""

    def __init__(self, names: Iterable[str]) -> None:
        self.kernels = {name: name for name in names}
        self.calls: list[LaunchCall] = []

    def visit_Assign(self, node: ast.Assign) -> None:
        """Take in an alias, before what follows it in the text."""
        kernel = self._kernel(node.value)
        if kernel is not None:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.kernels.setdefault(target.id, kernel)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Take in a launch."""
        func, kernel = node.func, None
        if isinstance(func, ast.Subscript) or (isinstance(func, ast.Attribute) and func.attr in ("run", "warmup")):
            kernel = self._kernel(func.value)
        if kernel is not None:
            self.calls.append(LaunchCall(kernel, node.lineno, node.col_offset))
        self.generic_visit(node)

    def _kernel(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            return self.kernels.get(node.id)
        if isinstance(node, ast.Attribute):  # a kernel kept in a class: Op.kernel, self.kernel
            return node.attr if node.attr in self.kernels.values() else None
        return None


def launch_calls(tree: ast.Module, kernels: Iterable[str]) -> tuple[LaunchCall, ...]:
    """Every launch of those kernels of a file, in order of the text."""
    found = _LaunchCalls(kernels)
    found.visit(tree)
    return tuple(found.calls)


def other_names(tree: ast.Module, kernels: Iterable[str]) -> dict[str, str]:
    """What else the file itself calls its jit functions, by the other name: `twice = add` outside of functions."""
    names = {name: name for name in kernels}
    waiting: list[ast.stmt] = [*reversed(tree.body)]
    while waiting:
        match waiting.pop():
            case ast.Assign(targets=targets, value=ast.Name(id=name)) if name in names:
                for target in targets:
                    if isinstance(target, ast.Name):
                        names.setdefault(target.id, names[name])
            case ast.If(body=body, orelse=orelse) | ast.Try(body=body, orelse=orelse):
                waiting += [*reversed(orelse), *reversed(body)]
    return {other: name for other, name in names.items() if other != name}
