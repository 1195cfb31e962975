"""AMD's operations on tensors: slices, scaled conversions, and what only schedules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from triton.experimental.gluon.language import amd
from triton.experimental.gluon.language.amd import cdna4

from tests.simulate.lowered import lowered
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import FloatType, IntegerType
from tt2gl.simulate.api import TensorInput, simulate
from tt2gl.simulate.findings import SimulationError
from tt2gl.simulate.ops.amd_math import repacked

kernels: Any = import_module("tests.simulate.kernels.small_amd")
F16, F32, I8 = FloatType("f16"), FloatType("f32"), IntegerType(8)
needs_slice = pytest.mark.skipif(not hasattr(amd, "slice"), reason="this Triton has no amd.slice")
needs_upcast = pytest.mark.skipif(not hasattr(cdna4, "scaled_upcast"), reason="this Triton has no scaled conversions")
needs_pipeline = pytest.mark.skipif(not hasattr(amd, "warp_pipeline_stage"), reason="no warp pipelines in this Triton")


def scales() -> np.ndarray:
    return np.arange(64, dtype=np.uint8) + 127 - 32


def of_bytes(name: str, values: np.ndarray) -> TensorInput:
    return TensorInput(name, I8, values.view(np.int8))


@needs_slice
def test_a_slice_of_a_tensor() -> None:
    x = np.arange(512, dtype=np.float32)
    module = lowered(kernels.slice_kernel, "gfx950", {"x_ptr": "*fp32", "out_ptr": "*fp32"}, num_warps=1)
    done = simulate(module, [TensorInput("x", F32, x), TensorInput("out", F32, np.zeros(128, np.float32))], (1, 1, 1))
    np.testing.assert_array_equal(done.tensors[1].elements.reshape(2, 64), x.reshape(4, 128)[1:3, 64:])


def test_tensors_put_together_row_by_row() -> None:
    body = "\n".join(
        f'%{index} = "arith.constant"() <{{value = dense<{index}> : tensor<1x2xi32>}}> : () -> tensor<1x2xi32>'
        for index in range(4)
    )
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<i32>) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0(%out: !tt.ptr<i32>):
    {body}
    %all = "amdg.concat"(%0, %1, %2, %3) : (tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>, tensor<1x2xi32>)
      -> tensor<2x4xi32>
    %flat = "tt.reshape"(%all) : (tensor<2x4xi32>) -> tensor<8xi32>
    %places = "tt.make_range"() <{{end = 8 : i32, start = 0 : i32}}> : () -> tensor<8xi32>
    "amdg.buffer_store"(%flat, %out, %places) <{{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}>
      : (tensor<8xi32>, !tt.ptr<i32>, tensor<8xi32>) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""
    out = TensorInput("out", IntegerType(32), np.zeros(8, np.int32))
    done = simulate(parse_module(text), [out], (1, 1, 1))
    assert done.tensors[0].elements.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@needs_upcast
@pytest.mark.parametrize("arithmetic", ["ieee", "field"])
def test_packed_fp4_times_its_scale(arithmetic: Any) -> None:
    x = np.random.default_rng(0).integers(0, 256, 1024).astype(np.uint8)
    module = lowered(
        kernels.upcast_kernel, "gfx950", {"x_ptr": "*u8", "scale_ptr": "*u8", "out_ptr": "*fp16"}, num_warps=1
    )
    out = TensorInput("out", F16, np.zeros(2048, np.float16))
    done = simulate(module, [of_bytes("x", x), of_bytes("scale", scales()), out], (1, 1, 1), arithmetic=arithmetic)
    assert done.findings == ()
    if arithmetic == "field":
        return
    codes = np.stack([x & 15, x >> 4], axis=1).reshape(64, 32)
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64) * 2.0 ** (scales().astype(int) - 127)[:, None]
    with np.errstate(over="ignore"):
        wanted = values.astype(np.float16)
    np.testing.assert_array_equal(done.tensors[2].elements.reshape(64, 32), wanted)


@needs_upcast
def test_values_over_their_scale_in_fp8_and_packed_fp4() -> None:
    x = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float16)
    signature = {"x_ptr": "*fp16", "scale_ptr": "*u8", "fp4_ptr": "*u8", "fp8_ptr": "*fp32"}
    module = lowered(kernels.downcast_kernel, "gfx950", signature, num_warps=1)
    scale = np.full(64, 126, np.uint8)
    fp8 = TensorInput("fp8", F32, np.zeros(2048, np.float32))
    arguments = [
        TensorInput("x", F16, x.ravel()),
        of_bytes("scale", scale),
        of_bytes("fp4", np.zeros(1024, np.uint8)),
        fp8,
    ]
    done = simulate(module, arguments, (1, 1, 1))
    assert done.findings == ()
    wanted = (2 * x.astype(np.float32)).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(done.tensors[3].elements.reshape(64, 32), wanted)
    codes = (2 * x.astype(np.float32)).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(64, 16, 2)
    packed = (codes[..., 0] | codes[..., 1] << 4).view(np.int8)
    np.testing.assert_array_equal(done.tensors[2].elements.reshape(64, 16), packed)
    with pytest.raises(SimulationError, match="4-bit"):
        simulate(module, arguments, (1, 1, 1), arithmetic="field")


@needs_pipeline
def test_borders_of_a_warp_pipeline_change_nothing() -> None:
    x = np.arange(1024, dtype=np.float32)
    module = lowered(kernels.pipeline_kernel, "gfx950", {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"})
    done = simulate(
        module, [TensorInput("x", F32, x), TensorInput("out", F32, np.zeros(256, np.float32)), 4], (1, 1, 1)
    )
    np.testing.assert_array_equal(done.tensors[1].elements, x.reshape(4, 256).sum(0))


def test_fp4_packed_along_the_other_dimension() -> None:
    codes = np.arange(32).reshape(1, 4, 8) % 16
    by_rows = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8).view(np.int8)
    by_columns = (codes[:, :, 0::2] | codes[:, :, 1::2] << 4).astype(np.uint8).view(np.int8)
    np.testing.assert_array_equal(repacked(by_rows, rows=True), by_columns)
    np.testing.assert_array_equal(repacked(by_columns, rows=False), by_rows)
