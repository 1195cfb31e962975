"""`tt.extern_elementwise`: functions of the vendors' device libraries."""

from __future__ import annotations

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import element_type
from tt2gl.simulate import libdevice
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("tt.extern_elementwise")
def _extern(run: Run, operation: Operation, *operands: Array) -> Array:
    symbol = operation.attributes["symbol"]
    function = libdevice.find(symbol)
    if function is None:
        raise Unsupported(operation, f"the simulator does not know {symbol}")
    kinds = tuple(element_type(operand.type) for operand in operation.operands)
    return function(libdevice.Call(run.arithmetic, operands, kinds, element_type(operation.results[0].type)))
