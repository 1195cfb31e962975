"""Which pointers an address comes from: the parameters that it is an offset from, by the definitions that reach it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tt2gl.pipelining.flow import NONE, Names, inside, writes
from tt2gl.pipelining.static import called
from tt2gl.trees import blocks, nodes_in

# The blocks that a statement is in, each with the place of the statement (or of what it is in) there, innermost first.
_Path = tuple[tuple[Sequence[ast.stmt], int], ...]

# Parts of descriptors and tensors that are no addresses.
_NUMBERS = {"shape", "strides", "dtype"}


@dataclass
class Pointers:
    """The parameters that addresses of a function start from. `known`: which are pointers, if that is known."""

    function: ast.FunctionDef
    constexprs: Names
    known: Names | None

    def __post_init__(self) -> None:
        arguments = self.function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters = frozenset(each.arg for each in every) - self.constexprs
        self.parameters = parameters if self.known is None else parameters & self.known
        self.loads_addresses = False
        self.definitions: dict[str, list[ast.expr]] = {}
        moves: list[tuple[str, ast.expr]] = []
        for statement in inside(self.function.body):
            for name, value in _bound(statement):
                if isinstance(statement, ast.AugAssign):
                    moves.append((name, value))
                else:
                    self.definitions.setdefault(name, []).append(value)
        self.certain = (self.parameters if self.known is not None else NONE) - self.definitions.keys()
        for name, value in moves:  # of a pointer, by a number
            if name not in self.certain:
                self.definitions.setdefault(name, []).append(value)
        self.paths = {
            node: path
            for statement, path in _paths(self.function.body, ())
            for part in ast.iter_child_nodes(statement)
            if not isinstance(part, ast.stmt)
            for node in nodes_in(part)
        }
        self.loads_addresses = any(map(self._casts_to_pointer, nodes_in(self.function)))

    def _casts_to_pointer(self, node: ast.AST) -> bool:
        """Whether numbers become pointers by an expression: `tl.pointer_type(...)`, `.to(x_ptr.dtype)`."""
        if isinstance(node, ast.Attribute):
            return node.attr in ("pointer_type", "PointerType")
        kinds = node.args if isinstance(node, ast.Call) and called(node) == "to" else []
        return any(
            isinstance(each, ast.Attribute) and each.attr == "dtype" and self.roots(each.value) for each in kinds
        )

    def roots(self, address: ast.expr, seen: frozenset[ast.expr] = frozenset()) -> Names:
        """The parameters that an address is an offset from; a loaded one is where its table is, if any is loaded."""
        match address:
            case ast.Name(id=name):
                only = self._reaching(address)
                values = self.definitions.get(name, ()) if only is None else [only]
                own = frozenset({name}) & self.parameters if only is None else NONE
                return own.union(*(self.roots(each, seen | {each}) for each in values if each not in seen))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                sides = [side for side in (left, right) if self._is_pointer(side)] or [left, right]
                return NONE.union(*(self.roots(side, seen) for side in sides))
            case ast.IfExp(body=body, orelse=orelse):
                return self.roots(body, seen) | self.roots(orelse, seen)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return NONE.union(*(self.roots(each, seen) for each in parts))
            case ast.Subscript(value=value):
                return self.roots(value, seen)
            case ast.Attribute(value=value, attr=part) if part not in _NUMBERS:
                return self.roots(value, seen)
            case ast.Call(func=function, args=arguments) if called(address) != "load" or self.loads_addresses:
                parts = [function.value, *arguments] if isinstance(function, ast.Attribute) else arguments
                return NONE.union(*(self.roots(each, seen) for each in parts))
        return NONE

    def _is_pointer(self, value: ast.expr) -> bool:
        """Whether a value is surely a pointer, to which nothing but a number can be added, whatever that is made of."""
        match value:
            case ast.Name(id=name):
                return name in self.certain
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self._is_pointer(left) or self._is_pointer(right)
        return False

    def _reaching(self, name: ast.Name) -> ast.expr | None:
        """What a variable was assigned last where it is read, if that is the same on every way there."""
        for block, place in self.paths.get(name, ()):
            for statement in reversed(block[:place]):
                if name.id in writes(statement):
                    whole = isinstance(statement, ast.Assign)
                    return dict(_bound(statement)).get(name.id) if whole else None
            if isinstance(block[place], (ast.For, ast.While)) and name.id in writes(block[place]):
                return None
        return None


def _paths(block: Sequence[ast.stmt], around: _Path) -> Iterator[tuple[ast.stmt, _Path]]:
    """The statements of a block and those inside them, each with where it is."""
    for place, statement in enumerate(block):
        path = ((block, place), *around)
        yield statement, path
        for inner in blocks(statement):
            yield from _paths(inner, path)


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The variables that an assignment binds, with what each is made of."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _parts(target, statement.value)
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)) and statement.value is not None:
        yield from _parts(statement.target, statement.value)


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(parts) else [value] * len(parts)
    for part, each in zip(parts, values, strict=True):
        if isinstance(part, ast.Name):
            yield part.id, each
