"""The command line of `port` over a faked port: options handed on, what is told, which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tt2gl.check.lock import NAME as LOCK
from tt2gl.check.lock import Lock, read_lock, write_lock
from tt2gl.cli import main
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.port import api
from tt2gl.port.api import Port, PortedFile
from tt2gl.port.jobs import Settings
from tt2gl.results import CompileResult, KernelReport, Metrics, SimulateResult, Status
from tt2gl.verify.options import SimulationOptions

COMPILED = CompileResult(True, Metrics(0, 32, 0, 1024, 0))
TOLD = Diagnostic("TTG003", Severity.ERROR, "k/bad.py", 1, 2, "Wrong.", "Correct it.")


def report(kernel: str, status: Status = "converted", equal: bool | None = None) -> KernelReport:
    ran = None if equal is None else SimulateResult(equal, equal, 0.0)
    compiled = None if status == "kept" else COMPILED
    return KernelReport("k/a.py", kernel, "sm90", 0, status, triton=compiled, gluon=compiled, simulate=ran)


def file(*kernels: KernelReport, told: tuple[Diagnostic, ...] = ()) -> PortedFile:
    return PortedFile("k/a.py", "out/a.py", False, "sm90", kernels, told)


@pytest.fixture
def ported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[list[PortedFile], list[dict[str, Any]]]:
    """The files that the port will say it made, and the calls it got."""
    monkeypatch.chdir(tmp_path)
    files: list[PortedFile] = []
    calls: list[dict[str, Any]] = []

    def fake(directory: Path, out: Path, **options: Any) -> Port:
        calls.append({"directory": directory, "out": out, **options})
        if not files:
            options["on_progress"]("converting", 2, 5)
            raise KeyboardInterrupt
        return Port(tuple(files), 3)

    monkeypatch.setattr(api, "port", fake)
    return files, calls


Ported = tuple[list[PortedFile], list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("found", "run", "code"),
    [
        pytest.param(file(report("a")), "none", 0, id="converted"),
        pytest.param(file(report("a"), report("b", "kept")), "none", 2, id="one stays Triton"),
        pytest.param(file(report("a", equal=True)), "simulate", 0, id="equal"),
        pytest.param(file(report("a", equal=False), report("b", "kept")), "simulate", 1, id="not equal"),
        pytest.param(file(report("a")), "simulate", 2, id="not simulated"),
        pytest.param(file(told=(TOLD,)), "none", 2, id="a file that is no Python"),
    ],
)
def test_exit_codes(ported: Ported, found: PortedFile, run: str, code: int) -> None:
    ported[0].append(found)
    assert main(["port", "k", "--out", "out", "--run", run]) == code


def test_what_is_told(ported: Ported, capsys: pytest.CaptureFixture[str]) -> None:
    ported[0].extend([file(report("a", equal=True), report("b", "kept")), file(told=(TOLD,))])
    assert main(["port", "k", "--out", "out", "--run", "simulate"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "k/a.py: sm90: 1 converted, 1 kept as Triton",
        "k/bad.py:1:2: TTG003 Wrong. Correct it.",
        "wrote out; sm90: 1 converted, 1 kept as Triton; 1 launch equal, 0 not; 3 files copied",
    ]


def test_json_is_all_of_stdout(ported: Ported, capsys: pytest.CaptureFixture[str]) -> None:
    ported[0].append(file(report("a"), told=(TOLD,)))
    assert main(["port", "k", "--out", "out", "--json"]) == 2
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["files"] == [{"file": "k/a.py", "output": "out/a.py", "up_to_date": False}]
    assert [each["code"] for each in document["diagnostics"]] == ["TTG003"]
    assert document["summary"] == {"converted": 1, "kept": 0, "failed": 0}
    assert captured.err == ""


def test_ctrl_c_says_how_to_go_on(ported: Ported, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["port", "k", "--out", "out"]) == 130
    assert capsys.readouterr().err.splitlines() == ["out: 2 of 5 files are done; go on with --resume", "interrupted"]


def test_options_are_handed_on(ported: Ported) -> None:
    ported[0].append(file(report("a")))
    Path("L.json").write_text('{"version": 1, "launches": []}')
    places = ["port", "k", "--out", "out", "--target", "sm90", "--target", "gfx942"]
    how = ["--jobs", "3", "--resume", "--no", "hoist", "--timeout", "9", "--run", "simulate", "--seeds", "1"]
    main([*places, *how, "--launches", "L.json", "--root", "src"])
    (call,) = ported[1]
    assert (call["directory"], call["out"], call["targets"]) == (Path("k"), Path("out"), ["sm90", "gfx942"])
    assert (call["jobs"], call["resume"], call["scheduler"]) == (3, True, None)
    simulation = SimulationOptions(seeds=1)
    assert call["settings"] == Settings((), Path("src"), 9.0, (), ("hoist",), "simulate", simulation)


def test_a_scheduler_instead_of_jobs(ported: Ported) -> None:
    ported[0].append(file(report("a")))
    main(["port", "k", "--out", "out", "--scheduler", "tcp://node:8786"])
    assert ported[1][0]["scheduler"] == "tcp://node:8786"
    with pytest.raises(SystemExit):
        main(["port", "k", "--out", "out", "--scheduler", "tcp://node:8786", "--jobs", "2"])


def test_a_lock_knows_the_ports(ported: Ported) -> None:
    ported[0].extend([file(report("a")), PortedFile("k/b.py", "out/b.py", False, "sm90", (report("b", "kept"),), ())])
    for name in ("k", "out"):
        Path(name).mkdir()
        Path(name, "a.py").write_text(f"# {name}\n")
    assert main(["port", "k", "--out", "out"]) == 2
    assert not Path(LOCK).exists()
    write_lock(Path(LOCK), Lock())
    main(["port", "k", "--out", "out"])
    lock = read_lock(Path(LOCK))
    assert lock is not None
    assert {name: (port.original, port.target) for name, port in lock.ports.items()} == {"out/a.py": ("k/a.py", "sm90")}
