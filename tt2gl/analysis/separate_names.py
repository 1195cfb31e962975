"""Names that stand for several tensors of pointers, one after the other, told apart.

    ptrs = scales_ptr + cols      # `ptrs` is one thing up to here
    scales = tl.load(ptrs)
    ptrs = zeros_ptr + cols       # and another from here on: each may be offsets from a pointer of its own
    zeros = tl.load(ptrs)

Assignments belong to one thing where some read may come after either of them, as after both arms of a branch.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from tt2gl.analysis.addresses import pointer_kinds
from tt2gl.analysis.offset_ranges import Body, definitions_of
from tt2gl.pipelining.flow import blocks
from tt2gl.trees import nodes_in


def tell_apart(body: Body) -> None:
    """Give each such thing a name of its own in the tree of a function; `authors` says what the author calls it."""
    made = {name: found for name in body.definitions if (found := _assignments(body, name)) is not None}
    if not made:
        return
    taken = {node.id for node in nodes_in(body.tree) if isinstance(node, ast.Name)} | set(body.arguments)
    called: dict[tuple[int, int], str] = {}
    for name, found in made.items():
        for number, nodes in enumerate(found[1:], start=2):
            own = f"{name}_{number}"
            while own in taken:
                own += "_"
            taken.add(own)
            body.authors[own] = name
            called |= {(node.lineno, node.col_offset): own for node in nodes}
    body.tree = copy.deepcopy(body.tree)
    for node in nodes_in(body.tree):
        if isinstance(node, ast.Name):
            node.id = called.get((node.lineno, node.col_offset), node.id)
    body.definitions = definitions_of(body.tree)


def _assignments(body: Body, name: str) -> list[list[ast.Name]] | None:
    """The assignments to a name, each with its reads; None where they are not to be told apart."""
    statements = [definition.statement for definition in body.definitions[name]]
    if len(statements) < 2 or name in body.arguments:
        return None
    targets: dict[ast.stmt, list[ast.Name]] = {}
    reached = False
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                kinds = pointer_kinds(body, value)
                reached |= kinds == {"tensor"}
                if kinds - {"tensor"}:
                    return None
                targets[statement] = [target]
            case _:
                return None
    things = {statement: {statement} for statement in targets}
    for read, after in _reads(body.tree.body, name, frozenset()):
        if not after or not after <= targets.keys():
            return None
        first, *others = after
        targets[first].append(read)
        for other in others:
            if things[other] is not things[first]:
                things[first] |= things[other]
                things |= dict.fromkeys(things[other], things[first])
    found = {id(thing): thing for thing in things.values()}
    apart = [[node for each in targets if each in thing for node in targets[each]] for thing in found.values()]
    return apart if reached and len(apart) > 1 else None


def _reads(
    block: Sequence[ast.stmt], name: str, before: frozenset[ast.stmt]
) -> Iterator[tuple[ast.Name, frozenset[ast.stmt]]]:
    """The reads of a name in a block, each with the assignments it may come after; `before`: those at the start."""
    for statement in block:
        inner = list(blocks(statement))
        inside = {id(node) for part in inner for each in part for node in nodes_in(each)}
        # In any iteration but the first, a loop's own have been there.
        entered = before | _assigned([statement], name) if isinstance(statement, ast.For | ast.While) else before
        for node in nodes_in(statement):
            if not isinstance(node, ast.Name) or node.id != name or id(node) in inside:
                continue
            if isinstance(node.ctx, ast.Load):
                yield node, entered
        for part in inner:
            yield from _reads(part, name, entered)
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
    own = _assigned([statement], name)
    return before | own if list(blocks(statement)) else own or before


def _assigned(block: Sequence[ast.stmt], name: str) -> frozenset[ast.stmt]:
    """The innermost statements of a block that assign to a name."""
    found = frozenset[ast.stmt]()
    for statement in block:
        inner = list(blocks(statement))
        for part in inner:
            found |= _assigned(part, name)
        names = (node for node in nodes_in(statement) if isinstance(node, ast.Name) and node.id == name)
        if not inner and any(isinstance(node.ctx, ast.Store) for node in names):
            found |= {statement}
    return found


__all__ = ["tell_apart"]
