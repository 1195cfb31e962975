"""Rule `bounces` on AMD: an operand is put into shared memory right above the first product that reads it.

There Triton has it. Put there where it is loaded, and read before the next one takes its place, it waits for the other
operands and for other products in registers as the product has it, in many lanes at once, for what each loaded: two
products of 32x64x64 by ordinary instructions spill 688 bytes on gfx1201 for none, and take 542 registers for 132 on
gfx1250.

They come in the order in which the product has them, but what it casts goes first: Triton converts a tile above its
cast, and the cast stands above what the product converts.

    k_smem = gl.allocate_shared_memory(k.dtype, [BLOCK_K, BLOCK_N], k_shared, k)            # before
    h = gl.amd.cdna3.buffer_load(h_ptr, offsets)
    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_M, BLOCK_K], h_shared, h)
    acc = gl.dot_fma(h_smem.load(lhs_layout), k_smem.load(rhs_layout), acc)

    h = gl.amd.cdna3.buffer_load(h_ptr, offsets)                                            # after
    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_M, BLOCK_K], h_shared, h)
    k_smem = gl.allocate_shared_memory(k.dtype, [BLOCK_K, BLOCK_N], k_shared, k)
    acc = gl.dot_fma(h_smem.load(lhs_layout), k_smem.load(rhs_layout), acc)
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.at_once import is_amd_product, reads_of
from tt2gl.rewrite.bounces import bounce_of, names_bound
from tt2gl.rewrite.dots import names_in
from tt2gl.visitors import Editor


def put_late(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products by AMD's instructions have their operands put into memory right above them."""
    if not any(isinstance(node, cst.Call) and is_amd_product(node) for node in walk(function)):
        return function
    made = function.visit(_PutLate())
    assert isinstance(made, cst.FunctionDef)
    return made


class _PutLate(Editor):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        body = list(updated_node.body)
        late: dict[int, list[tuple[int, cst.BaseStatement]]] = {}
        for at, line in enumerate(body):
            if (found := _reader(body, at)) is not None:
                reader, rank = found
                late.setdefault(reader, []).append((rank, line))
        moved = {id(line) for lines in late.values() for _, line in lines}
        made: list[cst.BaseStatement] = []
        comments: list[cst.EmptyLine] = []
        for at, line in enumerate(body):
            comments += getattr(line, "leading_lines", ())
            if id(line) in moved:
                continue
            for each in (*(each for _, each in sorted(late.get(at, ()), key=itemgetter(0))), line):
                made.append(each.with_changes(leading_lines=comments) if hasattr(each, "leading_lines") else each)
                comments = []
        return updated_node.with_changes(body=made)


def _reader(body: Sequence[cst.BaseStatement], at: int) -> tuple[int, int] | None:
    """The statement of the product that first reads the memory which a statement makes, and what its turn there is."""
    line = body[at]
    if (bounce := bounce_of(line)) is None:
        return None
    asked = set(names_in(line)) - {bounce[0]}
    for after in range(at + 1, len(body)):
        if bounce[0] in names_in(body[after]):
            found = list(reads_of(body[after], bounce[0]))
            if not found:
                return None
            side, reading = found[0]
            return after, 2 * (side != "lhs") + 4 * (not _is_cast(reading))
        if names_bound(body[after]) & asked:
            return None
    return None


def _is_cast(reading: cst.Call) -> bool:
    """Whether what is read is cast, too."""
    return isinstance(reading.func, cst.Attribute) and reading.func.attr.value == "to"
