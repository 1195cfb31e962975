"""What an H200 computes: the kernels there against their references, and this machine's GPU against the recording."""

from __future__ import annotations

import importlib.util
import shutil

import numpy as np
import pytest

from tests.simulate import hardware
from tests.simulate.kernels import suite
from tests.simulate.running import compare
from tt2gl.isolate import run_spawned
from tt2gl.verify.inputs import make_inputs


@pytest.mark.parametrize("case", hardware.cases(), ids=lambda case: case.name)
def test_the_h200_agreed_with_the_references(case: suite.Case) -> None:
    recorded = hardware.recorded()
    if case.name not in recorded:
        assert f"{case.file}.{case.kernel}" in suite.NEEDS
        pytest.skip("the Triton that it was recorded with cannot compile this kernel")
    assert compare(case, make_inputs(case.launch, 0), recorded[case.name]) == []


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
