"""What a ring's tile has where it is masked out is put in by the layout that the tile is read in.

    rows = start + gl.arange(0, BLOCK, layout=row_layout)
    rows_qk = start + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, qk_layout))

    lse = gl.convert_layout(                                                                  # before
        gl.where(rows < n, _tt2gl_ring_lse(lse_ptr + rows, mask=rows < n).load(row_layout), float("inf")),
        gl.SliceLayout(1, qk_layout),
    )
    lse = gl.where(                                                                           # after
        rows_qk < n, _tt2gl_ring_lse(lse_ptr + rows, mask=rows < n).load(gl.SliceLayout(1, qk_layout)), float("inf")
    )

A slot can be read in any layout, so that nothing need be converted, and Triton converts nothing. That the mask is known
in that layout, too, is read off the statements: what it is made of has been made in both, in the same words. What of it
has not is computed there once more, as Triton does it, where it is made of ranges: `start + gl.arange(...) < n`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import Names, inside, reads, writes
from tt2gl.pipelining.layoutless import makes_tensor, without_layouts
from tt2gl.pipelining.static import bound, called
from tt2gl.trees import blocks, nodes_in, python_tree


def with_masked_reads(text: str, functions: Collection[str]) -> str:
    """The text with what is masked out in tiles of these functions put in as they are read."""
    numbers = without_layouts(python_tree(text), functions)
    return in_functions(text, functions, lambda places, function: _edits(places, function, numbers[function.name]))


def _edits(places: Places, function: ast.FunctionDef, numbers: Names) -> Iterator[Edit]:
    """The edits of a function; `numbers`: its names that hold no tensors."""
    for statement in inside(function.body):
        if isinstance(statement, ast.Assign):
            for node in nodes_in(statement):
                if (found := _read(node)) is not None:
                    yield from _moved(places, statement, found, _Twins(function, found, numbers))


@dataclass(frozen=True)
class _Read:
    """A conversion to `wanted` of what `load` reads in the layout `own`, where `mask` holds, and else of `other`."""

    whole: ast.Call
    mask: ast.expr
    load: ast.Call
    other: ast.expr
    own: ast.expr
    wanted: ast.expr


def _read(node: ast.AST) -> _Read | None:
    """What a call converts, if that is a tile's reading with something else where it is masked out."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="convert_layout"),
            args=[
                ast.Call(
                    func=ast.Attribute(attr="where"),
                    args=[mask, ast.Call(func=ast.Attribute(value=ast.Call(), attr="load"), args=[own]) as load, other],
                ),
                wanted,
            ],
            keywords=[],
        ):
            return _Read(node, mask, load, other, own, wanted) if reads(other) <= {"float"} else None
    return None


def _moved(places: Places, statement: ast.stmt, read: _Read, twins: _Twins) -> Iterator[Edit]:
    """The edit that reads a tile in the layout that it is wanted in, if its mask is known there."""
    mask = twins.spelled(read.mask, statement)
    if mask is None or mask == ast.unparse(read.mask):
        return

    def source(node: ast.expr) -> str:
        return places.raw[slice(*places.of(node))].decode()

    assert isinstance(read.load.func, ast.Attribute)
    tile = f"{source(read.load.func.value)}.load({source(read.wanted)})"
    yield Edit(*places.of(read.whole), f"gl.where({mask}, {tile}, {source(read.other)})")


class _Placed(ast.NodeTransformer):
    """Names by what they stand for, and a layout by another one."""

    def __init__(self, values: dict[str, ast.expr], layouts: tuple[str, str]) -> None:
        self.values, self.layouts = values, layouts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        own, wanted = self.layouts
        for keyword in node.keywords:
            if ast.unparse(keyword.value) == own:
                keyword.value = _expression(wanted)
        self.generic_visit(node)
        return node


def _expression(source: str) -> ast.expr:
    return ast.parse(f"({source}\n)", mode="eval").body


@dataclass
class _Twins:
    """The names of a function that are made in the layout of a tile's reading as others are in that which is wanted.

    `numbers`: names that hold no tensors.
    """

    function: ast.FunctionDef
    read: _Read
    numbers: Names
    places: dict[ast.stmt, tuple[Sequence[ast.stmt], int, ast.stmt | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.layouts = ast.unparse(self.read.own), ast.unparse(self.read.wanted)
        self.own = bound(self.function)
        self._note(self.function.body, None)

    def _note(self, block: Sequence[ast.stmt], parent: ast.stmt | None) -> None:
        for index, statement in enumerate(block):
            self.places[statement] = block, index, parent
            for inner in blocks(statement):
                self._note(inner, statement)

    def spelled(self, value: ast.expr, at: ast.stmt) -> str | None:
        """A value at a statement as it is said in the other layout; None where it cannot be."""
        values: dict[str, ast.expr] = {}
        for name in sorted(reads(value)):
            if (twin := self.twin(name, at)) is not None:
                values[name] = _expression(twin)
            elif (anew := self._anew(name, at)) is not None:
                values[name] = anew
            else:
                return None
        return ast.unparse(_Placed(values, self.layouts).visit(_expression(ast.unparse(value))))

    def _anew(self, name: str, at: ast.stmt) -> ast.expr | None:
        """What a name at a statement is made of in the other layout, where that is ranges and scalars as they are."""
        made = self._made(name, at)
        if not isinstance(made, ast.Assign):
            return None
        for call in (each for each in nodes_in(made.value) if isinstance(each, ast.Call) and makes_tensor(each)):
            if called(call) != "arange" or [ast.unparse(each.value) for each in call.keywords] != [self.layouts[0]]:
                return None
        found = self.spelled(made.value, made)
        if found is None or any(not self._left_alone(each, made, at) for each in reads(_expression(found))):
            return None
        return _expression(found)

    def _left_alone(self, name: str, since: ast.stmt, at: ast.stmt) -> bool:
        """Whether nothing gives a name another value from a statement to a later one in its block or in one within."""
        block, index, parent = self.places[at]
        others, first, _ = self.places[since]
        if block is others:
            return not any(name in writes(each) for each in block[first:index])
        changes = isinstance(parent, ast.For | ast.While) and name in writes(parent)
        if parent is None or changes or any(name in writes(each) for each in block[:index]):
            return False
        return self._left_alone(name, since, parent)

    def twin(self, name: str, at: ast.stmt) -> str | None:
        """The name that has a name's value in the other layout, itself if it has no layout; None where none has."""
        if name in self.numbers or name not in self.own:
            return name
        names = dict.fromkeys(each for statement in self.function.body for each in sorted(writes(statement)))
        return next((each for each in names if each != name and self._alike(name, each, at, at)), None)

    def _made(self, name: str, at: ast.stmt) -> ast.Assign | str | None:
        """The assignment that a name's value at a statement is of; "given" of what comes from without, else None."""
        block, index, parent = self.places[at]
        for before in reversed(block[:index]):
            if name in writes(before):
                plain = isinstance(before, ast.Assign) and isinstance(before.targets[0], ast.Name)
                return before if plain and isinstance(before, ast.Assign) and len(before.targets) == 1 else None
        if parent is None:
            return "given"
        return None if isinstance(parent, ast.For | ast.While) and name in writes(parent) else self._made(name, parent)

    def _alike(self, name: str, other: str, at: ast.stmt, there: ast.stmt) -> bool:
        """Whether a name at one place has the value, but for its layout, that another has at another."""
        made, others = self._made(name, at), self._made(other, there)
        if name == other:
            return made is others is not None or self._unchanged(name, at, there)
        if not isinstance(made, ast.Assign) or not isinstance(others, ast.Assign):
            return False
        return self._match(made.value, others.value, made, others)

    def _unchanged(self, name: str, at: ast.stmt, there: ast.stmt) -> bool:
        """Whether a name is left alone between two statements of one block."""
        (block, first, _), (other, last, _) = self.places[at], self.places[there]
        between = block[min(first, last) : max(first, last)]
        return block is other and not any(name in writes(each) for each in between)

    def _match(self, one: object, other: object, at: ast.stmt, there: ast.stmt) -> bool:
        """Whether two parts of assignments say the same, but for the layout."""
        said = tuple(ast.unparse(each) for each in (one, other) if isinstance(each, ast.expr))
        if said == self.layouts:
            return True
        if isinstance(one, ast.Name) and isinstance(other, ast.Name):
            return self._alike(one.id, other.id, at, there)
        if isinstance(one, list) and isinstance(other, list):
            pairs = zip(one, other, strict=False)
            return len(one) == len(other) and all(self._match(a, b, at, there) for a, b in pairs)
        if isinstance(one, ast.AST) and type(one) is type(other):
            return all(
                self._match(getattr(one, part, None), getattr(other, part, None), at, there) for part in one._fields
            )
        return one == other
