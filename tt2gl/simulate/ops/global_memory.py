"""Loads and stores through pointers. Cache modifiers and eviction policies change no value."""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.block_pointers import BlockPointer, load_block, store_block
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("tt.load")
def _load(run: Run, operation: Operation, pointer: Array | BlockPointer, *rest: Array) -> Array:
    masks, others = operation.segments()[1:]
    mask = rest[0] if masks else None
    other = rest[-1] if others else None
    kind = operation.results[0].type
    if isinstance(pointer, BlockPointer):
        return load_block(run, operation, pointer)
    return run.memory.load(together(pointer, mask, other), mask, kind, operation.location, other)


@handles("tt.store")
def _store(run: Run, operation: Operation, pointer: Array | BlockPointer, value: Array, *rest: Array) -> None:
    mask = rest[0] if rest else None
    if isinstance(pointer, BlockPointer):
        store_block(run, operation, pointer, value)
        return
    kind = operation.operands[1].type
    run.memory.store(together(pointer, value, mask), value, mask, kind, operation.location)


def together(address: Array, *others: Any) -> Array:
    """Addresses with a row for each program, where any of the other operands has them."""
    count = max([len(address), *(len(other) for other in others if other is not None)])
    return address if count == len(address) else np.broadcast_to(address, (count, *address.shape[1:]))
