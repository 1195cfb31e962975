"""Constexprs that a launch call works out of what it passes as others.

    D = q.shape[-1]
    kernel[grid](q, HEAD_DIM=D, BLOCK_D=triton.next_power_of_2(D), PACKED=D // 8)

Whatever is guessed of `HEAD_DIM`, `BLOCK_D` and `PACKED` are as the call has them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from tt2gl.host.scopes import Scope
from tt2gl.infer.found import Known
from tt2gl.infer.kernel import Kernel

_DEPTH = 4


def worked_out(kernel: Kernel, known: Known, constexprs: Mapping[str, Any], free: Sequence[str]) -> dict[str, int]:
    """Of the constexprs in `free` those that were guessed as other integers than the launch call makes of others."""
    sizes = {name: value for name, value in constexprs.items() if type(value) is int}
    found: dict[str, int] = {}
    for _ in range(_DEPTH):  # what is made of one may be what another is made of
        made = _made(kernel, known, sizes | found, [name for name in free if name in sizes])
        if made.items() <= found.items():
            break
        found |= made
    return {name: value for name, value in found.items() if value != sizes[name]}


def _made(kernel: Kernel, known: Known, sizes: Mapping[str, int], free: Sequence[str]) -> dict[str, int]:
    """What the call makes of these sizes, for constexprs in `free`."""
    if known.scope is None:
        return {}
    said = {name: ast.unparse(known.arguments[name]) for name in sizes if name in known.arguments}
    passed: dict[str, int] = {}
    for name, text in said.items():
        if not isinstance(known.arguments[name], ast.Constant):
            passed[text] = max(sizes[name], passed.get(text, 0))
    found: dict[str, int] = {}
    for name in (name for name in free if name in said):
        others = {text: value for text, value in passed.items() if text != said[name]}
        written = _Written(others, known.scope).of(known.arguments[name])
        value = passed.get(said[name]) if written is None else kernel.value(written, known.scope)
        if type(value) is int and value > 0:
            found[name] = value
    return found


class _Written(ast.NodeTransformer):
    """Writes numbers for what is passed as others, and for locals what they are assigned."""

    def __init__(self, passed: Mapping[str, int], scope: Scope) -> None:
        self.passed = passed
        self.scope = scope
        self.depth = _DEPTH
        self.seen = False

    def of(self, node: ast.expr) -> ast.expr | None:
        """An expression so written, None where nothing of it is passed as another."""
        written = self.visit(copy.deepcopy(node))
        return ast.fix_missing_locations(written) if self.seen else None

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and (value := self.passed.get(ast.unparse(node))) is not None:
            self.seen = True
            return ast.copy_location(ast.Constant(value=value), node)
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        bound = self.scope.bindings.get(node.id, []) if node.id not in self.scope.parameters else []
        match [binding.node for binding in bound if not binding.path]:
            case [ast.Assign(value=value)] if len(bound) == 1 and self.depth:
                self.depth -= 1
                written = self.visit(copy.deepcopy(value))
                self.depth += 1
                return written
        return node
