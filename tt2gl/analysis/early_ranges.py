"""Rule `hoist` on AMD: a range that is made again behind a loop is made before it, in the layout wanted behind it.

    offs_m = pid * BLOCK + gl.arange(0, BLOCK, layout=layout)                  # before
    for k in range(0, K, BLOCK_K):
        ...
    offs_cm = pid * BLOCK + gl.arange(0, BLOCK, layout=mma_slice)

    offs_m = pid * BLOCK + gl.arange(0, BLOCK, layout=layout)                  # after
    offs_cm_range = gl.arange(0, BLOCK, layout=mma_slice)
    for k in range(0, K, BLOCK_K):
        ...
    offs_cm = pid * BLOCK + offs_cm_range

Triton's CSE pass makes one of equal ranges, where the first of them is, and what needs it in another layout gets it
there. LLVM's scheduler for AMD looks at the registers of the whole kernel: with the range behind the loop, that of a
matmul of unaligned tiles on gfx950 waits 41 times a step where Triton's waits 17 times, and takes 131 registers for
126. Ranges that were made in that layout before stay where they are: the compiler makes one of them by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set

from tt2gl.analysis.hoisting import Loop, is_loop, made_before, ranges_in, stored
from tt2gl.analysis.statics import position_of
from tt2gl.plan import FunctionPlan, Position
from tt2gl.trees import nodes_in

_Known = Mapping[str, tuple[Position, ...]]
"""Where ranges are made that are there for what follows, by what they are called with."""


def made_early(plan: FunctionPlan, function: ast.FunctionDef) -> FunctionPlan:
    """The plan with ranges that are made again behind loops made before the first of those."""
    search = _Search(_layouts(plan))
    search.visit(function.body, {})
    return made_before(plan, function, search.found, search.behind)


def _layouts(plan: FunctionPlan) -> dict[Position, set[str]]:
    """The layouts that each call is made in."""
    found: dict[Position, set[str]] = {}
    for edits in (plan.edits, *(copy for copies in plan.copies.values() for copy in copies)):
        for position, layout in edits.creations.items():
            found.setdefault(position, set()).add(layout)
    return found


class _Search:
    """Finds ranges that are made again, and the statements behind loops that they stand in."""

    def __init__(self, layouts: Mapping[Position, Set[str]]) -> None:
        self.layouts = layouts
        self.found: dict[Position, tuple[Loop, ast.Call, str]] = {}
        self.behind: list[ast.stmt] = []

    def visit(self, block: Sequence[ast.stmt], known: _Known) -> None:
        first, changed = None, set[str]()
        for statement in block:
            if is_loop(statement):
                first = first or statement
            elif first is not None:
                self._behind(statement, first, {of: at for of, at in known.items() if not _names(of) & changed})
            else:
                for inner in ("body", "orelse"):
                    self.visit(getattr(statement, inner, ()), known)
                if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
                    known = _with(known, statement)
            if first is not None:
                changed |= stored(statement)

    def _behind(self, statement: ast.stmt, first: Loop, known: _Known) -> None:
        self.behind.append(statement)
        for label, call in ranges_in(statement):
            position, places = position_of(call), known.get(_made_of(call), ())
            before = {layout for place in places for layout in self.layouts.get(place, ())}
            if places and not self.layouts.get(position, set()) <= before:
                self.found[position] = first, call, label


def _with(known: _Known, statement: ast.stmt) -> _Known:
    """What is known behind a statement."""
    for _, call in ranges_in(statement):
        known = {**known, _made_of(call): (*known.get(_made_of(call), ()), position_of(call))}
    return {of: places for of, places in known.items() if not stored(statement) & _names(of)}


def _made_of(call: ast.Call) -> str:
    return ", ".join(map(ast.unparse, (*call.args, *call.keywords)))


def _names(of: str) -> set[str]:
    return {node.id for node in nodes_in(ast.parse(f"f({of})")) if isinstance(node, ast.Name)}
