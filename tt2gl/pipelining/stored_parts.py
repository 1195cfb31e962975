"""Offsets that stores behind loops write by are a scalar and the rest, as Triton has AMD's.

offs_m = pid_m * BLOCK_M + gl.arange(0, BLOCK_M, layout=acc_layout)
for k in range(0, K, BLOCK_K):
    ...
out_offsets = offs_m[:, None] * stride + offs_n[None, :]                                                # before

out_offsets = pid_m * BLOCK_M * stride + (gl.arange(0, BLOCK_M, layout=acc_layout)[:, None] * stride + ...)     # after

Triton's pass for pointers takes them apart so. The ranges are made again from the number of the thread, where the rows
of the program would be held, a register for each, through loops that have none to spare: attention of 128 rows on
gfx1201 took 256 registers and spilled 28 where Triton's took 242 and spilled none, and takes 242. Waves of MFMA have
512 registers, and come out alike: their stores stay as they are. So do those behind a loop of more than two products,
which spills whatever is held: the gradient of attention's queries spilled 457 on gfx1100 where it spills 400.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tt2gl.pipelining.static import called
from tt2gl.pipelining.uniform_parts import Kernel
from tt2gl.trees import nodes_in, python_tree

# A statement's place in the text: first line and column, last line and column, columns in bytes.
_Span = tuple[int, int, int, int]

# Of how many products loops may be.
_PRODUCTS = 2


def with_stored_parts(text: str, kernels: Collection[str]) -> str:
    """The text with what some kernels, by name, store behind their loops written so."""
    lines = text.split("\n")
    edits: list[tuple[_Span, str]] = []
    for node in nodes_in(python_tree(text)):
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            edits += _edits(Kernel(node, lines), lines)
    for (first, start, last, end), made in sorted(edits, reverse=True):
        before, after = lines[first - 1].encode()[:start].decode(), lines[last - 1].encode()[end:].decode()
        lines[first - 1 : last] = [f"{before}{made}{after}"]
    return "\n".join(lines)


def _edits(kernel: Kernel, lines: list[str]) -> Iterator[tuple[_Span, str]]:
    """The offsets of a kernel that are written anew."""
    loops = [each for each in kernel.tree.body if isinstance(each, ast.For) and called(each.iter) == "range"]
    products = [
        node for loop in loops for node in nodes_in(loop) if isinstance(node, ast.Call) and called(node) == "wmma"
    ]
    if not 0 < len(products) <= _PRODUCTS:
        return
    behind = [each for each in kernel.tree.body if each.lineno > loops[-1].lineno and each not in loops]
    calls = [node for each in behind for node in nodes_in(each) if isinstance(node, ast.Call)]
    offsets = [call.args[2] for call in calls if called(call) == "buffer_store" and len(call.args) > 2]
    named = {node.id for node in offsets if isinstance(node, ast.Name)} & kernel.once
    offsets += [
        each.value
        for each in behind
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id in named
    ]
    for node in offsets:
        if isinstance(node, ast.Name):
            continue
        span = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        parts = kernel.parts(node, node.lineno)
        if parts.scalar and parts.tensor and not any("#" in line for line in lines[span[0] - 1 : span[2]]):
            yield span, f"{parts.scalar} + ({parts.tensor})"


__all__ = ["with_stored_parts"]
