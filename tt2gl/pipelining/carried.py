"""Values that loads are started by and that their iteration reads, too: loaded once, and carried until then.

    idx = gl.load(table + k)                               # in the iteration, and again for the one ahead

    idx_held = ()                                          # before the prologue, which adds one of each iteration
    idx = idx_held[0]                                      # in the iteration
    idx = gl.load(table + ahead, mask=more)                # where copies start
    idx_held = idx_held[1:] + (idx,)

Triton's pipeliner loads such a value where its copies start, and its loop carries it. Loaded a second time, it would be
waited for in the iteration: on NVIDIA right at its top, as a fence waits for all loads that were started before it. So
is what an iteration reads in another layout than its addresses (`loaded_again`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from tt2gl.pipelining.flow import blocks, inside, writes
from tt2gl.pipelining.loads import LOADS, is_marker
from tt2gl.pipelining.slices import Slice, is_constexpr
from tt2gl.pipelining.static import called


def carried_values(loop: ast.For, parts: Slice) -> Mapping[ast.stmt, str]:
    """The statements of a loop's own block that load what both its parts need, with the names that they give it."""
    both = [each for each in loop.body if each in parts.taken & parts.kept and not is_constexpr(each)]
    return {each: name for each in both if (name := _name(each)) and _loads(each)}


def loaded_again(function: ast.FunctionDef, loop: ast.For, parts: Slice) -> frozenset[ast.stmt]:
    """The statements of a loop's own block that stay, and load what its addresses need in another layout.

    The memory being the same, they may be done ahead as those are.
    """
    bindings: dict[str, list[ast.stmt]] = {}
    for each in inside(function.body):
        for name in () if list(blocks(each)) else writes(each):
            bindings.setdefault(name, []).append(each)

    def alike(one: ast.AST, other: ast.AST) -> bool:
        """Whether two expressions are of the same values, but for their layouts."""
        if isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id != other.id:
            made = [bindings.get(name, []) for name in (one.id, other.id)]
            return all(len(each) == 1 and isinstance(each[0], ast.Assign) for each in made) and alike(
                *(value_of(each[0]) for each in made)
            )
        fields = [list(_fields(each)) for each in (one, other)]
        return type(one) is type(other) and len(fields[0]) == len(fields[1]) and all(map(_same_or(alike), *fields))

    ahead = [each for each in parts.taken if _name(each) and _loads(each)]
    return frozenset(
        each
        for each in loop.body
        if each in parts.kept - parts.taken and _name(each) and _loads(each)
        if any(alike(value_of(each), value_of(other)) for other in ahead)
    )


def _fields(node: ast.AST) -> Iterator[object]:
    """What a node is made of, without the layouts that it names."""
    if isinstance(node, ast.Call):
        yield node.func
        yield from node.args
        yield from (part for each in node.keywords if each.arg != "layout" for part in (each.arg, each.value))
        return
    for _, value in ast.iter_fields(node):
        yield from value if isinstance(value, list) else [value]


def _same_or(alike: Callable[[ast.AST, ast.AST], bool]) -> Callable[[object, object], bool]:
    def same(one: object, other: object) -> bool:
        if isinstance(one, ast.AST) and isinstance(other, ast.AST):
            return alike(one, other)
        return one == other

    return same


def value_of(statement: ast.stmt) -> ast.expr:
    """What an assignment gives its name."""
    assert isinstance(statement, ast.Assign)
    return statement.value


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _loads(statement: ast.stmt) -> bool:
    """Whether a simple statement loads something."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return not list(blocks(statement)) and any(called(each) in LOADS or is_marker(each) for each in calls)
