"""Pipelined kernels against Triton's: both compile, equal results in the simulator, no fault, no more memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelining import suite
from tt2gl.results import CompileResult
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import read_source
from tt2gl.verify.compile import CompileJob, compile_many
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, SimulationRun, simulate_many

# Some of each kind run always; the others have other depths and the same paths.
QUICK = (
    "part_kernel-sm80-2",
    "flags_kernel-sm80-4",
    "both_kernel-sm80-3",
    "attention_kernel-sm90-3",
    "bytes_kernel-gfx942-3",
)


def slices(case: suite.Case, text: str, folder: Path) -> tuple[Slice, Slice]:
    """The original and a port, each on its own."""
    port = folder / "port.py"
    port.write_text(text)
    original, gluon = (
        slice_kernel(read_source(path), case.kernel, target=case.target, root=Path("/"))
        for path in (case.original, port)
    )
    return original, gluon


def compiled(case: suite.Case, kernels: tuple[Slice, Slice]) -> tuple[CompileResult, CompileResult]:
    """What both compile to."""
    triton, gluon = compile_many([CompileJob(kernel, case.launch, case.target) for kernel in kernels])
    return triton, gluon


def simulated(case: suite.Case, kernels: tuple[Slice, Slice]) -> SimulationRun:
    """Both on the same inputs."""
    original, port = (Participant(kernel, case.launch) for kernel in kernels)
    return simulate_many([SimulationJob(original, port, case.target)], SimulationOptions(seeds=1))[0]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case.name in QUICK else [pytest.mark.slow]) for case in suite.CASES],
    ids=lambda case: case.name,
)
def test_equal_to_triton(case: suite.Case, tmp_path: Path) -> None:
    kernels = slices(case, case.port(suite.copy_name()), tmp_path)
    triton, gluon = compiled(case, kernels)
    assert gluon.ok, gluon.error
    run = simulated(case, kernels)
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.findings) == (True, ())
    if case.file == "products":
        assert triton.metrics is not None
        assert gluon.metrics is not None
        assert gluon.metrics.shared_bytes <= triton.metrics.shared_bytes
        assert gluon.metrics.async_copies == triton.metrics.async_copies
        if case.target.startswith("gfx"):
            # Triton writes each of the last iterations out.
            assert gluon.metrics.mma.keys() == triton.metrics.mma.keys()
        else:
            assert gluon.metrics.mma == triton.metrics.mma


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        # One group too many may be under way.
        ("part_kernel-sm80-3", "wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)"),
        # A tile is overwritten while a product reads it.
        ("matmul_kernel-sm90-3", "num_outstanding=1", "num_outstanding=2"),
        # Copies of iterations that are not there are not masked.
        ("part_kernel-sm80-2", "(start < hi) & (at < hi)", "at < hi + 4096"),
    ],
)
@pytest.mark.slow
def test_the_proof_can_fail(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    case = next(case for case in suite.CASES if case.name == name)
    text = case.port(suite.copy_name())
    assert right in text
    run = simulated(case, slices(case, text.replace(right, wrong), tmp_path))
    assert run.result is not None, run.trouble
    assert run.result.findings or not run.result.equal
