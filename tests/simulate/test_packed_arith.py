"""Blackwell's packed arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import FloatType
from tt2gl.simulate.api import TensorInput, simulate
from tt2gl.simulate.findings import SimulationError

F16 = FloatType("f16")
X = np.array([1.5, -2, np.nan, 4], np.float16)
Y = np.array([0.1, -3, 1, np.nan], np.float16)


def run(kind: int, count: int, addend: str = "f16") -> np.ndarray:
    operands = ", ".join(["%0", "%1", "%c"][:count])
    types = ", ".join(["tensor<4xf16>", "tensor<4xf16>", f"tensor<4x{addend}>"][:count])
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<f16>, !tt.ptr<f16>) -> (), sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>):
    %i = "tt.make_range"() <{{end = 4 : i32, start = 0 : i32}}> : () -> tensor<4xi32>
    %0 = "amdg.buffer_load"(%x, %i) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}}>
      : (!tt.ptr<f16>, tensor<4xi32>) -> tensor<4xf16>
    %1 = "amdg.buffer_load"(%y, %i) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}}>
      : (!tt.ptr<f16>, tensor<4xi32>) -> tensor<4xf16>
    %c = "arith.constant"() <{{value = dense<1.0> : tensor<4x{addend}>}}> : () -> tensor<4x{addend}>
    %r = "ttng.packed_arith"({operands}) <{{op_kind = {kind} : i32}}> : ({types}) -> tensor<4xf16>
    "amdg.buffer_store"(%r, %x, %i) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}>
      : (tensor<4xf16>, !tt.ptr<f16>, tensor<4xi32>) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""
    done = simulate(parse_module(text), [TensorInput("x", F16, X), TensorInput("y", F16, Y)], (1, 1, 1))
    return done.tensors[0].elements


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [(0, X + Y), (1, X - Y), (2, X * Y), (4, np.fmin(X, Y)), (5, np.fmax(X, Y))],
    ids=["add", "sub", "mul", "min", "max"],
)
def test_two_operands(kind: int, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(run(kind, 2), wanted)


def test_a_fused_multiply_add_rounds_once() -> None:
    wide = X.astype(np.float64) * Y.astype(np.float64) + 1
    np.testing.assert_array_equal(run(3, 3), wide.astype(np.float16))


def test_operands_of_other_formats_are_an_error() -> None:
    with pytest.raises(SimulationError, match="not all f16"):
        run(3, 3, "f32")
