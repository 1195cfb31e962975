"""Operands of a product that come from before its loop: Triton puts them into memory, or converts them, once."""

from __future__ import annotations

from collections.abc import Mapping

from tt2gl.ir.operations import Operation, Value

_READS = {"ttg.convert_layout", "ttg.local_load", "ttg.memdesc_reshape", "ttg.memdesc_trans", "tt.trans"}
"""What operands are read by, wherever they come from."""


def is_at_hand(side: Value, product: Operation, made: Mapping[int, Operation], loops: Mapping[int, int]) -> bool:
    """Whether a product in a loop reads an operand that comes from before it.

    `made`: the operation that makes each value, `loops`: the innermost loop around each operation, all by identity.
    """
    source, loop = made.get(id(side)), loops.get(id(product))
    while source is not None and loop is not None and loops.get(id(source)) == loop and source.name in _READS:
        source = made.get(id(source.operands[0]))
    return loop is not None and source is not None and loops.get(id(source)) != loop
