"""Functions of numbers: the `math` dialect, one operand or three."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.scalar_functions import UNARY
from tt2gl.simulate.values import Array

_ROUNDING = ("absf", "sqrt", "floor", "ceil", "trunc", "round", "roundeven")


@handles(*(f"math.{name}" for name in (*UNARY, *_ROUNDING)))
def _function(run: Run, operation: Operation, a: Array) -> Array:
    return run.arithmetic.unary(operation.name.removeprefix("math."), a, operation.results[0].type)


@handles("tt.precise_sqrt")
def _square_root(run: Run, operation: Operation, a: Array) -> Array:
    return run.arithmetic.unary("sqrt", a, operation.results[0].type)


@handles("math.fma")
def _fused(run: Run, operation: Operation, a: Array, b: Array, c: Array) -> Array:
    return run.arithmetic.fma(a, b, c, operation.results[0].type)


@handles("math.absi")
def _absolute(_run: Run, _operation: Operation, a: Array) -> Array:
    return a if a.dtype == np.bool_ else np.abs(a)
