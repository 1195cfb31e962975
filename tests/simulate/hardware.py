"""What the kernels of `kernels/` left in memory on an H200, recorded, and how it is recorded.

`recorded/h200.npz` holds what each kernel for sm80 and sm90 wrote on the inputs of seed 0, as they are and coarse, bit
for bit, as `case random/tensor` and `case coarse/tensor`. On a machine with such a GPU
`pytest tests/simulate/test_hardware.py --update-golden` writes it anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.simulate.kernels import suite
from tests.simulate.running import Job, expected, sliced
from tt2gl.isolate import private_triton
from tt2gl.verify.device import Kernel, Participant
from tt2gl.verify.tensors import to_device

Array = NDArray[Any]
RECORDED = Path(__file__).parent / "recorded" / "h200.npz"


def jobs() -> dict[str, Job]:
    """What an H200 runs, by name."""
    cases = [case for case in suite.cases() if case.target in ("sm80", "sm90")]
    contents = {"random": False, "coarse": True}
    return {
        f"{case.name} {name}": Job(case, coarse=coarse, schedules=("late",))
        for case in cases
        for name, coarse in contents.items()
    }


def recorded() -> dict[str, dict[str, Array]]:
    """What was recorded, by job and tensor."""
    found: dict[str, dict[str, Array]] = {}
    with np.load(RECORDED) as file:
        for name in file.files:
            job, _, tensor = name.partition("/")
            found.setdefault(job, {})[tensor] = file[name]
    return found


def record(results: Mapping[str, Mapping[str, Array]]) -> None:
    """Write the recording anew."""
    arrays = {f"{job}/{name}": array for job, tensors in sorted(results.items()) for name, array in tensors.items()}
    # Its keywords are the arrays' names, and not all of them are identifiers.
    np.savez_compressed(RECORDED, **dict(arrays))  # type: ignore[arg-type]


def run_on_gpu(chosen: Mapping[str, Job]) -> dict[str, dict[str, Array]]:
    """Run jobs on this machine's GPU: what each wrote. In a fresh process, which one bad kernel ends for all."""
    import torch
    import triton

    private_triton()
    triton.set_allocator(lambda size, _align, _stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    results = {}
    for name, job in chosen.items():
        on_gpu = to_device(job.inputs, "cuda")
        folder = Path(tempfile.mkdtemp(prefix="kernel-")) / "slice"
        Kernel(name, Participant(sliced(job), job.case.launch), job.case.launch, folder)(on_gpu)
        results[name] = {each: on_gpu.buffers[each].view.cpu().numpy() for each in expected(job.case, job.inputs)}
    return results
