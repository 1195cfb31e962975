"""Matrix products: `tt.dot` and, of operands with shared scales, `tt.dot_scaled`; 4-bit floats."""

from __future__ import annotations

from tt2gl.ir.operations import Operation, Value
from tt2gl.ir.types import TensorType, element_type
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.microscaling import F32, FORMATS, OCP, e2m1_values, nibbles, scaled_operand
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

SCALE_ENDS = "tt2gl.scale_ends"
"""What exponents of 0 and 255 are as scales of a `tt.dot_scaled`: an attribute where not 2**-127 and NaN."""

# By the number of `inputPrecision`.
PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


@handles("tt.dot")
def _dot(run: Run, operation: Operation, a: Array, b: Array, c: Array) -> Array:
    precision = PRECISIONS[int(operation.attributes.get("inputPrecision", 2))]
    result = operation.results[0].type
    if isinstance(result, TensorType) and result.encoding is not None and result.encoding.name == "ttg.blocked":
        # Multiply-adds of whole floats, whatever is allowed: no matrix instruction has a blocked result.
        precision = "ieee"
    first, second = (element_type(operand.type) for operand in operation.operands[:2])
    return run.arithmetic.matmul(a, b, c, (first, second, element_type(operation.results[0].type)), precision)


@handles("tt.dot_scaled")
def _dot_scaled(run: Run, operation: Operation, a: Array, b: Array, c: Array, *scales: Array) -> Array:
    # Elements times scales fit into float32, so this is exact but for the sums.
    _, _, _, *groups = operation.segments()
    given = iter(scales)
    left, right = (
        _scaled(run, operation, position, elements, next(given) if group else None, group)
        for position, (elements, group) in enumerate(zip((a, b), groups, strict=True))
    )
    return run.arithmetic.matmul(left, right, c, (F32, F32, element_type(operation.results[0].type)), "ieee")


def _scaled(
    run: Run, operation: Operation, position: int, elements: Array, scales: Array | None, group: tuple[Value, ...]
) -> Array:
    """An operand in f32, times its scales where it has any: `position` 0 is the left one."""
    side, packing = (("a", "lhs_k_pack"), ("b", "rhs_k_pack"))[position]
    summed, other = (elements.ndim - 1 - position, elements.ndim - 2 + position)
    # Two 4-bit elements share a byte along the dimension that is summed over, or else along the other.
    axes = summed, summed if operation.attributes.get(packing, True) else other
    kind = operation.operands[position].type
    scale_kind = group[0].type if group else None
    return scaled_operand(
        elements,
        kind,
        FORMATS[int(operation.attributes[f"{side}_elem_type"])],
        scales,
        scale_kind,
        axes,
        run.arithmetic,
        operation.attributes.get(SCALE_ENDS, OCP),
    )


@handles("ttg.fp4_to_fp")
def _fp4_to_fp(run: Run, operation: Operation, packed: Array) -> Array:
    axis = int(operation.attributes["axis"]) + 1
    values = e2m1_values(nibbles(packed, axis), run.arithmetic)
    return run.arithmetic.convert(values, F32, element_type(operation.results[0].type))
