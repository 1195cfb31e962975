"""What an H200 computes agrees with the references, with the simulator, and with this machine's GPU if there is one."""

from __future__ import annotations

import importlib.util
import shutil

import numpy as np
import pytest

from tests.simulate import hardware
from tests.simulate.kernels import suite
from tests.simulate.running import compare, run
from tt2gl.spawned import run_spawned

JOBS = hardware.jobs()


@pytest.mark.parametrize("name", JOBS)
def test_the_h200_agreed_with_the_references(name: str) -> None:
    recorded, job = hardware.recorded(), JOBS[name]
    if name not in recorded:
        assert f"{job.case.file}.{job.case.kernel}" in suite.NEEDS
        pytest.skip("the Triton that it was recorded with cannot compile this kernel")
    assert compare(job.case, job.inputs, recorded[name]) == []


# Where simulation and GPU need not be the same bit for bit, and why. All else is: sums of coarse inputs are exact, so
# that their order shows on the random ones alone.
TENSOR_CORES = "tensor cores add several products at once, cut off rather than rounded; numpy adds one after another"
APPROXIMATE = "exp, rsqrt and division are the GPU's approximations"
ORDER = "threads keep partial sums of their own, which a tree of shuffles adds up; the simulator adds along the axis"
EXPLAINED = {
    "cp_async.matmul_kernel.0 random": TENSOR_CORES,
    "cp_async.matmul_kernel.1 random": TENSOR_CORES,
    "cp_async.rms_norm_kernel.3 random": ORDER,
    "cp_async.gemv_kernel.5 random": ORDER,
    "cp_async.rms_norm_kernel.3 coarse": APPROXIMATE,
    "pipelines.two_sums_kernel.0 random": TENSOR_CORES,
    "pipelines.masked_tiles_kernel.2 random": ORDER,
    "pipelines.jagged_sum_kernel.5 random": ORDER,
    "pipelines.three_jobs_kernel.7 random": TENSOR_CORES,
    "shared.softmax_kernel.2 random": f"{ORDER}; {APPROXIMATE}",
    "shared.softmax_kernel.2 coarse": APPROXIMATE,
    "tma.matmul_kernel.2 random": TENSOR_CORES,
    "warp_specialize.matmul_kernel.0 random": TENSOR_CORES,
    "warp_specialize.persistent_matmul_kernel.1 random": TENSOR_CORES,
    "warp_specialize.row_statistics_kernel.2 random": ORDER,
    "wgmma.matmul_kernel.0 random": TENSOR_CORES,
    "wgmma.dequantize_matmul_kernel.1 random": TENSOR_CORES,
    "wgmma.attention_kernel.2 random": f"{TENSOR_CORES}; {APPROXIMATE}",
    "wgmma.attention_kernel.2 coarse": APPROXIMATE,
}
# What those reasons may come to: a unit in the last place of an fp16 result, or what cancels of the largest one.
RELATIVE, OF_THE_LARGEST = 2**-10, 2**-14


@pytest.mark.slow
def test_the_simulator_gives_what_the_h200_gave() -> None:
    recorded = hardware.recorded()
    jobs = {name: job for name, job in JOBS.items() if name in recorded}
    assert len(jobs) >= 60
    for name, outcome in zip(jobs, run(list(jobs.values())), strict=True):
        assert outcome.value is not None, f"{name}: {outcome.error}"
        for tensor, there in recorded[name].items():
            here = outcome.value.outputs["late"][tensor]
            if name not in EXPLAINED:
                np.testing.assert_array_equal(here, there, err_msg=f"{name}: {tensor}")
            else:
                allowed = OF_THE_LARGEST * float(np.abs(there).max())
                np.testing.assert_allclose(
                    here.astype(np.float64), there, RELATIVE, allowed, err_msg=f"{name}: {tensor}"
                )


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("nvidia-smi") is None or importlib.util.find_spec("torch") is None, reason="no GPU, or no torch"
)
def test_this_gpu_gives_what_was_recorded(update_golden: bool) -> None:
    outcome = run_spawned(hardware.run_on_gpu, JOBS)
    results = outcome.value
    assert results is not None, outcome.error
    if update_golden:
        hardware.record(results)
    recorded = hardware.recorded()
    for name, tensors in results.items():
        for tensor, array in tensors.items():
            # What meets in memory by atomic adds of floats depends on who comes first.
            if name in recorded and not name.startswith("tma.split_k_kernel"):
                np.testing.assert_array_equal(array, recorded[name][tensor], err_msg=f"{name}: {tensor}")
