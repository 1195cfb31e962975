"""AMD's operations on tensors: slices in registers, scaled conversions, and what tells the scheduler alone."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import element_type, shape_of
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.microscaling import F32, e2m1_codes, e2m1_values, nibbles, packed, scale_values, spread
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("amdg.extract_slice")
def _extract_slice(_run: Run, operation: Operation, source: Array) -> Array:
    starts = operation.attributes["static_offsets"]
    sizes = shape_of(operation.results[0].type)
    return source[(slice(None), *(slice(first, first + size) for first, size in zip(starts, sizes, strict=True)))]


@handles("amdg.concat")
def _concat(_run: Run, operation: Operation, *sources: Array) -> Array:
    """The sources as tiles of the result, row by row."""
    tile = shape_of(operation.operands[0].type)
    whole = shape_of(operation.results[0].type)
    grid = [size // part for size, part in zip(whole, tile, strict=True)]
    result = np.empty((max(len(source) for source in sources), *whole), sources[0].dtype)
    for position, source in zip(np.ndindex(*grid), sources, strict=True):
        place = (slice(at * part, (at + 1) * part) for at, part in zip(position, tile, strict=True))
        result[(slice(None), *place)] = source
    return result


@handles("amdg.in_thread_transpose")
def _in_thread_transpose(_run: Run, _operation: Operation, source: Array) -> Array:
    # Only which register holds an element changes.
    return source


# --------------------------------------------------------------------------------------------- scaled conversions


@handles("amdg.scaled_upcast_fp4", "amdg.scaled_upcast_fp8")
def _scaled_upcast(run: Run, operation: Operation, source: Array, scale: Array) -> Array:
    """Elements times their scales, rounded once."""
    arithmetic = run.arithmetic
    if operation.name == "amdg.scaled_upcast_fp4":
        values = e2m1_values(nibbles(source, operation.attributes["axis"] + 1), arithmetic)
    else:
        values = arithmetic.convert(source, element_type(operation.operands[0].type), F32)
    factors = scale_values(scale, operation.operands[1].type, arithmetic)
    for axis, extent in enumerate(values.shape[1:], 1):
        factors = spread(factors, axis, extent)
    product = arithmetic.binary("mul", values, factors, F32)
    return arithmetic.convert(product, F32, element_type(operation.results[0].type))


def _divided(run: Run, operation: Operation, source: Array, scale: Array) -> Array:
    """Elements over the scales of their blocks, as f32."""
    axis = operation.attributes["axis"] + 1
    factors = scale_values(scale, operation.operands[1].type, run.arithmetic)
    factors = spread(factors, axis, source.shape[axis])
    values = run.arithmetic.convert(source, element_type(operation.operands[0].type), F32)
    return run.arithmetic.binary("div", values, factors, F32)


@handles("amdg.scaled_downcast_fp8")
def _scaled_downcast_fp8(run: Run, operation: Operation, source: Array, scale: Array) -> Array:
    quotient = _divided(run, operation, source, scale)
    return run.arithmetic.convert(quotient, F32, element_type(operation.results[0].type))


@handles("amdg.scaled_downcast_fp4")
def _scaled_downcast_fp4(run: Run, operation: Operation, source: Array, scale: Array) -> Array:
    if run.arithmetic.name == "field":
        raise Unsupported(operation, "field arithmetic has no 4-bit floats to pack")
    return packed(e2m1_codes(_divided(run, operation, source, scale)), operation.attributes["axis"] + 1)


def repacked(source: Array, rows: bool) -> Array:
    """Bytes with two 4-bit elements each along one of the last two dimensions, packed along the other instead.

    `rows` says that they are packed along the first of the two; then its extent doubles and the other's halves.
    """
    first, last = source.ndim - 2, source.ndim - 1
    along, other = (first, last) if rows else (last, first)
    return packed(nibbles(source, along), other)


# ------------------------------------------------------------------------------------------------- the scheduler


@handles(
    "rocdl.sched.barrier",
    "rocdl.sched.group.barrier",
    "rocdl.iglp.opt",
    "rocdl.s.setprio",
    "amdg.instruction_sched_hint",
)
def _scheduling(_run: Run, _operation: Operation) -> None:
    """Borders of a warp pipeline, priorities, and what instructions may move where: results do not depend on them."""
