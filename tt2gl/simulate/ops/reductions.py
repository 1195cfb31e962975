"""Reductions: element i meets element i + N/2, and so on in halves, whatever the region does."""

from __future__ import annotations

from typing import Any

from tt2gl.ir.operations import Operation
from tt2gl.simulate.combining import along, combiner, common_rows
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import packed
from tt2gl.simulate.registry import ends_block, handles
from tt2gl.simulate.values import Array

ends_block("tt.reduce.return")


@handles("tt.reduce")
def _reduce(run: Run, operation: Operation, *operands: Array) -> Any:
    axis = int(operation.attributes["axis"])
    operands = tuple(common_rows(operands))
    shape = operands[0].shape
    length = shape[axis + 1]
    if length & (length - 1):
        raise Unsupported(operation, f"it reduces {length} elements, no power of two")
    combine = combiner(run, operation)
    values = [along(operand, axis) for operand in operands]
    while length > 1:
        length //= 2
        values = combine([value[:, :length] for value in values], [value[:, length:] for value in values])
    left = (*shape[: axis + 1], *shape[axis + 2 :])
    return packed(operation, [value.reshape(left) for value in values])
