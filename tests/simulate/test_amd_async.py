"""AMD's copies to and from shared memory, groups of them, and gfx1250's mbarriers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from triton.experimental.gluon.language.amd import cdna4

from tests.simulate.lowered import lowered
from tt2gl.ir.types import FloatType, IntegerType
from tt2gl.simulate.api import Argument, Simulation, TensorInput, simulate
from tt2gl.simulate.values import Array

kernels: Any = import_module("tests.simulate.kernels.small_amd")
F32, I8 = FloatType("f32"), IntegerType(8)
SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
FAULTS = {"race", "missing-wait", "uninitialised"}
X = np.random.default_rng(0).standard_normal(2048).astype(np.float32)
both_schedules = pytest.mark.parametrize("schedule", ["late", "early"])
needs_copies_out = pytest.mark.skipif(
    not hasattr(kernels.cdna5.async_copy, "shared_to_global"), reason="this Triton copies nothing out of shared memory"
)
needs_repacking = pytest.mark.skipif(
    not hasattr(cdna4, "load_shared_fp4_repacked"), reason="this Triton does not repack fp4"
)


def run(kernel: Any, target: str, n: int | None, schedule: Any, **constexprs: Any) -> Simulation:
    signature = {name: kind for name, kind in SIGNATURE.items() if name in kernel.arg_names}
    module = lowered(kernel, target, signature, **constexprs)
    arguments: list[Argument] = [TensorInput("x", F32, X), TensorInput("out", F32, np.zeros(len(X), np.float32))]
    return simulate(module, arguments if n is None else [*arguments, n], (1, 1, 1), schedule=schedule)


def kinds(done: Simulation) -> set[str]:
    return {finding.kind for finding in done.findings}


@both_schedules
@pytest.mark.parametrize("buffer", [True, False])
def test_copies_to_shared_memory_and_their_masks(schedule: Any, buffer: bool) -> None:
    done = run(kernels.to_shared_kernel, "gfx950", 2000, schedule, BLOCK=1024, BUFFER=buffer, WAIT=1)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, np.append(X[:2000], np.full(48, 3, np.float32)))


@both_schedules
@pytest.mark.parametrize("buffer", [True, False])
def test_a_wait_for_one_group_too_few_is_found(schedule: Any, buffer: bool) -> None:
    done = run(kernels.to_shared_kernel, "gfx950", 2000, schedule, BLOCK=1024, BUFFER=buffer, WAIT=2)
    assert kinds(done) & FAULTS


@both_schedules
@pytest.mark.parametrize("other", [None, 0])
def test_what_a_copy_masks_off_stays_unless_it_is_told_otherwise(schedule: Any, other: int | None) -> None:
    done = run(kernels.masked_twice_kernel, "gfx950", 500, schedule, BLOCK=1024, OTHER=other)
    left = X[500:1024] if other is None else np.zeros(524, np.float32)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements[:1024], np.concatenate([X[1024:1524], left]))


@both_schedules
def test_a_copy_to_shared_memory_past_the_tensor_is_found(schedule: Any) -> None:
    done = run(kernels.to_shared_kernel, "gfx950", 5000, schedule, BLOCK=2048, BUFFER=True, WAIT=1)
    assert [(finding.kind, finding.buffer) for finding in done.findings][:1] == [("out-of-bounds", "x")]


@needs_copies_out
@both_schedules
def test_copies_out_of_shared_memory(schedule: Any) -> None:
    done = run(kernels.from_shared_kernel, "gfx1250", 1000, schedule, BLOCK=1024, WAIT=0)
    assert done.findings == ()
    wanted = np.concatenate([X[:1000], np.zeros(24, np.float32), X[1024:]])
    np.testing.assert_array_equal(done.tensors[1].elements, wanted)


@needs_copies_out
@both_schedules
def test_a_buffer_written_while_it_is_copied_out_is_found(schedule: Any) -> None:
    assert "race" in kinds(run(kernels.from_shared_kernel, "gfx1250", 1000, schedule, BLOCK=1024, WAIT=1))


@both_schedules
def test_every_thread_and_its_copies_arrive_on_an_mbarrier(schedule: Any) -> None:
    done = run(kernels.barrier_kernel, "gfx1250", None, schedule, BLOCK=512, COUNT=2 * 4 * 32, WAIT=True)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements[:512], X[:512])


def test_an_mbarrier_that_waits_for_more_than_arrive_is_a_deadlock() -> None:
    done = run(kernels.barrier_kernel, "gfx1250", None, "late", BLOCK=512, COUNT=3 * 4 * 32, WAIT=True)
    assert "deadlock" in kinds(done)


@both_schedules
def test_no_wait_on_the_mbarrier_is_found(schedule: Any) -> None:
    done = run(kernels.barrier_kernel, "gfx1250", None, schedule, BLOCK=512, COUNT=2 * 4 * 32, WAIT=False)
    assert kinds(done) & FAULTS


def _packed(codes: Array, axis: int) -> Array:
    low, high = np.split(np.moveaxis(codes, axis, -1).reshape(-1, 2), 2, axis=-1)
    moved = np.moveaxis(codes, axis, -1).shape
    joined: Array = np.moveaxis((low | high << 4).reshape(*moved[:-1], moved[-1] // 2), -1, axis)
    return joined.astype(np.uint8)


@needs_repacking
def test_fp4_repacked_by_its_load() -> None:
    codes = np.random.default_rng(0).integers(0, 16, (32, 128))
    module = lowered(kernels.repacked_kernel, "gfx950", {"x_ptr": "*u8", "out_ptr": "*u8"})
    x = TensorInput("x", I8, _packed(codes, 0).ravel().view(np.int8))
    done = simulate(module, [x, TensorInput("out", I8, np.zeros(2048, np.int8))], (1, 1, 1))
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements.view(np.uint8).reshape(32, 64), _packed(codes, 1))
