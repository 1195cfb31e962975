"""A tile that one arm of the compilation reads from its slot, where the other makes it otherwise, is read in products.

    if SHARED:
        v = tl.trans(k)
    else:
        v = v_buf.index(slot).load(rhs_layout)
    if WIDE:
        acc = mma_v2(p_smem.load(lhs_layout), v.to(gl.float32), acc)
    else:
        p_operand = p.to(v.dtype)
        p_smem_2 = gl.allocate_shared_memory(p_operand.dtype, [BLOCK_M, BLOCK_N], p_shared, p_operand)
        acc = mma_v2(p_smem_2.load(lhs_layout), v, acc)

    if SHARED:                                                                                          # becomes
        v = tl.trans(k)
    else:
        v = v_buf.index(slot)
    if WIDE:
        acc = mma_v2(p_smem.load(lhs_layout), (v if SHARED else v.load(rhs_layout)).to(gl.float32), acc)
    else:
        p_operand = p.to(v.dtype)
        p_smem_2 = gl.allocate_shared_memory(p_operand.dtype, [BLOCK_M, BLOCK_N], p_shared, p_operand)
        acc = mma_v2(p_smem_2.load(lhs_layout), v if SHARED else v.load(rhs_layout), acc)

As in `lowered_reads`, which has the reason: decoding with grouped queries takes 207 registers for 255 so, as Triton's
does. There one product takes the tile; here several may, in branches, and ask for its type. That the product reads its
first operand before is reason enough, as Triton's does: similarities of 32 queries and tokens of documents take 100
registers for 110, where Triton's kernel has 99.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import NONE, inside, reads, writes
from tt2gl.pipelining.late_reads import is_type, tile_of
from tt2gl.pipelining.lowered_reads import is_read, reads_the_same
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.trees import nodes_in

_PRODUCT = "mma_v2"


def with_chosen_reads(text: str, functions: Collection[str]) -> str:
    """The text with tiles that arms of the compilation read, in loops of these functions, read where products are."""
    return in_functions(text, functions, _edits)


@dataclass(frozen=True)
class _Chosen:
    """A read under a test of the compilation, or (`other`) where that does not hold, and the operands that take it."""

    read: ast.Assign
    test: ast.expr
    other: bool
    operands: Sequence[ast.expr]

    def edits(self, places: Places) -> Iterator[Edit]:
        """The slot under the tile's name, and the read in each operand."""
        read = self.read.value
        assert isinstance(read, ast.Call)
        assert isinstance(read.func, ast.Attribute)
        start, end = places.of(read.func.value)
        yield Edit(*places.of(read), places.raw[start:end].decode())
        (name,) = writes(self.read)
        loaded = f"{name}.load({ast.unparse(read.args[0])})"
        made, otherwise = (name, loaded) if self.other else (loaded, name)
        chosen = f"{made} if {ast.unparse(self.test)} else {otherwise}"
        for operand in self.operands:
            if isinstance(operand, ast.Call):
                assert isinstance(operand.func, ast.Attribute)
                yield Edit(*places.of(operand.func.value), f"({chosen})")
            else:
                yield Edit(*places.of(operand), chosen)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    fixed, variables = constants(function), bound(function)
    for loop in (each for each in inside(function.body) if isinstance(each, ast.For)):
        for at, branch in enumerate(loop.body):
            if isinstance(branch, ast.If) and is_static(branch.test, fixed, variables):
                found = _chosen(function, loop.body, at, branch)
                if found is not None:
                    yield from found.edits(places)


def _chosen(function: ast.FunctionDef, block: Sequence[ast.stmt], at: int, branch: ast.If) -> _Chosen | None:
    """What a branch of a loop's block reads in one arm alone, if products take it as second operands alone."""
    for arm, other in ((branch.body, branch.orelse), (branch.orelse, branch.body)):
        for read in arm:
            name = next(iter(writes(read)), "")
            if not isinstance(read, ast.Assign) or not is_read(read) or not _makes(other, name):
                continue
            operands = _operands(block[at + 1 :], name)
            taker = next((each for each in reversed(block) if any(node in nodes_in(each) for node in operands)), None)
            names = [node for node in nodes_in(function) if isinstance(node, ast.Name) and node.id == name]
            typed = sum(is_type(node, name) for node in nodes_in(function))
            if taker is None or len(names) != 2 + len(operands) + typed or name in reads(branch):
                continue
            between = [*arm[arm.index(read) + 1 :], *inside(block[at + 1 : block.index(taker) + 1])]
            between = [each for each in between if not any(node in nodes_in(each) for node in operands)]
            changed = reads(branch.test) & NONE.union(*map(writes, block))
            if (not between or reads_the_same(between, read)) and not changed:
                return _Chosen(read, branch.test, arm is branch.orelse, operands)
    return None


def _makes(arm: Sequence[ast.stmt], name: str) -> bool:
    """Whether an arm gives a variable something, and reads it from no slot."""
    made = [each for each in arm if name in writes(each)]
    return len(made) == 1 and isinstance(made[0], ast.Assign) and not is_read(made[0])


def _operands(block: Sequence[ast.stmt], name: str) -> list[ast.expr]:
    """The second operands of a variable, cast maybe, of products whose first one is read from shared memory there."""
    found: list[ast.expr] = []
    for node in (node for statement in block for node in nodes_in(statement)):
        match node:
            case ast.Call(args=[first, second, *_]) if called(node) == _PRODUCT and called(first) == "load":
                found += [second] if tile_of(second) == name else []
    return found
