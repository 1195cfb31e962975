"""Constants, integers, floats and choices: the `arith` dialect and the elementwise operations of `tt` like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tt2gl.ir.attributes import Dense, FloatAttr
from tt2gl.ir.operations import Operation
from tt2gl.ir.types import Type, shape_of
from tt2gl.simulate import integers
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.formats import integer_of, narrow
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, dtype_of, uniform

# ------------------------------------------------------------------------------------------------------ constants


@handles("arith.constant")
def _constant(run: Run, operation: Operation) -> Array:
    kind = operation.results[0].type
    return run.arithmetic.from_bits(literal(operation.attributes["value"], kind), kind)


def literal(value: Any, kind: Type) -> Array:
    """A constant attribute in numpy's format of `kind`: an array of shape (1, *shape)."""
    dtype, shape = dtype_of(kind), shape_of(kind)
    if not isinstance(value, Dense):
        return np.full((1, *shape), _element(value, dtype), dtype)
    if value.is_splat:
        return np.full((1, *shape), _element(value.elements[0], dtype), dtype)
    if isinstance(value.elements[0], FloatAttr):
        return np.array([_element(element, dtype) for element in value.elements], dtype).reshape(1, *shape)
    return np.array(value.elements, np.int64).astype(dtype).reshape(1, *shape)


def _element(value: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(value, FloatAttr):
        return np.array([value]).astype(dtype)[0]
    if value.bits is not None:
        return np.array([value.bits], integer_of(dtype)).view(dtype)[0]
    return narrow(np.array([value.value], np.float64), dtype)[0]


@handles("ub.poison")
def _poison(run: Run, operation: Operation) -> Array:
    kind = operation.results[0].type
    return np.full((1, *shape_of(kind)), run.arithmetic.poison(kind), run.arithmetic.dtype(kind))


# ------------------------------------------------------------------------------------------------------- integers

_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "addi": integers.add,
    "subi": integers.subtract,
    "muli": integers.multiply,
    "divsi": integers.divide,
    "divui": integers.divide_unsigned,
    "ceildivsi": integers.ceil_divide,
    "ceildivui": integers.ceil_divide_unsigned,
    "floordivsi": integers.floor_divide,
    "remsi": integers.remainder,
    "remui": integers.remainder_unsigned,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": integers.shift_left,
    "shrsi": integers.shift_right,
    "shrui": integers.shift_right_unsigned,
    "minsi": integers.minimum,
    "maxsi": integers.maximum,
    "minui": integers.minimum_unsigned,
    "maxui": integers.maximum_unsigned,
}


def _integer(function: Callable[[Array, Array], Array]) -> Any:
    def handler(_run: Run, _operation: Operation, a: Array, b: Array) -> Array:
        return function(a, b)

    return handler


for _name, _function in _INTEGERS.items():
    handles(f"arith.{_name}")(_integer(_function))


@handles("arith.addui_extended")
def _add_extended(_run: Run, _operation: Operation, a: Array, b: Array) -> tuple[Array, Array]:
    total = integers.add(a, b)
    overflow = a & b if a.dtype == np.bool_ else integers.unsigned(total) < integers.unsigned(a)
    return total, overflow


@handles("arith.mulsi_extended")
def _multiply_extended(_run: Run, _operation: Operation, a: Array, b: Array) -> tuple[Array, Array]:
    return integers.multiply(a, b), integers.multiply_high(a, b, signed=True)


@handles("arith.mului_extended")
def _multiply_unsigned_extended(_run: Run, _operation: Operation, a: Array, b: Array) -> tuple[Array, Array]:
    return integers.multiply(a, b), integers.multiply_high(a, b, signed=False)


@handles("tt.mulhiui")
def _multiply_high(_run: Run, _operation: Operation, a: Array, b: Array) -> Array:
    return integers.multiply_high(a, b, signed=False)


@handles("arith.cmpi")
def _compare_integers(_run: Run, operation: Operation, a: Array, b: Array) -> Array:
    return integers.compare(operation.attributes["predicate"], a, b)


# --------------------------------------------------------------------------------------------------------- floats

_FLOATS = {
    "arith.addf": "add",
    "arith.subf": "sub",
    "arith.mulf": "mul",
    "arith.divf": "div",
    "arith.remf": "rem",
    "arith.minnumf": "minnum",
    "arith.maxnumf": "maxnum",
    "arith.minimumf": "minimum",
    "arith.maximumf": "maximum",
    "tt.precise_divf": "div",
    "tt.approx_divf": "div",
    "math.powf": "pow",
    "math.atan2": "atan2",
    "math.copysign": "copysign",
}

_PREDICATES = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")


@handles(*_FLOATS)
def _float(run: Run, operation: Operation, a: Array, b: Array) -> Array:
    return run.arithmetic.binary(_FLOATS[operation.name], a, b, operation.results[0].type)


@handles("arith.negf")
def _negate(run: Run, operation: Operation, a: Array) -> Array:
    return run.arithmetic.unary("neg", a, operation.results[0].type)


@handles("arith.cmpf")
def _compare_floats(run: Run, operation: Operation, a: Array, b: Array) -> Array:
    predicate = operation.attributes["predicate"]
    if predicate in (0, 15):
        return np.full(np.broadcast_shapes(a.shape, b.shape), predicate == 15)
    return run.arithmetic.compare(_PREDICATES[predicate - 1], a, b, operation.operands[0].type)


@handles("tt.clampf")
def _clamp(run: Run, operation: Operation, x: Array, low: Array, high: Array) -> Array:
    kind, binary = operation.results[0].type, run.arithmetic.binary
    # PropagateNan: 0 is none, 0xFFFF is all.
    keeps_nan = bool(operation.attributes.get("propagateNan", 0))
    least, greatest = ("minimum", "maximum") if keeps_nan else ("minnum", "maxnum")
    return binary(least, binary(greatest, x, low, kind), high, kind)


# -------------------------------------------------------------------------------------------------------- choices


@handles("arith.select")
def _select(run: Run, operation: Operation, condition: Array, a: Any, b: Any) -> Any:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        taken = uniform(condition) if condition.size == condition.shape[0] else None
        if taken is None:
            raise Unsupported(operation, "programs choose different views or descriptors")
        return a if taken else b
    if condition.ndim < a.ndim:
        condition = condition.reshape(condition.shape[0], *(1,) * (a.ndim - 1))
    return np.where(condition, a, b)
