"""Tensor memory and tcgen05 (sm100): views, products and their order, what commits and waits say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulate.lowered import lowered
from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate.api import Argument, Simulation, TensorInput, simulate
from tt2gl.simulate.values import Array

kernels: Any = import_module("tests.simulate.kernels.small_tcgen05")
F16, F32, F8, I8 = FloatType("f16"), FloatType("f32"), FloatType("f8E5M2"), IntegerType(8)
FAULTS = {"race", "missing-wait", "uninitialised"}
both_schedules = pytest.mark.parametrize("schedule", ["late", "early"])
random = np.random.default_rng(0)
A = random.standard_normal((64, 96)).astype(np.float16)
B = random.standard_normal((96, 64)).astype(np.float16)
C = random.standard_normal((64, 64)).astype(np.float32)
SIGNATURE = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "use_acc": "i32", "pred": "i32", "K": "i32"}
MMA = {"TRANSPOSED": False, "FENCE": True, "COMMIT": True, "WAIT": True}
needs_row_max = pytest.mark.skipif(
    not hasattr(
        import_module("triton.experimental.gluon.language.nvidia.blackwell").tensor_memory_descriptor, "load_max"
    ),
    reason="loads of this Triton do not reduce",
)


def tensor(name: str, values: Array, kind: Type) -> TensorInput:
    return TensorInput(name, kind, values.ravel())


def kinds(done: Simulation) -> set[str]:
    return {finding.kind for finding in done.findings}


def multiply(
    schedule: Any, use_acc: int = 1, pred: int = 1, arithmetic: Any = "ieee", **constexprs: bool
) -> Simulation:
    chosen = {**MMA, **constexprs}
    b = np.ascontiguousarray(B.T) if chosen["TRANSPOSED"] else B
    arguments: list[Argument] = [tensor("a", A, F16), tensor("b", b, F16), tensor("c", C, F32), use_acc, pred, 96]
    module = lowered(kernels.mma_kernel, "sm100", SIGNATURE, **chosen)
    return simulate(module, arguments, (1, 1, 1), arithmetic=arithmetic, schedule=schedule)


def product(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def views(schedule: Any, store: bool, pred: bool) -> tuple[Array, Simulation]:
    x = random.standard_normal((64, 64)).astype(np.float32)
    module = lowered(kernels.views_kernel, "sm100", {"x_ptr": "*fp32", "out_ptr": "*fp32"}, STORE=store, PRED=pred)
    out = TensorInput("out", F32, np.zeros(2048 + 4096, np.float32))
    return x, simulate(module, [tensor("x", x, F32), out], (1, 1, 1), schedule=schedule)


@both_schedules
def test_buffers_slices_and_initial_values(schedule: Any) -> None:
    x, done = views(schedule, store=True, pred=True)
    assert done.findings == ()
    out = done.tensors[1].elements
    np.testing.assert_array_equal(out[:2048].reshape(64, 32), x[:, 32:])
    np.testing.assert_array_equal(out[2048:].reshape(64, 64), x + 1)


@pytest.mark.parametrize("arithmetic", ["ieee", "field"])
def test_half_a_tile_as_narrower_elements(arithmetic: Any) -> None:
    x = random.standard_normal((64, 64)).astype(np.float32)
    module = lowered(kernels.reinterpreted_kernel, "sm100", {"x_ptr": "*fp32", "out_ptr": "*fp32"})
    out = TensorInput("out", F32, np.zeros(2048 + 4096, np.float32))
    done = simulate(module, [tensor("x", x, F32), out], (1, 1, 1), arithmetic=arithmetic)
    assert done.findings == ()
    if arithmetic == "ieee":
        np.testing.assert_array_equal(done.tensors[1].elements[:2048].reshape(64, 32), x[:, :32])
        wanted = x.astype(np.float16) + np.float16(1)
        np.testing.assert_array_equal(done.tensors[1].elements[2048:].reshape(64, 64), wanted)


@pytest.mark.parametrize(("store", "pred"), [(False, True), (True, False)])
def test_reading_what_nobody_stored_is_found(store: bool, pred: bool) -> None:
    assert "uninitialised" in kinds(views("late", store, pred)[1])


@both_schedules
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("commit", [True, False])
def test_a_product_on_top_of_what_was_stored(schedule: Any, transposed: bool, commit: bool) -> None:
    done = multiply(schedule, TRANSPOSED=transposed, COMMIT=commit)
    assert done.findings == ()
    np.testing.assert_allclose(done.tensors[2].elements.reshape(64, 64), C + product(A, B), rtol=1e-5, atol=1e-5)


def test_a_first_product_that_leaves_the_sum_out() -> None:
    done = multiply("late", use_acc=0)
    assert done.findings == ()
    np.testing.assert_allclose(done.tensors[2].elements.reshape(64, 64), product(A, B), rtol=1e-5, atol=1e-5)


def test_products_in_a_field_are_exact() -> None:
    results = [multiply("late", arithmetic="field", TRANSPOSED=transposed) for transposed in (True, False)]
    assert [done.findings for done in results] == [(), ()]
    np.testing.assert_array_equal(results[0].tensors[2].elements, results[1].tensors[2].elements)
    assert len(np.unique(results[0].tensors[2].elements)) > 4000


def test_products_switched_off() -> None:
    done = multiply("late", pred=0)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[2].elements.reshape(64, 64), C)


@both_schedules
@pytest.mark.parametrize("commit", [True, False])
def test_no_wait_for_the_product_is_found(schedule: Any, commit: bool) -> None:
    assert kinds(multiply(schedule, WAIT=False, COMMIT=commit)) & FAULTS


def test_no_fence_between_stores_and_the_product_is_found() -> None:
    assert "missing-fence" in kinds(multiply("late", FENCE=False))


@both_schedules
@pytest.mark.parametrize("copy", [True, False])
def test_operands_in_tensor_memory(schedule: Any, copy: bool) -> None:
    a = random.standard_normal((128, 64)).astype(np.float16)
    b = random.standard_normal((64, 64)).astype(np.float16)
    c = random.standard_normal((128, 64)).astype(np.float32)
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    module = lowered(kernels.from_tensor_memory_kernel, "sm100", signature, COPY=copy)
    tensors = tensor("a", a, F16), tensor("b", b, F16), tensor("c", c, F32)
    done = simulate(module, tensors, (1, 1, 1), schedule=schedule)
    assert done.findings == ()
    wanted = product(a, b) + (c if copy else 0)
    np.testing.assert_allclose(done.tensors[2].elements.reshape(128, 64), wanted, rtol=1e-5, atol=1e-5)


@both_schedules
@pytest.mark.parametrize("copy", [True, False])
def test_a_scaled_product(schedule: Any, copy: bool) -> None:
    a = random.standard_normal((128, 128)).astype(ml_dtypes.float8_e5m2)
    codes = random.integers(0, 16, (64, 128)).astype(np.uint8)
    b = (codes[:, 0::2] | codes[:, 1::2] << 4).view(np.int8)
    a_scale, b_scale = (random.integers(124, 131, (rows, 4)).astype(np.uint8) for rows in (128, 64))
    signature = {"a_ptr": "*fp8e5", "a_scale_ptr": "*u8", "b_ptr": "*u8", "b_scale_ptr": "*u8", "c_ptr": "*fp32"}
    module = lowered(kernels.scaled_kernel, "sm100", signature, COPY=copy)
    # In shared memory rows 32 apart lie side by side.
    given = a_scale.reshape(4, 32, 4).transpose(1, 0, 2) if copy else a_scale
    scales = (
        tensor("a_scale", np.ascontiguousarray(given).view(np.int8), I8),
        tensor("b_scale", b_scale.view(np.int8), I8),
    )
    arguments = [tensor("a", a, F8), scales[0], tensor("b", b, I8), scales[1]]
    arguments.append(tensor("c", np.zeros((128, 64), np.float32), F32))
    done = simulate(module, arguments, (1, 1, 1), schedule=schedule)
    assert done.findings == ()
    left = a.astype(np.float64) * np.repeat(2.0 ** (a_scale.astype(int) - 127), 32, axis=1)
    right = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64) * np.repeat(
        2.0 ** (b_scale.astype(int) - 127), 32, axis=1
    )
    np.testing.assert_allclose(done.tensors[4].elements.reshape(128, 64), left @ right.T, rtol=1e-5, atol=1e-4)


@needs_row_max
@pytest.mark.parametrize("absolute", [True, False])
def test_a_load_that_finds_the_largest_of_each_row(absolute: bool) -> None:
    x = random.standard_normal((128, 64)).astype(np.float32)
    module = lowered(kernels.row_max_kernel, "sm100", {"x_ptr": "*fp32", "out_ptr": "*fp32"}, ABS=absolute)
    done = simulate(module, [tensor("x", x, F32), TensorInput("out", F32, np.zeros(128, np.float32))], (1, 1, 1))
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, (abs(x) if absolute else x).max(1))
