"""Pipelined kernels against Triton's: both compile, equal results in the simulator, no fault, no more memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelining import suite
from tt2gl.results import KernelReport
from tt2gl.verify.api import verify
from tt2gl.verify.options import SimulationOptions

# Some of each kind run always; the others have other depths and the same paths.
QUICK = ("part_kernel-sm80-2", "flags_kernel-sm80-4", "both_kernel-sm80-3", "attention_kernel-sm90-3")


def proved(case: suite.Case, text: str, folder: Path) -> KernelReport:
    """What comparing a port with its original says."""
    port = folder / "port.py"
    port.write_text(text)
    options = SimulationOptions(seeds=1)
    reports = verify(
        case.original,
        port,
        targets=[case.target],
        launches=[case.launch],
        root=Path("/"),
        run="simulate",
        simulation=options,
    )
    return next(report for report in reports if report.kernel == case.kernel)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case.name in QUICK else [pytest.mark.slow]) for case in suite.CASES],
    ids=lambda case: case.name,
)
def test_equal_to_triton(case: suite.Case, tmp_path: Path) -> None:
    report = proved(case, case.port(suite.copy_name()), tmp_path)
    assert report.gluon is not None
    assert report.gluon.ok, report.gluon.error
    assert report.simulate is not None
    assert (report.simulate.equal, report.simulate.findings) == (True, ())
    if case.file == "products":
        assert report.triton is not None
        assert report.triton.metrics is not None
        assert report.gluon.metrics is not None
        assert report.gluon.metrics.shared_bytes <= report.triton.metrics.shared_bytes
        assert report.gluon.metrics.async_copies == report.triton.metrics.async_copies
        assert report.gluon.metrics.mma == report.triton.metrics.mma


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        # One group too many may be under way.
        ("part_kernel-sm80-3", "wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)"),
        # A tile is overwritten while a product reads it.
        ("matmul_kernel-sm90-3", "num_outstanding=1", "num_outstanding=2"),
        # Copies of iterations that are not there are not masked.
        ("part_kernel-sm80-2", "(at < hi) & (start < hi)", "at < hi + 4096"),
    ],
)
@pytest.mark.slow
def test_the_proof_can_fail(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    case = next(case for case in suite.CASES if case.name == name)
    text = case.port(suite.copy_name())
    assert right in text
    report = proved(case, text.replace(right, wrong), tmp_path)
    assert report.simulate is not None
    assert report.simulate.findings or not report.simulate.equal
