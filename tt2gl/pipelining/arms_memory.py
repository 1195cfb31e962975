"""Shared memory that one arm alone of a branch of the compilation reads is made in that arm.

    h = gl.load(h_ptrs)                                                                       # before
    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_K, BLOCK_V], h_shared, h)
    if V_FIRST:
        h_operand = gl.permute(h, (1, 0))
        h_smem_2 = gl.allocate_shared_memory(h_operand.dtype, [BLOCK_K, BLOCK_V], turned_shared, h_operand)
        acc = gl.dot_fma(q, h_smem_2.load(rhs_layout), acc)
    else:
        acc = gl.dot_fma(q, h_smem.load(rhs_layout), acc)

    h = gl.load(h_ptrs)                                                                       # after
    if V_FIRST:
        h_operand = gl.permute(h, (1, 0))
        h_smem_2 = gl.allocate_shared_memory(h_operand.dtype, [BLOCK_K, BLOCK_V], turned_shared, h_operand)
        acc = gl.dot_fma(q, h_smem_2.load(rhs_layout), acc)
    else:
        h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_K, BLOCK_V], h_shared, h)
        acc = gl.dot_fma(q, h_smem.load(rhs_layout), acc)

The extents are those of the arm: under the other one the value may have others, and would not compile there.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.trees import blocks

_GIVEN = 4
"""Arguments of an allocation that is given what it holds."""


def with_memory_in_arms(text: str, functions: Collection[str]) -> str:
    """The text with the shared memory that one arm alone reads made there, in these functions."""
    return in_functions(text, functions, lambda places, function: _Arms(places, function).edits())


class _Arms:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        self.fixed, self.variables = constants(function), bound(function)

    def edits(self) -> Iterator[Edit]:
        """The edits of the function."""
        for block in (self.function.body, *(each for line in inside(self.function.body) for each in blocks(line))):
            for at, statement in enumerate(block):
                place = self._place(statement, block[at + 1 :])
                if place is not None:
                    yield from self._moved(statement, place)

    def _place(self, statement: ast.stmt, below: Sequence[ast.stmt]) -> ast.stmt | None:
        """The statement above which an arm below makes some memory itself; None where it stays."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=args) as call) if (
                called(call) == "allocate_shared_memory" and len(args) == _GIVEN
            ):
                pass
            case _:
                return None
        every, needed = _mentions([self.function], name) - 1, reads(statement)
        found: ast.stmt | None = None
        entered = False
        while True:
            at = next((at for at, each in enumerate(below) if _mentions([each], name)), None)
            if at is None or any(writes(each) & needed for each in below[:at]):
                return found
            first = below[at]
            if entered and not self._is_elif(first):
                found = first
            if not isinstance(first, ast.If) or not is_static(first.test, self.fixed, self.variables):
                return found
            arm = next((each for each in (first.body, first.orelse) if _mentions(each, name) == every), None)
            if arm is None:
                return found
            below, entered = arm, True
            found = found if self._is_elif(arm[0]) else arm[0]

    def _is_elif(self, statement: ast.stmt) -> bool:
        """Whether a branch is written as the other arm of one: nothing can stand above it there."""
        return self.places.line(statement.lineno).lstrip().startswith(b"elif")

    def _moved(self, statement: ast.stmt, place: ast.stmt) -> Iterator[Edit]:
        start, end = self.places.lines(statement)
        said = textwrap.dedent(self.places.raw[start:end].decode())
        yield Edit(start, end, "")
        indent = self.places.line(place.lineno)[: place.col_offset].decode()
        above, _ = self.places.lines(place, comments=True)
        yield Edit(above, above, textwrap.indent(said, indent))


def _mentions(block: Sequence[ast.AST], name: str) -> int:
    """How often a name is mentioned."""
    return sum(isinstance(node, ast.Name) and node.id == name for each in block for node in ast.walk(each))
