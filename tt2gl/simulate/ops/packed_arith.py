"""Blackwell's arithmetic on two or four elements at a time (`ttng.packed_arith`), element by element here."""

from __future__ import annotations

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import element_type
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

# By the number of `op_kind`. The instructions for min and max take a number where the other is NaN.
_KINDS = ("add", "sub", "mul", "fma", "minnum", "maxnum")


@handles("ttng.packed_arith")
def _packed_arith(run: Run, operation: Operation, *operands: Array) -> Array:
    kind = element_type(operation.results[0].type)
    if any(element_type(operand.type) != kind for operand in operation.operands):
        raise Unsupported(operation, f"operands are not all {kind}")
    name = _KINDS[operation.attributes["op_kind"]]
    if name == "fma":
        first, second, addend = operands
        return run.arithmetic.fma(first, second, addend, kind)
    first, second = operands
    return run.arithmetic.binary(name, first, second, kind)
