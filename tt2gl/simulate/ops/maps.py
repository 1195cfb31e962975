"""`tt.map_elementwise`: a region of scalars for every element, or for every few neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.combining import common_rows, for_each
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import packed
from tt2gl.simulate.registry import ends_block, handles
from tt2gl.simulate.values import Array

ends_block("tt.map_elementwise.return")


@handles("tt.map_elementwise")
def _map_elementwise(run: Run, operation: Operation, *operands: Array) -> Any:
    pack = int(operation.attributes.get("pack", 1))
    values = common_rows(operands)
    shape = values[0].shape
    if np.prod(shape[1:]) % pack:
        raise Unsupported(operation, f"{pack} elements at a time do not divide its tensor")
    groups = [value.reshape(len(value), -1, pack) for value in values]
    results = for_each(run, operation.regions[0], [group[..., place] for group in groups for place in range(pack)])
    parts = [results[start : start + pack] for start in range(0, len(results), pack)]
    return packed(operation, [np.stack(part, axis=-1).reshape(shape) for part in parts])
