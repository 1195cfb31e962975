"""gfx1250's tensor data mover: tiles and rows, what lies outside, waits and mbarriers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.simulate.lowered import lowered
from tt2gl.ir.types import FloatType
from tt2gl.simulate.api import Simulation, TensorInput, simulate
from tt2gl.simulate.values import Array

kernels: Any = import_module("tests.simulate.kernels.small_amd")
F16 = FloatType("f16")
SIGNATURE = {"x_ptr": "*fp16", "out_ptr": "*fp16", "M": "i32", "N": "i32"}
FAULTS = {"race", "missing-wait", "uninitialised"}
ROWS, COLS = 40, 56
X = np.random.default_rng(0).standard_normal((ROWS, COLS)).astype(np.float16)
both_schedules = pytest.mark.parametrize("schedule", ["late", "early"])
needs_rows = pytest.mark.skipif(not hasattr(kernels.cdna5.tdm, "async_gather"), reason="this Triton gathers no rows")
needs_moves = pytest.mark.skipif(
    not hasattr(kernels.cdna5.tdm, "update_tensor_descriptor"), reason="descriptors of this Triton do not move"
)


def run(kernel: Any, programs: int, schedule: Any, out: Array, **constexprs: Any) -> Simulation:
    module = lowered(kernel, "gfx1250", SIGNATURE, **constexprs)
    tensors = TensorInput("x", F16, X.ravel()), TensorInput("out", F16, out.ravel())
    return simulate(module, [*tensors, ROWS, COLS], (programs, 1, 1), schedule=schedule)


def kinds(done: Simulation) -> set[str]:
    return {finding.kind for finding in done.findings}


@both_schedules
def test_tiles_in_and_out(schedule: Any) -> None:
    constexprs = {"BLOCK_M": 16, "BLOCK_N": 32, "LOADS": 1, "STORES": 1}
    done = run(kernels.tdm_copy_kernel, 3, schedule, np.zeros_like(X), **constexprs)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements.reshape(X.shape), X * np.float16(2))


@both_schedules
@pytest.mark.parametrize(("loads", "stores"), [(2, 1), (1, 2)], ids=["load", "store"])
def test_a_wait_for_one_copy_too_few_is_found(schedule: Any, loads: int, stores: int) -> None:
    constexprs = {"BLOCK_M": 16, "BLOCK_N": 32, "LOADS": loads, "STORES": stores}
    assert kinds(run(kernels.tdm_copy_kernel, 3, schedule, np.zeros_like(X), **constexprs)) & FAULTS


@both_schedules
def test_a_load_that_arrives_on_an_mbarrier(schedule: Any) -> None:
    done = run(kernels.tdm_barrier_kernel, 3, schedule, np.zeros_like(X), BLOCK_M=16, BLOCK_N=64, WAIT=True)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements.reshape(X.shape), X)


@both_schedules
def test_no_wait_on_the_mbarrier_is_found(schedule: Any) -> None:
    done = run(kernels.tdm_barrier_kernel, 3, schedule, np.zeros_like(X), BLOCK_M=16, BLOCK_N=64, WAIT=False)
    assert kinds(done) & FAULTS


@needs_rows
@both_schedules
def test_rows_by_their_numbers(schedule: Any) -> None:
    done = run(kernels.tdm_rows_kernel, 1, schedule, np.zeros_like(X), BLOCK_M=8, BLOCK_N=32, WAIT=True)
    assert done.findings == ()
    wanted = np.zeros_like(X)
    wanted[:8, 32:] = X[::-1][:8, 32:]
    np.testing.assert_array_equal(done.tensors[1].elements.reshape(X.shape), wanted)


@needs_rows
@both_schedules
def test_rows_used_before_they_are_there_are_found(schedule: Any) -> None:
    done = run(kernels.tdm_rows_kernel, 1, schedule, np.zeros_like(X), BLOCK_M=8, BLOCK_N=32, WAIT=False)
    assert kinds(done) & FAULTS


@needs_moves
@both_schedules
def test_moved_bounded_and_switched_off_descriptors(schedule: Any) -> None:
    done = run(kernels.tdm_moved_kernel, 1, schedule, np.ones((32, 32), np.float16), BLOCK_M=16, BLOCK_N=32, BOUND=9)
    assert done.findings == ()
    out = done.tensors[1].elements.reshape(2, 16, 32)
    wanted = np.zeros((16, 32), np.float16)
    wanted[:9, :9] = X[1:10, 2:11]
    np.testing.assert_array_equal(out[0], wanted)
    np.testing.assert_array_equal(out[1], np.full((16, 32), 5))


@needs_moves
def test_a_size_set_too_large_reads_past_the_tensor() -> None:
    done = run(kernels.tdm_moved_kernel, 1, "late", np.ones((32, 32)), BLOCK_M=64, BLOCK_N=32, BOUND=64)
    assert ("out-of-bounds", "x") in [(finding.kind, finding.buffer) for finding in done.findings]
