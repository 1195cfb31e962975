"""Simulation is quick enough to run on every conversion. Time is this process's own, whatever else the machine does."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.simulate.lowered import lowered
from tt2gl.ir.types import FloatType
from tt2gl.simulate.api import Simulation, TensorInput, simulate

pytestmark = pytest.mark.once

F16, F32 = FloatType("f16"), FloatType("f32")
KERNELS: Any = import_module("tests.simulate.kernels.small_pipelines")


def quickest(run: Callable[[], Simulation]) -> tuple[float, Simulation]:
    """Seconds of processor time that the quickest of ten runs takes, and its result: others share caches and memory."""
    times = []
    for _ in range(10):
        start = time.process_time()
        done = run()
        times.append(time.process_time() - start)
    return min(times), done


def test_an_addition_of_a_million_elements_takes_a_tenth_of_a_second() -> None:
    count = 1 << 20
    module = lowered(
        KERNELS.add_kernel, "sm90", {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, BLOCK=1024
    )
    random = np.random.default_rng(0)
    x, y = random.standard_normal((2, count), dtype=np.float32)
    tensors = [TensorInput(name, F32, values) for name, values in (("x", x), ("y", y), ("out", np.zeros_like(x)))]
    seconds, done = quickest(lambda: simulate(module, [*tensors, count], (count // 1024, 1, 1)))
    assert np.array_equal(done.tensors[2].elements, x + y)
    assert seconds < 0.1


@pytest.mark.slow
def test_a_product_of_matrices_of_1024_takes_a_second() -> None:
    size = 1024
    types = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16") | dict.fromkeys("MNK", "i32")
    module = lowered(KERNELS.matmul_kernel, "sm90", types, num_warps=8, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64)
    random = np.random.default_rng(0)
    a, b = random.integers(-2, 3, (2, size, size)).astype(np.float16)
    operands = {"a": a, "b": b, "c": np.zeros_like(a)}
    tensors = [TensorInput(name, F16, values.ravel()) for name, values in operands.items()]
    seconds, done = quickest(lambda: simulate(module, [*tensors, size, size, size], (8, 8, 1)))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    assert np.array_equal(done.tensors[2].elements.reshape(size, size), expected.astype(np.float16))
    assert seconds < 1
