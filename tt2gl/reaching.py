"""Which assignments to a name a read of it may come after, in Python's own tree of a function."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from tt2gl.trees import blocks, nodes_in


def reads_after(
    block: Sequence[ast.stmt], name: str, before: frozenset[ast.stmt]
) -> Iterator[tuple[ast.Name, frozenset[ast.stmt]]]:
    """The reads of a name in a block, each with the assignments it may come after; `before`: those at the start."""
    for statement in block:
        inner = list(blocks(statement))
        inside = {id(node) for part in inner for each in part for node in nodes_in(each)}
        # In any iteration but the first, a loop's own have been there.
        entered = before | assigned_in([statement], name) if isinstance(statement, ast.For | ast.While) else before
        for node in nodes_in(statement):
            if not isinstance(node, ast.Name) or node.id != name or id(node) in inside:
                continue
            if isinstance(node.ctx, ast.Load):
                yield node, entered
        for part in inner:
            yield from reads_after(part, name, entered)
        before = _after(statement, name, before)


def _after(statement: ast.stmt, name: str, before: frozenset[ast.stmt]) -> frozenset[ast.stmt]:
    """The assignments to a name that what follows a statement may come after."""
    if isinstance(statement, ast.If):
        after = frozenset[ast.stmt]()
        for part in (statement.body, statement.orelse):
            made = before
            for each in part:
                made = _after(each, name, made)
            after |= made
        return after
    own = assigned_in([statement], name)
    return before | own if list(blocks(statement)) else own or before


def assigned_in(block: Sequence[ast.stmt], name: str) -> frozenset[ast.stmt]:
    """The innermost statements of a block that assign to a name."""
    found = frozenset[ast.stmt]()
    for statement in block:
        inner = list(blocks(statement))
        for part in inner:
            found |= assigned_in(part, name)
        names = (node for node in nodes_in(statement) if isinstance(node, ast.Name) and node.id == name)
        if not inner and any(isinstance(node.ctx, ast.Store) for node in names):
            found |= {statement}
    return found


def together(statements: Iterable[ast.stmt], groups: Iterable[Collection[ast.stmt]]) -> dict[ast.stmt, set[ast.stmt]]:
    """The statements that each of these belongs with: those of a group do, and so do groups that meet."""
    things = {statement: {statement} for statement in statements}
    for first, *others in groups:
        for other in others:
            if things[other] is not things[first]:
                things[first] |= things[other]
                things |= dict.fromkeys(things[other], things[first])
    return things


__all__ = ["assigned_in", "reads_after", "together"]
