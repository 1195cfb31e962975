"""Offsets of buffer operations in loops are a scalar and what a tile adds to it, as Triton has AMD's.

rows = pid * BLOCK_M + gl.arange(0, BLOCK_M, layout=...)
for k in range(0, K, BLOCK_K):
    cols = k + cols_range
    a = gl.amd.cdna3.buffer_load(a_ptr, rows[:, None] * stride + cols[None, :])                             # before
    a = gl.amd.cdna3.buffer_load(
        a_ptr, pid * BLOCK_M * stride + k + (gl.arange(...)[:, None] * stride + cols_range[None, :])        # after
    )

Triton's pass for pointers takes what is the same in all lanes apart from the rest, through all that an offset adds up
from. So the rest is the same on every turn and in the prologue, and what a turn adds is computed once for a wave, and
not once for each of a thread's elements: a convolution of three dimensions took 172 registers on gfx942 for Triton's
126, and takes 124; on gfx1100 it spilled 91 where Triton's spills none, and spills none. A scalar that pointers are
moved by last that pass leaves with the tensor, and so does this: `ptr + rows + c + w` goes by `c + (rows + w)`. One of
two dimensions took 146 registers on gfx942 for Triton's 127 without that, and takes 127. Sums are put together in
another order modulo 2 ** 32, which is how offsets count: those of fewer bits stay. One that has 64 bits for its scalar
keeps them (`offs = base + start + (rows.to(gl.int64) + cols[None, :])`, which `gl.cast(offs, gl.int32)` reads), as
Triton's: the compiler makes of it what it makes of that, and a norm of groups takes 53 registers on gfx1201 for 96.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import reads
from tt2gl.pipelining.static import called
from tt2gl.pipelining.texts import operand
from tt2gl.pipelining.uniform_parts import Kernel, Parts, assigned
from tt2gl.trees import blocks, nodes_in, python_tree

_OFFSETS = {"buffer_load": 1, "buffer_store": 2, "buffer_atomic_add": 1}
"""Which argument of a buffer operation is its offsets."""

_Around = tuple[tuple[ast.stmt, int], ...]
"""The loops and branches that a statement stands in, the outermost first, and in which block of each."""


def with_uniform_offsets(text: str, kernels: Collection[str], authors: str) -> str:
    """The text with what buffer operations in the loops of some kernels, by name, go by written so.

    What has a name in the author's text is a sum of integers, and any other offset one of what pointers are moved by.
    """
    names = {node.id for node in nodes_in(python_tree(authors)) if isinstance(node, ast.Name)}
    return in_functions(text, kernels, lambda places, function: [*_InLoops(function, places, names).written()])


class _InLoops(Kernel):
    """A kernel whose names are what they were given last, where one statement of it stands."""

    def __init__(self, tree: ast.FunctionDef, places: Places, authors: Collection[str]) -> None:
        super().__init__(tree, places.raw.decode().split("\n"))
        self.places, self.authors = places, authors
        self.around: dict[ast.stmt, _Around] = {}
        self._enter(tree.body, ())
        # What names are given, in the order of the text, and the statement that gives a value.
        self.given: dict[str, list[tuple[ast.Assign, ast.expr]]] = {}
        self.made_by: dict[ast.expr, ast.Assign] = {}
        for statement in self.around:
            if not isinstance(statement, ast.Assign):
                continue
            for name, value in assigned(statement):
                self.given.setdefault(name, []).append((statement, value))
                self.made_by[value] = statement
        self.here: ast.stmt = tree.body[0]
        self.counters: set[str] = set()
        self.given_numbers, self.given_constants = self.numbers, self.constants

    def _enter(self, block: list[ast.stmt], around: _Around) -> None:
        for statement in block:
            self.around[statement] = around
            for number, inner in enumerate(blocks(statement)):
                self._enter(inner, (*around, (statement, number)))

    def written(self) -> Iterator[Edit]:
        """The offsets that are written anew."""
        for node, statement in self._offsets().items():
            self._stand_at(statement)
            if self._is_apart(node) or b"#" in self.places.raw[slice(*self.places.of(node))]:
                continue
            parts = self.parts(node, statement.lineno)
            if parts.scalar and parts.tensor:
                parts = self._as_wide(self._with_last(node, statement) or parts)
                yield Edit(*self.places.of(node), f"{parts.scalar} + ({parts.tensor})")

    def _with_last(self, node: ast.expr, statement: ast.stmt) -> Parts | None:
        """The parts where pointers are moved by a scalar last, which stays with the tensor."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add) or not self.is_scalar(node.right):
            return None
        if self._is_authors(node):
            return None
        parts = self.parts(node.left, statement.lineno)
        return replace(parts, tensor=f"{parts.tensor} + {ast.unparse(node.right)}") if parts.scalar else None

    def _is_authors(self, node: ast.expr) -> bool:
        """Whether an expression has a name in the author's text."""
        made = self.made_by.get(node)
        return made is not None and any(name in self.authors for name, value in assigned(made) if value is node)

    def _offsets(self) -> dict[ast.expr, ast.stmt]:
        """What buffer operations in loops go by, and the statement that makes it: of names what they are given."""
        found: dict[ast.expr, ast.stmt] = {}
        for statement in (each for each in self.around if self._turns(each) and not [*blocks(each)]):
            for call in (node for node in nodes_in(statement) if isinstance(node, ast.Call)):
                place = _OFFSETS.get(called(call))
                if place is None or len(call.args) <= place:
                    continue
                offsets, made = self._cast_name(call.args[place]), statement
                if isinstance(offsets, ast.Name):
                    self._stand_at(statement)
                    if offsets.id not in self.known:
                        continue
                    offsets = self.known[offsets.id]
                    made = self.made_by[offsets]
                if self._turns(made):
                    found[offsets] = made
        return found

    def _cast_name(self, node: ast.expr) -> ast.expr:
        """The name that an offset casts to 32 bits, if no other bits of that are read; else the offset."""
        match node:
            case ast.Call(args=[ast.Name(id=name) as inner, _]) if _is_cast(node):
                read = [each for each in nodes_in(self.tree) if isinstance(each, ast.Name) and each.id == name]
                casts = [each for each in nodes_in(self.tree) if isinstance(each, ast.Call) and _is_cast(each)]
                cast = [each for each in casts if isinstance(each.args[0], ast.Name) and each.args[0].id == name]
                return inner if len(read) == len(cast) + len(self.lines_written.get(name, ())) else node
        return node

    def _as_wide(self, parts: Parts) -> Parts:
        """The parts, the tensor in 64 bits where the scalar has as many."""
        scalar, tensor = (ast.parse(each, mode="eval").body for each in (parts.scalar, parts.tensor))
        if not self._is_long(scalar) or self._is_long(tensor):
            return parts
        return replace(parts, tensor=_widened(tensor))

    def _is_long(self, node: ast.expr) -> bool:
        """Whether integers are known to have 64 bits."""
        match node:
            case ast.Name(id=name):
                return name in self.known and self._is_long(self.known[name])
            case ast.BinOp(left=left, right=right):
                return self._is_long(left) or self._is_long(right)
            case ast.Subscript(value=inner):
                return self._is_long(inner)
            case ast.Call(func=ast.Attribute(attr="to"), args=[dtype], keywords=[]):
                return ast.unparse(dtype).endswith("int64")
        return False

    def _turns(self, statement: ast.stmt) -> bool:
        """Whether a statement stands in a loop, or a prologue of one."""
        return any(_is_loop(each) for each, _ in self.around[statement])

    def _stand_at(self, statement: ast.stmt) -> None:
        """Have what follows be asked of a statement."""
        self.here = statement
        loops = [each for each, _ in self.around[statement] if isinstance(each, ast.For) and _is_loop(each)]
        targets = [(each, each.target.id) for each in loops if isinstance(each.target, ast.Name)]
        own = [(loop, name) for loop, name in targets if self._writes_in(loop, name) == 1]
        self.counters = {name for _, name in own}
        # A prologue is written out, and counted by constants of the compilation.
        self.numbers = self.given_numbers | {name for loop, name in own if called(loop.iter) == "range"}
        self.constants = self.given_constants | (self.counters - self.numbers)
        last = {name: self._last(name) for name in self.given}
        self.known = {name: value for name, value in last.items() if value is not None}
        self.once = {*self.known} - self.parameters

    def _last(self, name: str) -> ast.expr | None:
        """What a name was given last where it is asked, if that is the same on every way there."""
        reached = [(made, value) for made, value in self.given[name] if self._reaches(made)]
        if not reached:
            return None
        made, value = reached[-1]
        later = name in reads(value) or any(made.lineno < line < self.here.lineno for line in self.lines_written[name])
        return None if later or self._changes(made, [name]) else value

    def _writes_in(self, loop: ast.stmt, name: str) -> int:
        """How many lines of a loop write a name, its own first line counted."""
        return sum(loop.lineno <= line <= (loop.end_lineno or 0) for line in self.lines_written.get(name, ()))

    def _reaches(self, made: ast.stmt) -> bool:
        """Whether a statement has been carried out wherever it is asked."""
        around = self.around[made]
        return made.lineno < self.here.lineno and self.around[self.here][: len(around)] == around

    def _changes(self, made: ast.stmt, names: Collection[str]) -> bool:
        """Whether loops between a statement and where it is asked write any of some names."""
        between = self.around[self.here][len(self.around[made]) :]
        loops = [each for each, _ in between if isinstance(each, ast.For | ast.While)]
        return any(self._writes_in(loop, name) for loop in loops for name in names)

    def _is_apart(self, node: ast.expr) -> bool:
        """Whether an offset is a scalar and something without one already, or has but one term."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            return True
        place = self.here.lineno
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if self.is_scalar(one) and not self.parts(other, place).scalar:
                return True
        return False

    def is_scalar(self, node: ast.expr) -> bool:
        """Whether a value is one for all lanes where it is asked for; what counts a loop around that is one there."""
        if isinstance(node, ast.Name) and node.id in self.counters:
            return True
        return self._is_lasting(node) and super().is_scalar(node)

    def _is_lasting(self, node: ast.expr) -> bool:
        """Whether all is as it was when a name was given what it is; of anything else it is to be asked apart."""
        if not isinstance(node, ast.Name) or node.id not in self.known:
            return True
        return self.lasts(self.known[node.id], self.here.lineno)

    def lasts(self, node: ast.expr, place: int) -> bool:
        """Whether what a name was given is the same where it is asked for, on every turn of the loops in between."""
        made = self.made_by.get(node)
        if made is None or not self._reaches(made) or not super().lasts(node, place):
            return False
        return not self._changes(made, reads(node))


def _is_cast(node: ast.Call) -> bool:
    """Whether a call casts to the bits of a buffer operation's offsets."""
    return called(node) == "cast" and len(node.args) > 1 and ast.unparse(node.args[1]) == "gl.int32"


def _widened(node: ast.expr) -> str:
    """A sum of tensors in 64 bits, its first term made so."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first = ast.parse(_widened(left), mode="eval").body
            return ast.unparse(ast.BinOp(first, node.op, right))
    return f"{operand(ast.unparse(node))}.to(gl.int64)"


def _is_loop(statement: ast.stmt) -> bool:
    """Whether a statement is a loop, or a prologue of one."""
    if isinstance(statement, ast.For):
        return called(statement.iter) in ("range", "static_range")
    return isinstance(statement, ast.While)


__all__ = ["with_uniform_offsets"]
