"""Operands that each iteration computes, in shared memory of their own: made before the loop, their products run on.

for k in range(0, K, BLOCK_K):                                                                      # before
    b_smem = gl.allocate_shared_memory(b.dtype, [BLOCK_K, BLOCK_N], b_shared, b)
    acc = _tt2gl_tcgen05(a_buf.index(slot), b_smem, acc, ...)

b_smem = gl.allocate_shared_memory(a_buf.dtype, [BLOCK_K, BLOCK_N], b_shared)                       # after
for k in range(0, K, BLOCK_K):
    mbarrier.wait(mma_bar, mma_phase ^ 1)
    b_smem.store(b)
    tcgen05_mma(a_buf.index(slot), b_smem, acc_tmem)
    ...

Nothing else is put into that memory, so that a product may read it until the next iteration is about to: Triton's
pipeliner takes such allocations out of the loop, too, and waits there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.operands import memory, place, viewed
from tt2gl.pipelining.static import called


@dataclass(frozen=True)
class Computed:
    """An operand's memory: its name, what makes it before the loop, and the value that an iteration stores."""

    name: str
    made: str
    value: str


def computed_operand(
    loop: ast.For, product: ast.stmt, operand: ast.expr, other: ast.expr
) -> tuple[ast.stmt, Computed] | None:
    """The statement that allocates an operand of a product in each iteration, and its memory; None for others.

    The other operand lies in a ring, which says the type of both.
    """
    index, name = loop.body.index(product), viewed(operand)
    if not isinstance(name, ast.Name) or place(other, index, loop.body) != "ring":
        return None
    ring = memory(other, index, loop.body)
    binding = [each for each in inside(loop.body) if name.id in writes(each)]
    match binding:
        case [ast.Assign(targets=[ast.Name()], value=ast.Call(args=[_, dims, layout, value], keywords=[])) as made] if (
            called(made.value) == "allocate_shared_memory" and made in loop.body[:index]
        ):
            changed = frozenset().union(writes(loop.target), *map(writes, loop.body))
            if ring is None or (reads(dims) | reads(layout)) & changed:
                return None
            source = f"gl.allocate_shared_memory({ring}.dtype, {ast.unparse(dims)}, {ast.unparse(layout)})"
            return made, Computed(name.id, f"{name.id} = {source}", ast.unparse(value))
    return None


def read_by_others(loop: ast.For, name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether a name is read by other statements of a loop than these."""
    return any(name in reads(each) for each in loop.body if each not in statements)
