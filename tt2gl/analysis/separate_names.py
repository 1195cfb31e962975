"""Names that stand for several pointers, scalar ones or tensors, one after the other, told apart.

    ptrs = scales_ptr + cols      # `ptrs` is one thing up to here
    scales = tl.load(ptrs)
    ptrs = zeros_ptr + cols       # and another from here on: each may be offsets from a pointer of its own
    zeros = tl.load(ptrs)

Assignments belong to one thing where some read may come after either of them, as after both arms of a branch. One that
no read comes after is left out, as of `ptrs = out_ptr + cols if KEEP else None` above `ptrs = out_ptr + cols`.

And what is a pointer up to where what it points to gets its name, a parameter too: `bias = tl.load(bias + cols)`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection

from tt2gl.analysis.addresses import pointer_kinds
from tt2gl.analysis.offset_ranges import Body, definitions_of
from tt2gl.analysis.statics import position_of
from tt2gl.reaching import reads_after, together
from tt2gl.trees import nodes_in


def tell_apart(body: Body) -> None:
    """Give each such thing a name of its own in the tree of a function; `authors` says what the author calls it."""
    made = {name: found for name in body.definitions if (found := _assignments(body, name)) is not None}
    for name in body.arguments:
        if nodes := _loaded(body, name):
            made[name] = [[], nodes], set()
    if not made:
        return
    taken = {node.id for node in nodes_in(body.tree) if isinstance(node, ast.Name)} | set(body.arguments)
    called: dict[tuple[int, int], str] = {}
    gone = {(each.lineno, each.col_offset) for _, idle in made.values() for each in idle}
    for name, (things, _) in made.items():
        for number, nodes in enumerate(things[1:], start=2):
            own = f"{name}_{number}"
            while own in taken:
                own += "_"
            taken.add(own)
            body.authors[own] = name
            called |= {(node.lineno, node.col_offset): own for node in nodes}
    tree = _Without(gone).visit(copy.deepcopy(body.tree))
    assert isinstance(tree, ast.FunctionDef)
    body.tree = tree
    for node in nodes_in(body.tree):
        if isinstance(node, ast.Name):
            node.id = called.get((node.lineno, node.col_offset), node.id)
    body.definitions = definitions_of(body.tree)


class _Without(ast.NodeTransformer):
    """A tree without the assignments at these places."""

    def __init__(self, places: Collection[tuple[int, int]]) -> None:
        self.places = places

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if (node.lineno, node.col_offset) not in self.places:
            return node
        return ast.copy_location(ast.Pass(), node)


def _assignments(body: Body, name: str) -> tuple[list[list[ast.Name]], set[ast.stmt]] | None:
    """The assignments to a name, each with its reads, and those that serve none; None where it stays one thing."""
    statements = [definition.statement for definition in body.definitions[name]]
    if len(statements) < 2 or name in body.arguments:
        return None
    targets: dict[ast.stmt, list[ast.Name]] = {}
    kinds: dict[ast.stmt, set[str]] = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                kinds[statement] = pointer_kinds(body, value)
                targets[statement] = [target]
            case _:
                return None
    groups: list[frozenset[ast.stmt]] = []
    for read, after in reads_after(body.tree.body, name, frozenset()):
        if not after or not after <= targets.keys():
            return None
        targets[min(after, key=position_of)].append(read)
        groups.append(after)
    things = together(targets, groups)
    found = {id(thing): thing for thing in things.values()}
    apart = [[node for each in targets if each in thing for node in targets[each]] for thing in found.values()]
    unread = {each for each, nodes in targets.items() if len(nodes) == 1 and len(things[each]) == 1}
    idle = {each for each in unread if _stands_alone(body, each)}
    if any(len(set().union(*(kinds[each] for each in thing))) > 1 for thing in found.values() if not thing <= idle):
        return None
    kept = [nodes for thing, nodes in zip(found.values(), apart, strict=True) if not thing <= idle]
    reached = any(of & {"tensor", "scalar"} for of in kinds.values())
    return (kept, idle) if kept and reached and len(apart) > 1 else None


def _loaded(body: Body, name: str) -> list[ast.Name]:
    """Where a parameter that is a pointer is no pointer any more, but has what was loaded; nothing if that is open."""
    found: list[ast.Name] = []
    assigned: set[ast.stmt] = set()
    for definition in body.definitions.get(name, ()):
        match definition.statement:
            case ast.Assign(targets=[ast.Name() as target], value=value) if pointer_kinds(body, value) <= {"other"}:
                found.append(target)
                assigned.add(definition.statement)
            case _:
                return []
    is_pointer = False
    for read, after in reads_after(body.tree.body, name, frozenset()) if found else ():
        kinds = pointer_kinds(body, read)
        if after & assigned and kinds <= {"other"}:
            found.append(read)
        elif after & assigned:
            return []
        else:
            is_pointer |= kinds == {"scalar"}
    return found if is_pointer else []


def _stands_alone(body: Body, statement: ast.stmt) -> bool:
    """Whether an assignment computes alone, of pointers that nothing takes away: parameters of the function."""
    names = [node for node in nodes_in(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    pointers = {node.id for node in names if pointer_kinds(body, node) - {"other"}}
    return pointers <= set(body.arguments) and not any(isinstance(node, ast.Call) for node in nodes_in(statement))


__all__ = ["tell_apart"]
