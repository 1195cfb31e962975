"""Rule `hoist`: what a product under a condition reads from shared memory is put there where it is computed.

    q_gated = q * gl.exp(gates)                                                               # before
    h = gl.load(h_ptrs)
    if step >= 0:
        q_smem = gl.allocate_shared_memory(q_gated.dtype, [BLOCK_M, BLOCK_K], q_shared, q_gated)
        acc = mma_v2(q_smem.load(lhs_layout), gl.convert_layout(h, rhs_layout), acc)

    q_gated = q * gl.exp(gates)                                                               # after
    q_smem = gl.allocate_shared_memory(q_gated.dtype, [BLOCK_M, BLOCK_K], q_shared, q_gated)
    h = gl.load(h_ptrs)
    if step >= 0:
        acc = mma_v2(q_smem.load(lhs_layout), gl.convert_layout(h, rhs_layout), acc)

As Triton's compiler has it (ReorderInstructions): it puts what has to go through shared memory there right behind what
makes it, whatever branch its product is in. Until the branch it would wait in registers, beside all that is loaded or
computed in between: 145 of them for 96 in a chunk of gated linear attention on sm80.

Not here: what the compilation decides to leave out is not put anywhere; what two products take is left to each; and
nothing moves over a product that runs on, of which the operands' memory might be taken.
"""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.early_operands import runs_on
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.trees import blocks, nodes_in


def with_guarded_operands(text: str, functions: Collection[str]) -> str:
    """The text with operands of these functions in shared memory where they are made, and not in a branch below."""
    return in_functions(text, functions, lambda places, function: _Function(places, function).edits())


class _Function:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        self.fixed, self.variables = constants(function), bound(function)
        self.bounces = [found for each in inside(function.body) if (found := _filled(each)) is not None]
        self.named = Counter(name for each in inside(function.body) for name in _bound_here(each))

    def edits(self) -> Iterator[Edit]:
        """The edits of the function: of its own statements, and of those of each loop and branch in it."""
        for block in (self.function.body, *(block for each in inside(self.function.body) for block in blocks(each))):
            for index, statement in enumerate(block):
                if isinstance(statement, ast.If) and not is_static(statement.test, self.fixed, self.variables):
                    for arm in (statement.body, statement.orelse):
                        yield from self._arm(block[:index], arm)

    def _arm(self, above: Sequence[ast.stmt], arm: Sequence[ast.stmt]) -> Iterator[Edit]:
        """The edits that take operands out of one side of a branch."""
        for index, statement in enumerate(arm):
            if (found := _filled(statement)) is None or len(arm) == 1:
                continue
            name, value = found
            once = self.named[name] == 1 and sum(value == other for _, other in self.bounces) == 1
            kept = not any(value in writes(each) for each in arm[:index])
            made = self._maker(above, statement, value)
            if once and kept and made is not None and _is_operand(name, arm[index + 1 :]):
                yield self._below(made, statement)
                yield Edit(*self.places.lines(statement), "")

    def _maker(self, above: Sequence[ast.stmt], fill: ast.stmt, value: str) -> ast.stmt | None:
        """The statement above a branch that makes what is put into memory; None where that cannot go there."""
        fresh = reads(fill) - self.fixed - {value, "gl"}
        for statement in reversed(above):
            if value in writes(statement):
                return statement if isinstance(statement, ast.Assign | ast.AugAssign) else None
            if runs_on(statement) or writes(statement) & fresh:
                return None
        return None

    def _below(self, statement: ast.stmt, fill: ast.stmt) -> Edit:
        """What puts an operand into memory, below another statement."""
        start, end = self.places.lines(fill)
        said = textwrap.dedent(self.places.raw[start:end].decode())
        indent = self.places.line(statement.lineno)[: statement.col_offset].decode()
        _, place = self.places.lines(statement)
        return Edit(place, place, textwrap.indent(said, indent))


def _filled(statement: ast.stmt) -> tuple[str, str] | None:
    """The name of shared memory that a statement makes and fills, and that of the value; None for other statements."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[_, _, _, ast.Name(id=value)]) as call):
            return (name, value) if called(call) == "allocate_shared_memory" else None
    return None


def _bound_here(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement binds itself, and not in its blocks."""
    return writes(statement) if not any(True for _ in blocks(statement)) else frozenset()


def _is_operand(name: str, below: Sequence[ast.stmt]) -> bool:
    """Whether shared memory is what products read their operands from, into registers, and nothing else."""
    mentions = loads = 0
    for statement in below:
        for node in nodes_in(statement):
            mentions += isinstance(node, ast.Name) and node.id == name
            loads += isinstance(node, ast.Call) and called(node) in ("mma_v2", "dot_fma") and _reads(node, name)
    return mentions == loads > 0


def _reads(product: ast.Call, name: str) -> int:
    """How many operands of a product are read from that memory."""
    return sum(
        isinstance(each, ast.Call) and called(each) == "load" and _source(each) == name for each in product.args[:2]
    )


def _source(reading: ast.expr) -> str:
    """The memory that is read, turned or as it lies."""
    match reading:
        case ast.Call(func=ast.Attribute(value=inner, attr="load" | "permute")):
            return inner.id if isinstance(inner, ast.Name) else _source(inner)
    return ""
