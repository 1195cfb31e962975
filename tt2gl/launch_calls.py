"""The calls in a file's host code that launch its kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from tt2gl.qualified_names import walk


@dataclass(frozen=True, eq=False)
class LaunchCall:
    """`kernel[grid](...)`, `kernel.run(..., grid=...)` or `kernel.warmup(..., grid=...)` in host code."""

    kernel: str
    node: cst.Call
    line: int
    column: int
    grid: cst.BaseExpression | None
    positional: tuple[cst.BaseExpression, ...]
    keywords: Mapping[str, cst.BaseExpression]
    starred: bool
    """Whether `*args` or `**kwargs` hides further arguments."""


class _LaunchCalls:
    """Collects launches; a simple alias (`k = kernel`) anywhere in the file counts as the kernel."""

    def __init__(self, names: Iterable[str]) -> None:
        self.kernels = {name: name for name in names}
        self.calls: list[tuple[str, cst.Call, cst.BaseExpression | None]] = []

    def read(self, node: cst.CSTNode) -> None:
        """Take in a node, after what stands before it in the text."""
        if isinstance(node, cst.Assign):
            self._assignment(node)
        elif isinstance(node, cst.Call):
            self._call(node)

    def _assignment(self, node: cst.Assign) -> None:
        kernel = self._kernel(node.value)
        if kernel is not None:
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.kernels.setdefault(target.target.value, kernel)

    def _call(self, node: cst.Call) -> None:
        func = node.func
        if isinstance(func, cst.Subscript):
            kernel = self._kernel(func.value)
            if kernel is not None:
                self.calls.append((kernel, node, _grid(func)))
        elif isinstance(func, cst.Attribute) and func.attr.value in ("run", "warmup"):
            kernel = self._kernel(func.value)
            if kernel is not None:
                grid = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "grid"]
                self.calls.append((kernel, node, grid[0] if grid else None))

    def _kernel(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, cst.Name):
            return self.kernels.get(node.value)
        if isinstance(node, cst.Attribute):  # a kernel kept in a class: Op.kernel, self.kernel
            return node.attr.value if node.attr.value in self.kernels.values() else None
        return None


def _grid(node: cst.Subscript) -> cst.BaseExpression | None:
    values = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    if len(values) == 1 and not isinstance(node.slice[0].comma, cst.Comma):
        return values[0]
    return cst.Tuple([cst.Element(value) for value in values]) if values else None


def launch_calls(wrapper: MetadataWrapper, kernels: Iterable[str]) -> tuple[LaunchCall, ...]:
    """Every launch of those kernels of a file, in order of the text."""
    found = _LaunchCalls(kernels)
    for node in walk(wrapper.module):
        found.read(node)
    if not found.calls:
        return ()
    positions = wrapper.resolve(PositionProvider)
    calls = []
    for kernel, node, grid in found.calls:
        start = positions[node].start
        keywords = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        calls.append(
            LaunchCall(
                kernel=kernel,
                node=node,
                line=start.line,
                column=start.column,
                grid=grid,
                positional=tuple(arg.value for arg in node.args if arg.keyword is None and not arg.star),
                keywords=keywords,
                starred=any(arg.star for arg in node.args),
            )
        )
    return tuple(calls)
