"""Rule `hoist`: a range that a loop makes on every turn is made once, before it.

Triton's LICM pass moves ranges out of loops; Gluon runs none, and what LLVM hoists later leaves ptxas with a worse
schedule: with the range inside, the first of two loads is used before the second is issued (column sum, H200:
135 us against 85 us).

    for start in range(0, N, BLOCK):                                   # before
        cols = start + gl.arange(0, BLOCK, layout=layout)

    cols_range = gl.arange(0, BLOCK, layout=layout)                    # after
    for start in range(0, N, BLOCK):
        cols = start + cols_range

A range under a condition stays where it is if its layout is a helper's parameter, which is None at calls that do not
get there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from tt2gl.analysis.statics import position_of
from tt2gl.names import unused
from tt2gl.plan import Edits, FunctionPlan, Hoist, Position
from tt2gl.trees import nodes_in

Loop = ast.For | ast.While
Ranges = Mapping[Position, tuple[Loop, ast.Call, str]]
"""Calls of `arange`, each with the loop that it goes before and the name that its statement defines."""


def hoisted(plan: FunctionPlan, function: ast.FunctionDef) -> FunctionPlan:
    """The plan with the ranges of its loops made before them."""
    loops = _loops(function)
    ranges = {
        position_of(call): (first, call, label)
        for loop, first in loops.items()
        for label, call in ranges_in(loop)
        if not (stored(loop) | stored(first)) & {node.id for node in nodes_in(call) if isinstance(node, ast.Name)}
    }
    return made_before(plan, function, ranges, loops)


def made_before(
    plan: FunctionPlan, function: ast.FunctionDef, ranges: Ranges, around: Iterable[ast.stmt]
) -> FunctionPlan:
    """The plan with these ranges, which stand in the statements `around`, made before their loops."""
    if not ranges:
        return plan
    work = _Hoisting(ranges, around, {node.id for node in nodes_in(function) if isinstance(node, ast.Name)}, plan)
    edits = work.apply(plan.edits)
    copies = {statement: tuple(work.apply(copy) for copy in each) for statement, each in plan.copies.items()}
    made = {start: tuple(steps) for start, steps in work.made.items()}
    return replace(plan, edits=edits, copies=copies, hoists=made)


def is_loop(node: ast.stmt) -> TypeGuard[Loop]:
    """Whether the compiler sees a statement as a loop."""
    return isinstance(node, ast.While) or isinstance(node, ast.For) and "static_range" not in ast.unparse(node.iter)


def _loops(function: ast.FunctionDef) -> dict[Loop, Loop]:
    """The outermost loops that the compiler sees as loops, each with the first one of its block."""
    found: dict[Loop, Loop] = {}

    def visit(block: Sequence[ast.stmt]) -> None:
        first: Loop | None = None
        for node in block:
            if is_loop(node):
                first = first or node
                found[node] = first
            else:
                for inner in ("body", "orelse"):
                    visit(getattr(node, inner, ()))

    visit(function.body)
    return found


class _Hoisting:
    def __init__(self, ranges: Ranges, around: Iterable[ast.stmt], taken: Collection[str], plan: FunctionPlan) -> None:
        self.ranges = ranges
        self.made: dict[tuple[int, int], list[Hoist]] = {start: list(steps) for start, steps in plan.hoists.items()}
        self.taken = {*taken, *(step.name for steps in plan.hoists.values() for step in steps)}
        self.parameters = plan.parameters
        branches = [node for statement in around for node in nodes_in(statement) if isinstance(node, ast.If)]
        self.conditional = {position_of(call) for branch in branches for _, call in ranges_in(branch)}

    def apply(self, edits: Edits) -> Edits:
        """Replace the ranges that these edits give a layout."""
        replaced = dict(edits.replaced)
        for position, layout in edits.creations.items():
            if position in replaced or position in self.conditional and self._is_given(layout):
                continue
            if position in self.ranges and layout != "gl.AutoLayout()":
                loop, call, label = self.ranges[position]
                arguments = ", ".join(ast.unparse(argument) for argument in (*call.args, *call.keywords))
                source = f"gl.arange({arguments}, layout={layout})"
                replaced[position] = self._name((loop.lineno, loop.col_offset), source, label, layout)
        return replace(edits, replaced=replaced)

    def _is_given(self, layout: str) -> bool:
        """Whether a layout is one that callers give."""
        return bool(set(re.findall(r"\w+", layout)) & set(self.parameters))

    def _name(self, loop: tuple[int, int], source: str, label: str, layout: str) -> str:
        """The name of a range before a loop: one for each that differs, which a second one has from its layout."""
        steps = self.made.setdefault(loop, [])
        known = next((step.name for step in steps if step.source == source), None)
        if known is not None:
            return known
        name = f"{label}_range"
        if name in self.taken and (of := re.search(r"(\w+)_layout\b", layout)) is not None:
            name = f"{label}_{of[1]}_range"
        name = unused(name, self.taken)
        self.taken.add(name)
        steps.append(Hoist(name, source))
        return name


def ranges_in(loop: ast.stmt) -> list[tuple[str, ast.Call]]:
    """Calls of `arange` in a loop or branch, with the name that their statement defines."""
    found: list[tuple[str, ast.Call]] = []
    for statement in nodes_in(loop):
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.AugAssign):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        label = target.id if isinstance(target, ast.Name) else "index"
        for node in nodes_in(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "arange":
                found.append((label, node))
    return found


def stored(loop: ast.stmt) -> set[str]:
    """The names that a statement assigns."""
    return {node.id for node in nodes_in(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
