"""What an H200 computes agrees with the references, with the simulator, and with this machine's GPU if there is one."""

from __future__ import annotations

import importlib.util
import shutil

import numpy as np
import pytest

from tests.simulate import hardware
from tests.simulate.kernels import suite
from tests.simulate.running import Job, compare, run
from tt2gl.isolate import run_spawned
from tt2gl.verify.inputs import make_inputs


@pytest.mark.parametrize("case", hardware.cases(), ids=lambda case: case.name)
def test_the_h200_agreed_with_the_references(case: suite.Case) -> None:
    recorded = hardware.recorded()
    if case.name not in recorded:
        assert f"{case.file}.{case.kernel}" in suite.NEEDS
        pytest.skip("the Triton that it was recorded with cannot compile this kernel")
    assert compare(case, make_inputs(case.launch, 0), recorded[case.name]) == []


# Where simulation and GPU need not be the same bit for bit, and why. All else is.
TENSOR_CORES = "tensor cores add several products at once, cut off rather than rounded; numpy adds one after another"
ORDER = "threads keep partial sums of their own, which a tree of shuffles adds up; the simulator adds along the axis"
EXPLAINED = {
    "cp_async.matmul_kernel.0": TENSOR_CORES,
    "cp_async.matmul_kernel.1": TENSOR_CORES,
    "cp_async.rms_norm_kernel.3": ORDER,
    "cp_async.gemv_kernel.5": ORDER,
    "shared.softmax_kernel.2": ORDER + "; exp is the GPU's approximation",
    "tma.matmul_kernel.2": TENSOR_CORES,
    "warp_specialize.matmul_kernel.0": TENSOR_CORES,
    "warp_specialize.persistent_matmul_kernel.1": TENSOR_CORES,
    "warp_specialize.row_statistics_kernel.2": ORDER,
    "wgmma.matmul_kernel.0": TENSOR_CORES,
    "wgmma.dequantize_matmul_kernel.1": TENSOR_CORES,
    "wgmma.attention_kernel.2": TENSOR_CORES,
}
# What those reasons may come to: a unit in the last place of an fp16 result, or what cancels of the largest one.
RELATIVE, OF_THE_LARGEST = 2**-10, 2**-14


def test_the_simulator_gives_what_the_h200_gave() -> None:
    recorded = hardware.recorded()
    cases = [case for case in hardware.cases() if case.name in recorded]
    outcomes = run([Job(case) for case in cases])
    assert len(cases) >= 20
    for case, outcome in zip(cases, outcomes, strict=True):
        assert outcome.value is not None, f"{case.name}: {outcome.error}"
        for tensor, there in recorded[case.name].items():
            here = outcome.value.outputs["late"][tensor]
            if case.name not in EXPLAINED:
                np.testing.assert_array_equal(here, there, err_msg=f"{case.name}: {tensor}")
            else:
                allowed = OF_THE_LARGEST * float(np.abs(there).max())
                np.testing.assert_allclose(
                    here.astype(np.float64), there, RELATIVE, allowed, err_msg=f"{case.name}: {tensor}"
                )


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("nvidia-smi") is None or importlib.util.find_spec("torch") is None, reason="no GPU, or no torch"
)
def test_this_gpu_gives_what_was_recorded(update_golden: bool) -> None:
    outcome = run_spawned(hardware.run_on_gpu, hardware.cases())
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
