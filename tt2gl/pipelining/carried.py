"""Values that loads are started by and that their iteration reads, too: loaded once, and carried until then.

    idx = gl.load(table + k)                               # in the iteration, and again for the one ahead

    idx_held = ()                                          # before the prologue, which adds one of each iteration
    idx = idx_held[0]                                      # in the iteration
    idx = gl.load(table + ahead, mask=more)                # where copies start
    idx_held = idx_held[1:] + (idx,)

Triton's pipeliner loads such a value where its copies start, and its loop carries it. Loaded a second time, it would be
waited for in the iteration: on NVIDIA right at its top, as a fence waits for all loads that were started before it. So
is what an iteration reads in another layout than its addresses (`loaded_again`).

Beside an asynchronous product a condition is carried, too, that is the mask of both: where it was only just compared,
the assembler puts the iteration's own loads behind the product's first instructions (a linear layer of 4-bit weights
took 0.76 of Triton's speed on an H200).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.pipelining.flow import Names, inside, writes
from tt2gl.pipelining.loads import LOADS, is_marker, needs
from tt2gl.pipelining.slices import Slice, is_constexpr
from tt2gl.pipelining.static import called, parameters
from tt2gl.trees import blocks, nodes_in

_ASYNCHRONOUS = "warpgroup_mma"
_OF_NUMBERS = ("cdiv", "max", "maximum", "min", "minimum", "num_programs", "program_id")


def carried_values(function: ast.FunctionDef, loop: ast.For, parts: Slice) -> Mapping[ast.stmt, str]:
    """The statements of a loop's own block that give what both its parts need, with the names that they give it."""
    both = {each: _name(each) for each in loop.body if each in parts.taken & parts.kept and not is_constexpr(each)}
    masks: set[str] = set()
    if any(isinstance(node, ast.Call) and called(node) == _ASYNCHRONOUS for node in nodes_in(loop)):
        masks = {mask.id for mask in _masks(parts.kept - parts.taken)}
    numbers = _Numbers(_bindings(function), writes(loop.target) | parameters(function))
    return {
        each: name
        for each, name in both.items()
        if name and (_loads(each) or name in masks and numbers.compared(value_of(each)))
    }


def _masks(statements: Collection[ast.stmt]) -> Iterator[ast.Name]:
    """The variables that are the masks of what statements load."""
    for node in (node for each in statements if _loads(each) for node in nodes_in(each)):
        if isinstance(node, ast.Call) and called(node) in LOADS and not is_marker(node):
            yield from (each for each in needs(node)[1:] if isinstance(each, ast.Name))


@dataclass(frozen=True)
class _Numbers:
    """Which expressions are of numbers alone. `bindings`: where names get their values; `known`: names of numbers."""

    bindings: Mapping[str, Sequence[ast.stmt]]
    known: Names

    def compared(self, node: ast.expr) -> bool:
        """Whether numbers are compared."""
        return isinstance(node, ast.Compare) and all(map(self._is_number, (node.left, *node.comparators)))

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            made = self.bindings.get(node.id, ())
            alone = len(made) == 1 and isinstance(made[0], ast.Assign) and _name(made[0]) == node.id
            return node.id in self.known or not made or alone and self._is_number(value_of(made[0]))
        if isinstance(node, ast.Call):
            return called(node) in _OF_NUMBERS and all(map(self._is_number, node.args))
        if isinstance(node, ast.BinOp):
            return self._is_number(node.left) and self._is_number(node.right)
        return isinstance(node, ast.Constant)


def _bindings(function: ast.FunctionDef) -> dict[str, list[ast.stmt]]:
    """The statements of a function that bind each name, but loops."""
    found: dict[str, list[ast.stmt]] = {}
    for each in inside(function.body):
        for name in () if list(blocks(each)) else writes(each):
            found.setdefault(name, []).append(each)
    return found


def loaded_again(function: ast.FunctionDef, loop: ast.For, parts: Slice) -> frozenset[ast.stmt]:
    """The statements of a loop's own block that stay, and load what its addresses need in another layout.

    The memory being the same, they may be done ahead as those are.
    """
    bindings = _bindings(function)

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
    calls = [node for node in nodes_in(statement) if isinstance(node, ast.Call)]
    return not list(blocks(statement)) and any(called(each) in LOADS or is_marker(each) for each in calls)
