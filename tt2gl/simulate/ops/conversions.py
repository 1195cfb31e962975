"""From one type of number to another, and the same bits as another type."""

from __future__ import annotations

from tt2gl.ir.operations import Operation
from tt2gl.simulate import integers
from tt2gl.simulate.arithmetic import Rounding
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, byte_size, dtype_of, is_float


@handles("arith.extsi", "arith.extui")
def _extend(_run: Run, operation: Operation, a: Array) -> Array:
    return integers.extend(a, dtype_of(operation.results[0].type), signed=operation.name == "arith.extsi")


@handles("arith.trunci")
def _truncate(_run: Run, operation: Operation, a: Array) -> Array:
    return integers.truncate(a, dtype_of(operation.results[0].type))


@handles("arith.index_cast", "arith.index_castui")
def _index(_run: Run, operation: Operation, a: Array) -> Array:
    target = operation.results[0].type
    if byte_size(target) > a.dtype.itemsize:
        return integers.extend(a, dtype_of(target), signed=operation.name == "arith.index_cast")
    return integers.truncate(a, dtype_of(target))


@handles("arith.extf", "arith.truncf")
def _float(run: Run, operation: Operation, a: Array) -> Array:
    return run.arithmetic.convert(a, operation.operands[0].type, operation.results[0].type)


@handles("tt.fp_to_fp")
def _float_to_float(run: Run, operation: Operation, a: Array) -> Array:
    # RoundingMode: 0 is towards zero, 1 to nearest even; none where the target holds every value of the source.
    rounding: Rounding = "rtz" if operation.attributes.get("rounding") == 0 else "rtne"
    return run.arithmetic.convert(a, operation.operands[0].type, operation.results[0].type, rounding)


@handles("arith.sitofp", "arith.uitofp")
def _from_integer(run: Run, operation: Operation, a: Array) -> Array:
    signed = operation.name == "arith.sitofp"
    return run.arithmetic.from_integer(a, signed, operation.operands[0].type, operation.results[0].type)


@handles("arith.fptosi", "arith.fptoui")
def _to_integer(run: Run, operation: Operation, a: Array) -> Array:
    signed = operation.name == "arith.fptosi"
    return run.arithmetic.to_integer(a, signed, operation.operands[0].type, operation.results[0].type)


@handles("arith.bitcast", "tt.bitcast")
def _bitcast(run: Run, operation: Operation, a: Array) -> Array:
    source, target = operation.operands[0].type, operation.results[0].type
    if is_float(source) or is_float(target):
        return run.arithmetic.bitcast(a, source, target)
    # A byte and a boolean in it; pointers of any kind.
    return a.view(dtype_of(target))


@handles("tt.int_to_ptr", "tt.ptr_to_int")
def _pointer(_run: Run, operation: Operation, a: Array) -> Array:
    return a.view(dtype_of(operation.results[0].type))
