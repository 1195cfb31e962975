"""Elements picked or counted by their values: `tt.gather`, `tt.histogram`."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import shape_of
from tt2gl.simulate.combining import common_rows
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, narrowed


@handles("tt.gather")
def _gather(run: Run, operation: Operation, source: Array, indices: Array) -> Array:
    axis = int(operation.attributes["axis"]) + 1
    source, indices = common_rows([source, indices])
    extent = source.shape[axis]
    few = narrowed(indices)
    inside = (few >= 0) & (few < extent)
    if inside.all():
        return np.take_along_axis(source, indices.astype(np.int64), axis)
    worst = int(few[~inside][0])
    message = f"gather takes element {worst} of {extent}"
    run.memory.report(Finding("out-of-bounds", message, operation.location))
    kept = np.broadcast_to(inside, indices.shape)
    found = np.take_along_axis(source, np.where(kept, indices, 0).astype(np.int64), axis)
    found[~kept] = run.arithmetic.poison(operation.results[0].type)
    return found


@handles("tt.histogram")
def _histogram(_run: Run, operation: Operation, values: Array, *mask: Array) -> Array:
    (bins,) = shape_of(operation.results[0].type)
    if mask:
        values, kept = common_rows([values, mask[0]])
    # The hardware looks at as many low bits as number the bins.
    places = (values & (bins - 1)) + bins * np.arange(len(values))[:, None]
    counted = places[kept] if mask else places.reshape(-1)
    return np.bincount(counted, minlength=bins * len(values)).reshape(len(values), bins).astype(np.int32)
