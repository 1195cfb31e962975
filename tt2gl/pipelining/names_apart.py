"""A name for each of the things that the author calls alike, where Gluon would have a loop carry one into the other.

    for i in range(0, n, BLOCK):
        y = y_slots[0]                       # a slot of memory
        s = mma_v2(x, y.load(rhs_layout), s)
    for i in range(0, n, BLOCK):
        y = gl.load(y_ptrs)                  # a tile in registers, as the author calls it in both loops
        ...
    for i in range(0, n, BLOCK):
        y_2 = gl.load(y_ptrs)                # after

A name that is bound above a loop and in it is carried from iteration to iteration, with one type and one layout, read
or not. Triton finds layouts later, and drops what nothing reads; here the two would have to be alike. What does not
compile for it says so, and is told apart: assignments belong to one thing where some read may follow either of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.reaching import assigned_in, reads_after, together
from tt2gl.trees import functions_in, nodes_in, python_tree

_CARRIED = re.compile(r":(\d+):\d+: .*[Ll]oop[- ]carried variable (\w+)")


def carried_otherwise(error: str, text: str) -> tuple[str, str] | None:
    """The function of a text and the name there that a loop carries as two things, if the compiler says so of it."""
    said = _CARRIED.search(error)
    if said is None:
        return None
    line, name = int(said[1]), said[2]
    for function in functions_in(python_tree(text)):
        if function.lineno <= line <= (function.end_lineno or line):
            return (function.name, name) if len(_things(function, name)) > 1 else None
    return None


def with_names_apart(text: str, names: Mapping[str, Collection[str]]) -> str:
    """The text with these names of functions told apart, all but the first thing of each numbered."""
    if not names:
        return text
    return in_functions(text, names, lambda places, function: _edits(places, function, names[function.name]))


def _edits(places: Places, function: ast.FunctionDef, names: Collection[str]) -> Iterator[Edit]:
    taken = {node.id for node in nodes_in(function) if isinstance(node, ast.Name)}
    taken |= {argument.arg for argument in function.args.args}
    for name in sorted(names):
        for thing in _things(function, name)[1:]:
            own = claimed(f"{name}_2", taken)
            yield from (Edit(*places.of(node), own) for node in thing)


def _things(function: ast.FunctionDef, name: str) -> list[list[ast.Name]]:
    """The assignments to a name with their reads, thing by thing; none where that cannot be said."""
    statements = sorted(assigned_in(function.body, name), key=_place)
    if not all(isinstance(statement, ast.Assign) for statement in statements):
        return []
    nodes = {
        statement: [n for n in nodes_in(statement) if isinstance(n, ast.Name) and n.id == name and _stores(n)]
        for statement in statements
    }
    stored = {id(node) for own in nodes.values() for node in own}
    if any(isinstance(n, ast.Name) and n.id == name and _stores(n) and id(n) not in stored for n in nodes_in(function)):
        return []
    groups: list[list[ast.stmt]] = []
    for read, after in reads_after(function.body, name, frozenset()):
        if not after:
            return []
        groups.append(sorted(after, key=_place))
        nodes[groups[-1][0]].append(read)
    things = together(statements, groups)
    found = {id(thing): thing for thing in things.values()}
    return [[node for each in statements if each in thing for node in nodes[each]] for thing in found.values()]


def _place(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def _stores(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


__all__ = ["carried_otherwise", "with_names_apart"]
