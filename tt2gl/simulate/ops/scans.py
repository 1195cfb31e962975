"""Prefix scans: neighbours are combined in pairs, the pairs scanned, and what lies between filled in.

The order depends on the length alone; it is that of Brent and Kung's parallel prefix, of twice as many combinations as
elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.combining import Combine, along, combiner, common_rows
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import packed
from tt2gl.simulate.registry import ends_block, handles
from tt2gl.simulate.values import Array

ends_block("tt.scan.return")


@handles("tt.scan")
def _scan(run: Run, operation: Operation, *operands: Array) -> Any:
    axis = int(operation.attributes["axis"])
    backwards = bool(operation.attributes.get("reverse", False))
    operands = tuple(common_rows(operands))
    values = [along(operand, axis) for operand in operands]
    if backwards:
        values = [value[:, ::-1] for value in values]
    values = _prefixes(combiner(run, operation), values)
    if backwards:
        values = [value[:, ::-1] for value in values]
    return packed(operation, [value.reshape(operands[0].shape) for value in values])


def _prefixes(combine: Combine, values: list[Array]) -> list[Array]:
    """All prefixes along the middle axis of three."""
    length = values[0].shape[1]
    if length == 1:
        return values
    even = length - length % 2
    pairs = _prefixes(combine, combine([v[:, 0:even:2] for v in values], [v[:, 1:even:2] for v in values]))
    results = [np.empty_like(value) for value in values]
    for result, pair, value in zip(results, pairs, values, strict=True):
        result[:, 1::2] = pair
        result[:, 0] = value[:, 0]
    if length > 2:
        later = [value[:, 2::2] for value in values]
        between = combine([pair[:, : later[0].shape[1]] for pair in pairs], later)
        for result, found in zip(results, between, strict=True):
            result[:, 2::2] = found
    return results
