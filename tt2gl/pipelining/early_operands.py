"""Rule `hoist`: what a product reads from shared memory is put there as soon as it is converted elsewhere.

    gl.store(h_ptrs, gl.convert_layout(h.to(h_ptr.dtype.element_ty), h_layout))               # before
    async_copy.wait_group(0)
    w = w_buf.index(slot)
    h_operand = h.to(w.dtype)
    h_smem = gl.allocate_shared_memory(h_operand.dtype, [BLOCK_K, BLOCK_N], h_shared, h_operand)
    fence_async_shared()
    v = warpgroup_mma(w, h_smem, zeros)

    h_operand = h.to(w_buf.dtype)                                                             # after
    h_smem = gl.allocate_shared_memory(h_operand.dtype, [BLOCK_K, BLOCK_N], h_shared, h_operand)
    gl.store(h_ptrs, gl.convert_layout(h.to(h_ptr.dtype.element_ty), h_layout))
    async_copy.wait_group(0)
    w = w_buf.index(slot)
    fence_async_shared()
    v = warpgroup_mma(w, h_smem, zeros)

As Triton's compiler has it (ReorderInstructions), so that both go to memory before one barrier; behind the wait, each
operand costs a barrier of its own, with every warp waiting for the product. So is what no cast comes before: a product
of float32 in threads of its own holds the operand beside what is stored otherwise, and spills: states of a gated delta
rule 104 registers a thread on sm90 where they spill none so, and take 148 us for 236 on an H200 (Triton's, which spills
214, 330).

Not here: what the compilation does not decide is not left or entered, and nothing moves over a product that runs on, of
which the operands' memory might be taken.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.trees import blocks, nodes_in

_READERS = {"index", "load", "permute"}
"""What is done to shared memory that leaves its type as it is, as methods."""


def with_early_operands(text: str, functions: Collection[str]) -> str:
    """The text with operands of these functions in shared memory where they are converted first."""
    return in_functions(text, functions, lambda places, function: _Function(places, function).edits())


@dataclass(frozen=True)
class _Line:
    """A statement, and the branches that it is in which the compilation decides: conditions and whether they hold."""

    statement: ast.stmt
    branches: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class _Operand:
    """A value that is put into shared memory, cast to the type of something before where there is a `kind`."""

    value: str
    statements: tuple[ast.stmt, ...]
    kind: ast.Name | None = None


class _Function:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        self.fixed, self.variables = constants(function), bound(function)

    def edits(self) -> Iterator[Edit]:
        """The edits of the function: of its own statements, and of those of each loop and branch in it."""
        bodies = [self.function.body]
        for each in inside(self.function.body):
            if not self._is_decided(each):
                bodies.extend(blocks(each))
        for body in bodies:
            lines = list(self._lines(body, ()))
            for at in range(1, len(lines)):
                cast = lines[at - 1].statement if lines[at].branches == lines[at - 1].branches else None
                operand = _operand(cast, lines[at].statement)
                if operand is not None:
                    yield from self._moved(lines[: at + 1 - len(operand.statements)], lines[at], operand)

    def _is_decided(self, statement: ast.stmt) -> bool:
        """Whether a statement is a branch of the compilation."""
        return isinstance(statement, ast.If) and is_static(statement.test, self.fixed, self.variables)

    def _lines(self, body: Sequence[ast.stmt], branches: tuple[tuple[str, bool], ...]) -> Iterator[_Line]:
        """The statements of a body and of the compilation's branches in it, in order."""
        for statement in body:
            if isinstance(statement, ast.If) and self._is_decided(statement):
                test = ast.unparse(statement.test)
                yield from self._lines(statement.body, (*branches, (test, True)))
                yield from self._lines(statement.orelse, (*branches, (test, False)))
            else:
                yield _Line(statement, branches)

    def _moved(self, before: Sequence[_Line], line: _Line, operand: _Operand) -> Iterator[Edit]:
        """The edits that put an operand where its value is converted first."""
        first = None
        kind = self._kind(before, line, operand.kind.id) if operand.kind is not None else ""
        needed = {operand.value, kind} | reads(operand.statements[-1])
        for at in reversed(range(len(before))):
            each = before[at].statement
            if writes(each) & needed or _runs_on(each):
                break
            if _converts(each, operand) and set(before[at].branches) <= set(line.branches):
                first = before[at]
        if first is None:
            return
        yield self._above(first, line, operand, kind)
        start, end = self._whole(operand)
        yield Edit(start, end, "")

    def _whole(self, operand: _Operand) -> tuple[int, int]:
        """Where an operand's statements begin and end."""
        return self.places.lines(operand.statements[0])[0], self.places.lines(operand.statements[-1])[1]

    def _kind(self, before: Sequence[_Line], line: _Line, name: str) -> str:
        """The name whose type an operand is cast to: the memory's for what is read of it."""
        made = next((each for each in reversed(before) if name in writes(each.statement)), None)
        if made is not None and isinstance(made.statement, ast.Assign) and set(made.branches) <= set(line.branches):
            source = _memory(made.statement.value)
            return source if source in self.variables else name
        return name

    def _above(self, first: _Line, line: _Line, operand: _Operand, kind: str) -> Edit:
        """The operand's statements above the first line, in the branches that this is not in yet."""
        begin, stop = self._whole(operand)
        start, end = self.places.of(operand.kind) if operand.kind is not None else (stop, stop)
        raw = self.places.raw
        said = textwrap.dedent((raw[begin:start] + kind.encode() + raw[end:stop]).decode())
        for test, holds in reversed([each for each in line.branches if each not in first.branches]):
            plain = test.isidentifier()
            head = test if holds else f"not {test}" if plain else f"not ({test})"
            said = f"if {head}:\n{textwrap.indent(said, '    ')}"
        indent = self.places.line(first.statement.lineno)[: first.statement.col_offset].decode()
        place, _ = self.places.lines(first.statement, comments=True)
        return Edit(place, place, textwrap.indent(said, indent))


def _operand(cast: ast.stmt | None, fill: ast.stmt) -> _Operand | None:
    """The operand that a statement puts into shared memory, cast by the one before or as it is."""
    match fill:
        case ast.Assign(value=ast.Call(args=[_, _, _, ast.Name(id=given)]) as call) if (
            called(call) == "allocate_shared_memory"
        ):
            pass
        case _:
            return None
    match cast:
        case ast.Assign(
            targets=[ast.Name(id=made)],
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=value), attr="to"),
                args=[ast.Attribute(value=ast.Name() as kind, attr="dtype")],
            ),
        ) if made == given:
            return _Operand(value, (cast, fill), kind)
    return _Operand(given, (fill,))


def _converts(statement: ast.stmt, operand: _Operand) -> bool:
    """Whether a statement converts an operand's value, or the same in another type, and changes no variable.

    Or anything that it stores, where the operand is not cast: that goes through memory after what is there already.
    """
    calls = (each for each in nodes_in(statement) if isinstance(each, ast.Call) and called(each) == "convert_layout")
    if isinstance(statement, ast.Expr) and operand.kind is None:
        return any(calls)
    return isinstance(statement, ast.Expr | ast.Assign) and any(
        _is_value(each.args[0], operand.value) for each in calls
    )


def _is_value(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Name(id=read) | ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr="to")):
            return read == name
    return False


def _memory(value: ast.expr) -> str:
    """The name of the shared memory that is read of, as it is; empty where something else is."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _READERS:
            return inner.id if isinstance(inner, ast.Name) else _memory(inner)
    return ""


def _runs_on(statement: ast.stmt) -> bool:
    """Whether a statement starts products that are waited for later, or waits for some."""
    names = [each for each in nodes_in(statement) if isinstance(each, ast.Call)]
    return any(
        called(each) == "warpgroup_mma_wait" or any(keyword.arg == "is_async" for keyword in each.keywords)
        for each in names
    )
