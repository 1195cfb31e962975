"""What people read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.terminal import print_conversion, print_diagnostics, print_verification
from tt2gl.results import (
    CompileResult,
    Conversion,
    DeviceResult,
    KernelReport,
    Metrics,
    SimulateFinding,
    SimulateResult,
    Status,
)

WARNING = Diagnostic("TTG203", Severity.WARNING, "k.py", 12, 8, "[red]" + "a long cause " * 20, "Do this.")


def test_a_diagnostic_is_one_whole_line_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    print_diagnostics([WARNING, WARNING])
    assert capsys.readouterr().err == f"{WARNING}\n"


def report(name: str, status: Status, launch: int = 0) -> KernelReport:
    return KernelReport("k.py", name, "sm90", launch, status, diagnostics=(WARNING,))


def test_a_kernel_counts_once_by_its_worst_launch(capsys: pytest.CaptureFixture[str]) -> None:
    kernels = (report("a", "failed"), report("a", "converted", 1), report("b", "converted"), report("c", "kept"))
    print_conversion(Conversion("k.py", "x", "y", kernels), "wrote k_gluon.py")
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "k.py: sm90: 1 converted, 1 kept as Triton, 1 failed; wrote k_gluon.py"


def test_the_table_puts_both_compilers_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    triton = CompileResult(True, Metrics(0, 32, 0, 1024, 1, {"32": 2, "128": 4}))
    gluon = CompileResult(False, error="no")
    device = DeviceResult("GPU", True, False, 1e-6, 1.0, 0.5)
    print_verification([KernelReport("k.py", "k", "sm90", 0, "failed", triton=triton, gluon=gluon, device=device)])
    out = capsys.readouterr().out
    for cell in ("32 | error", "4x128 2x32 | error", "within 1e-06", "2.000"):
        assert cell in out
    assert "..." not in out
    assert "…" not in out


def test_a_wide_table_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    rings = {f"{rows}x64xf16": [3] for rows in range(64, 96)}
    result = CompileResult(True, Metrics(0, 32, 0, 1024, 1, rings=rings))
    print_verification([KernelReport("k.py", "k", "sm90", 0, "converted", triton=result, gluon=result)])
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()[:4]) for line in lines[1:]] == ["kernel target launch status", "k sm90 0 converted"]
    assert lines[-1].count("3x95x64xf16") == 2


def test_products_copies_and_rings_are_told_where_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    plain = Metrics(0, 32, 0, 1024, 1)
    mma = {"wgmma.m64n128k16.f32.f16.f16": 12, "wgmma.m64n128k16.f32.bf16.bf16": 4}
    copies, step = {"cp.async.16": 24, "tma.8192": 1}, {"cp.async.16": 8}
    rich = Metrics(0, 32, 0, 1024, 1, mma=mma, copies=copies, step_copies=step, rings={"64x64xf16": [3, 2]})
    report = KernelReport(
        "k.py", "k", "sm90", 0, "converted", triton=CompileResult(True, plain), gluon=CompileResult(True, rich)
    )
    print_verification([replace(report, gluon=report.triton)])
    assert not any(word in capsys.readouterr().out for word in ("products", "copies", "rings"))
    print_verification([report])
    out = capsys.readouterr().out
    assert " ".join(out.split()[-10:]) == "0 | 16xwgmma.m64n128k16 0 | 8xcp.async.16 0 | 3x64x64xf16 2x64x64xf16"


@pytest.mark.parametrize(
    ("result", "cell"),
    [
        (SimulateResult(True, True, 0.0), " bitwise\n"),
        (SimulateResult(True, False, 3.0), " within 3 ulp\n"),
        (SimulateResult(False, False, 9.0), " NO\n"),
        (SimulateResult(True, True, 0.0, (SimulateFinding("gluon", "race", "", "g.py", 3),)), " bitwise, 1 fault\n"),
    ],
)
def test_the_table_says_what_a_simulation_found(
    result: SimulateResult, cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = [KernelReport("k.py", "k", "sm90", launch, "converted", simulate=result) for launch in range(2)]
    print_verification([*reports, KernelReport("k.py", "k", "sm90", 2, "kept")])
    out = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()) + "\n"
    assert out.count(cell) == 2
    assert " simulated\n" in out
