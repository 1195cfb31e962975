"""Pointers that only step from tile to tile do so before the copies that read them, not after the last ones.

for k in gl.static_range(NUM_STAGES - 1):                                          # before
    async_load(a_buf.index(k), a_ptrs, mask=k < steps)
    async_copy.commit_group()
    a_ptrs += BLOCK_K

for k in gl.static_range(NUM_STAGES - 1):                                          # after
    if k > 0:
        a_ptrs += BLOCK_K
    async_load(a_buf.index(k), a_ptrs, mask=k < steps)
    async_copy.commit_group()

The same in the loop itself, without the condition. Triton's pipeliner has them there. ptxas then takes other registers
and another order for all of a body that computes with tiles in registers: on an H200 a product with 8-bit weights went
from 0.88 of Triton's speed to 0.99, one with shared scales from 0.88 to 1.01; one whose scales are looked up by groups
spills 6 registers a thread for 12 on sm80 (Triton's kernel 6). Where a product runs on in the background
it costs up to 6% instead, as the additions come between its wait and the copies. Where a loop waits for all products by
wgmma at once, there is no such wait: one of 8-bit integers takes 120 registers for 128 on sm90 (Triton's kernel 120),
and the chunks of a retention spill 14 registers a thread for 16 (14). That is where products read all tiles where they
lie: one whose weights of 4 bits are unpacked in registers takes 154 for 128.

So it is with loads to registers on AMD: a step of products with 4-bit weights that wait there waits for memory 9 and 32
times on gfx950, as Triton's, where it waited 16 and 34 times.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from tt2gl.pipelining.flow import reads, writes
from tt2gl.pipelining.trees import code
from tt2gl.pipelining.walking import Lines


def stepping(steps: Sequence[cst.BaseStatement], others: Sequence[cst.BaseStatement], variable: str) -> bool:
    """Whether statements after copies only add to pointers what neither they nor the `others` of an iteration change.

    `variable` is what the iterations are counted by: a step that reads it would be another one an iteration later.
    """
    trees = [ast.parse(code(line)).body[0] for line in steps]
    names = [node.target.id for node in trees if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)]
    if not names or len(names) < len(trees) or len(set(names)) < len(names):
        return False
    changed = {variable, *names}.union(*(writes(ast.parse(code(line))) for line in others))
    free = all(not reads(node.value) & changed for node in trees if isinstance(node, ast.AugAssign))
    return free and not any(name in writes(ast.parse(code(line))) for name in names for line in others)


def after_first(steps: Lines, stage: str) -> Lines:
    """The steps in a prologue counted by `stage`, whose first copies need none."""
    return [cst.If(cst.parse_expression(f"{stage} > 0"), cst.IndentedBlock(steps))]
