"""tt2gl.verify on real compilers; the GPU run is faked, and tested whole elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tt2gl.children import Outcome
from tt2gl.convert import convert
from tt2gl.diagnostics import DiagnosticError, ExitCode
from tt2gl.launches import Launch
from tt2gl.results import CompileResult, Conversion, DeviceResult
from tt2gl.targets import get_target
from tt2gl.verify import api
from tt2gl.verify.api import verify
from tt2gl.verify.compile import CompileJob, compile_many
from tt2gl.verify.device import DeviceJob, DeviceRun

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
"""
SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
ALIGNED = ("x_ptr", "out_ptr", "n")

# Sixteen bytes a thread where the pointers allow, unlike this one.
NARROW = """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    gl.store(out_ptr + offsets, gl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> tuple[Path, tuple[Launch, ...]]:
    """A file and a launch of its kernel."""
    path = tmp_path / "copy.py"
    path.write_text(KERNEL)
    return path, (Launch(str(path), "copy_kernel", SIGNATURE, {"BLOCK": 1024}, ALIGNED),)


def test_every_target_is_converted_for_and_compared(kernel: tuple[Path, tuple[Launch, ...]]) -> None:
    path, launches = kernel
    done: list[tuple[int, int]] = []
    reports = verify(path, targets=["sm90", "gfx942"], launches=launches, on_progress=lambda *each: done.append(each))
    assert [(report.target, report.status) for report in reports] == [("sm90", "converted"), ("gfx942", "converted")]
    for report in reports:
        assert report.triton is not None
        assert report.gluon is not None
        assert report.triton.metrics is not None
        assert report.gluon.metrics is not None
        assert report.gluon.metrics.global_loads == report.triton.metrics.global_loads
        # Without arguments nothing says that 32 bits reach all of a tensor, as buffer operations want.
        unproven = ["TTG340", "TTG340"] if report.target == "gfx942" else []
        assert [each.code for each in report.diagnostics] == unproven
    assert sorted(done) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [found.name for found in path.parent.iterdir()] == ["copy.py"]


@pytest.mark.slow
def test_a_port_that_does_not_compile_is_converted_again_as_convert_does(
    kernel: tuple[Path, tuple[Launch, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_a_defect(*given: Any, **options: Any) -> Conversion:
        made = convert(*given, **options)
        broken = options["target"] == "sm80" and not options["compile"]
        return replace(made, text=made.text.replace("gl.store(", "gl.no_such_store(")) if broken else made

    monkeypatch.setattr(api, "convert", with_a_defect)
    path, launches = kernel
    reports = verify(path, targets=["sm80", "sm90"], launches=launches)
    assert [report.target for report in reports] == ["sm80"] * len(launches) + ["sm90"] * len(launches)
    assert {report.status for report in reports} == {"converted"}


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of each kernel that is compiled from now on, its dialect."""
    dialects: list[str] = []

    def watched(jobs: Sequence[CompileJob], **options: Any) -> list[CompileResult]:
        dialects.extend("gluon" if "gluon" in job.slice.modules[0].text else "triton" for job in jobs)
        return compile_many(jobs, **options)

    monkeypatch.setattr(api, "compile_many", watched)
    return dialects


def test_what_nobody_runs_is_compiled_without_its_original(
    kernel: tuple[Path, tuple[Launch, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, launches = kernel
    dialects = compilations(monkeypatch)
    done: list[tuple[int, int]] = []
    (guessed,) = verify(path, targets=["sm90"], guesses_compared=False, on_progress=lambda *each: done.append(each))
    assert dialects == ["gluon"]
    assert done == [(1, 1)]
    assert guessed.triton is None
    assert guessed.gluon is not None
    assert guessed.gluon.ok
    (given,) = verify(path, targets=["sm90"], launches=launches, guesses_compared=False)
    assert dialects == ["gluon", "triton", "gluon"]
    assert given.triton is not None


@pytest.mark.slow
def test_the_original_is_asked_where_a_port_does_not_compile_under_a_guess(
    kernel: tuple[Path, tuple[Launch, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = kernel
    port = path.with_name("broken.py")
    port.write_text(NARROW.replace("gl.store(", "gl.no_such_store("))
    dialects = compilations(monkeypatch)
    (report,) = verify(path, port, targets=["sm90"], guesses_compared=False)
    assert dialects == ["gluon", "triton"]
    assert [each.code for each in report.diagnostics] == ["TTG402"]
    path.write_text(KERNEL.replace("tl.load(x_ptr", "tl.no_such_load(x_ptr"))
    (report,) = verify(path, port, targets=["sm90"], guesses_compared=False)
    assert [each.code for each in report.diagnostics] == ["TTG401"]


def test_a_worse_port_is_told_with_its_target(kernel: tuple[Path, tuple[Launch, ...]]) -> None:
    path, launches = kernel
    port = path.with_name("narrow.py")
    port.write_text(NARROW)
    (report,) = verify(path, port, targets=["sm90"], launches=launches)
    assert "TTG501" in {each.code for each in report.diagnostics}
    assert all("(sm90, launch 0)" in each.message for each in report.diagnostics)


def on_gpu(monkeypatch: pytest.MonkeyPatch, outcome: Outcome[DeviceRun] | None) -> list[DeviceJob]:
    """A pretended sm90 whose runs end so; the jobs it got."""
    jobs: list[DeviceJob] = []

    def fake(job: DeviceJob) -> Outcome[DeviceRun]:
        assert outcome is not None
        jobs.append(job)
        return outcome

    module = sys.modules["tt2gl.verify.api"]
    monkeypatch.setattr(module, "present_architecture", lambda: None if outcome is None else "sm90")
    monkeypatch.setattr(module, "default_target", lambda: get_target("sm90"))
    monkeypatch.setattr(module, "run_on_device", fake)
    return jobs


def test_runs_on_the_target_that_is_present(
    kernel: tuple[Path, tuple[Launch, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = DeviceResult("GPU", True, True, 0.0, 1.0, 0.5)
    jobs = on_gpu(monkeypatch, Outcome("ok", DeviceRun(result, "", 0.0, 20, 1)))
    here, elsewhere = verify(kernel[0], targets=["sm90", "gfx942"], launches=kernel[1], run="gpu")
    assert here.device == result
    assert elsewhere.device is None
    assert [each.code for each in elsewhere.diagnostics] == ["TTG340", "TTG340", "TTG413"]
    assert [job.original.launch for job in jobs] == [kernel[1][0]]


def test_a_failed_run_is_told(kernel: tuple[Path, tuple[Launch, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch, Outcome("crash", error="SIGSEGV"))
    (report,) = verify(kernel[0], targets=["sm90"], launches=kernel[1], run="gpu")
    assert report.device is None
    assert [each.code for each in report.diagnostics] == ["TTG410"]


def test_no_gpu_is_told(kernel: tuple[Path, tuple[Launch, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch, None)
    (report,) = verify(kernel[0], targets=["sm90"], launches=kernel[1], run="gpu")
    assert [each.code for each in report.diagnostics] == ["TTG413"]


def test_launches_must_fit(kernel: tuple[Path, tuple[Launch, ...]]) -> None:
    path, _ = kernel
    port = path.with_name("narrow.py")
    port.write_text(NARROW)
    wrong = Launch(str(path), "copy_kernel", SIGNATURE | {"m": "i32"}, {"BLOCK": 1024})
    with pytest.raises(DiagnosticError) as caught:
        verify(path, port, targets=["sm90"], launches=[wrong])
    assert caught.value.diagnostic.code == "TTG202"
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_file_without_kernels_is_bad_source(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    for port in (None, tmp_path / "empty.py"):
        with pytest.raises(DiagnosticError) as caught:
            verify(tmp_path / "empty.py", port, targets=["sm90"])
        assert caught.value.diagnostic.code == "TTG004"
