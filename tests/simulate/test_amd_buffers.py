"""AMD's buffer operations: offsets, masks, what lies outside, and atomics."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tests.simulate.lowered import lowered
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import FloatType, IntegerType
from tt2gl.simulate.api import Argument, Simulation, TensorInput, simulate
from tt2gl.simulate.values import Array

kernels: Any = import_module("tests.simulate.kernels.small_amd")
F32, I32 = FloatType("f32"), IntegerType(32)
SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
BLOCK = 256


def run(kernel: Any, x: Array, out: Array, n: int, programs: int = 1, **constexprs: int) -> Simulation:
    kind = I32 if x.dtype == np.int32 else F32
    signature = {**SIGNATURE, "x_ptr": "*i32", "out_ptr": "*i32"} if kind == I32 else SIGNATURE
    module = lowered(kernel, "gfx942", signature, BLOCK=BLOCK, **constexprs)
    arguments: list[Argument] = [TensorInput("x", kind, x), TensorInput("out", kind, out), n]
    return simulate(module, arguments, (programs, 1, 1))


def numbers(count: int) -> Array:
    return np.random.default_rng(0).standard_normal(count).astype(np.float32)


def test_masked_elements_are_the_other_value() -> None:
    x = numbers(400)
    done = run(kernels.buffer_copy_kernel, x, np.zeros(512, np.float32), 400, programs=2, START=0)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, np.append(x, np.full(112, 7, np.float32)))


def test_offsets_count_elements_and_only_masked_ones_are_stored() -> None:
    x = numbers(260)
    done = run(kernels.buffer_add_one_kernel, x, np.full(BLOCK, -1, np.float32), 100, START=4)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements[:100], x[4:104] + 1)
    assert not done.tensors[1].written[100:].any()


def test_a_load_past_the_tensor_is_found() -> None:
    done = run(kernels.buffer_add_one_kernel, numbers(256), np.zeros(BLOCK, np.float32), 200, START=4)
    (finding,) = done.findings
    assert (finding.kind, finding.buffer) == ("out-of-bounds", "x")
    assert finding.location.line == kernels.buffer_add_one_kernel.fn.__code__.co_firstlineno + 4


def test_a_store_past_the_tensor_is_found() -> None:
    done = run(kernels.buffer_copy_kernel, numbers(256), np.zeros(BLOCK - 1, np.float32), 256, START=0)
    assert [(finding.kind, finding.buffer) for finding in done.findings] == [("out-of-bounds", "out")]


def test_what_is_past_two_gigabytes_reads_as_zero() -> None:
    """A negative offset is one above the buffer's size, where the hardware answers with zero."""
    x = numbers(256)
    done = run(kernels.buffer_add_one_kernel, x, np.zeros(BLOCK, np.float32), BLOCK, START=-3)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, np.append(np.zeros(3, np.float32), x[:-3]) + 1)


def test_atomic_adds_return_what_was_there_before() -> None:
    x = np.arange(512, dtype=np.float32)
    done = run(kernels.buffer_atomic_add_kernel, x, np.zeros(8, np.float32), 400, programs=2)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, x[:400].reshape(-1, 8).sum(0))
    sums = np.cumsum(x[:400].reshape(-1, 8), axis=0)
    np.testing.assert_array_equal(done.tensors[0].elements[:400], np.append(np.zeros(8), sums[:-1].ravel()))
    np.testing.assert_array_equal(done.tensors[0].elements[400:], x[400:])


def test_atomic_max_is_signed() -> None:
    x = np.arange(-128, 128, dtype=np.int32)
    out = np.full(8, -100, np.int32)
    np.testing.assert_array_equal(run(kernels.buffer_atomic_max_kernel, x, out, 16).tensors[1].elements, out)
    done = run(kernels.buffer_atomic_max_kernel, x, out, 256)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, np.arange(120, 128))


def test_compare_and_swap() -> None:
    text = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<i32>) -> (), sym_name = "kernel", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<i32>):
    %places = "tt.make_range"() <{end = 4 : i32, start = 0 : i32}> : () -> tensor<4xi32>
    %one = "arith.constant"() <{value = dense<1> : tensor<4xi32>}> : () -> tensor<4xi32>
    %old = "amdg.buffer_atomic_cas"(%x, %places, %one, %places) <{scope = 1 : i32, sem = 4 : i32}>
      : (!tt.ptr<i32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
    done = simulate(parse_module(text), [TensorInput("x", I32, np.array([1, 2, 1, 1], np.int32))], (1, 1, 1))
    assert done.tensors[0].elements.tolist() == [0, 2, 2, 3]
