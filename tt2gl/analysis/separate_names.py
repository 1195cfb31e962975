"""Names that stand for several tensors of pointers, one after the other, told apart.

    ptrs = scales_ptr + cols      # `ptrs` is one thing up to here
    scales = tl.load(ptrs)
    ptrs = zeros_ptr + cols       # and another from here on: each may be offsets from a pointer of its own
    zeros = tl.load(ptrs)

It is so where each read comes after one assignment alone, in its own block or in one around it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from tt2gl.analysis.addresses import pointer_kinds
from tt2gl.analysis.offset_ranges import Body, definitions_of
from tt2gl.pipelining.flow import blocks


def tell_apart(body: Body) -> None:
    """Give each such thing a name of its own in the tree of a function; `authors` says what the author calls it."""
    made = {name: found for name in body.definitions if (found := _assignments(body, name)) is not None}
    if not made:
        return
    taken = {node.id for node in ast.walk(body.tree) if isinstance(node, ast.Name)} | set(body.arguments)
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
    for node in ast.walk(body.tree):
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
    for read, last in _reads(body.tree.body, name):
        if last not in targets:
            return None
        targets[last].append(read)
    return list(targets.values()) if reached else None


def _reads(
    block: Sequence[ast.stmt], name: str, last: ast.stmt | None = None
) -> Iterator[tuple[ast.Name, ast.stmt | None]]:
    """The reads of a name in a block, each with the `last` assignment before it; none where that is not one alone."""
    for statement in block:
        inner = list(blocks(statement))
        inside = {id(node) for part in inner for each in part for node in ast.walk(each)}
        named = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name]
        assigned = any(isinstance(node.ctx, ast.Store) for node in named)
        entered = None if inner and assigned and isinstance(statement, ast.For | ast.While) else last
        for node in named:
            if isinstance(node.ctx, ast.Load) and id(node) not in inside:
                yield node, entered
        for part in inner:
            yield from _reads(part, name, entered)
        if assigned:
            last = statement if not inner else None


__all__ = ["tell_apart"]
