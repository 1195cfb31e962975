"""What tests compare of a verified kernel: its machine code beside Triton's, once both compute the same."""

from __future__ import annotations

from pathlib import Path

from tt2gl.launches import Launch
from tt2gl.results import KernelReport, Metrics
from tt2gl.verify.api import verify


def compared(path: Path, launch: Launch, target: str) -> tuple[KernelReport, Metrics, Metrics]:
    """The report of a file's kernel, converted and equal in simulation, with Triton's metrics and the port's."""
    (report,) = verify(path, targets=[target], launches=[launch], root=path.parent, run="simulate")
    assert report.status == "converted"
    assert report.simulate is not None
    assert (report.simulate.equal, report.simulate.findings) == (True, ())
    assert report.triton is not None
    assert report.gluon is not None
    assert report.triton.metrics is not None
    assert report.gluon.metrics is not None
    return report, report.triton.metrics, report.gluon.metrics
