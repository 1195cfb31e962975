"""The command line over faked stages: what is written, what is printed, which exit code.

The real stages behind it are in test_cli_end_to_end.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

import tt2gl
from tt2gl.cli import main
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
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
from tt2gl.verify.options import SimulationOptions

SOURCE = "x = 1\n"
CONVERTED = "x = 2\n"
KEPT = Diagnostic("TTG301", Severity.ERROR, "kept.py", 3, 4, "A cause.", "Do this.")


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """A stand-in for the conversion, which goes by the file's name, in an empty folder; the calls it got."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TT2GL_DEBUG", raising=False)
    for name in ("good.py", "kept.py", "bad.py", "bug.py", "interrupted.py"):
        Path(name).write_text(SOURCE)
    calls: list[dict[str, Any]] = []

    def fake(path: str, **options: Any) -> Conversion:
        calls.append({"path": path, **options})
        name = Path(path).name
        if name == "missing.py":
            raise DiagnosticError(Diagnostic("TTG001", Severity.ERROR, path, 0, 0, "No such file."), ExitCode.NO_INPUT)
        if name == "bad.py":
            raise DiagnosticError(Diagnostic("TTG003", Severity.ERROR, path, 1, 2, "Wrong."), ExitCode.BAD_SOURCE)
        if name == "bug.py":
            raise RuntimeError("two\nlines")
        if name == "interrupted.py":
            raise KeyboardInterrupt
        status: Status = "kept" if name == "kept.py" else "converted"
        report = KernelReport(path, "k", "sm90", 0, status, diagnostics=(KEPT,) if status == "kept" else ())
        return Conversion(path, SOURCE, SOURCE if status == "kept" else CONVERTED, (report,))

    module = ModuleType("tt2gl.convert")
    module.convert = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tt2gl.convert", module)
    return calls


def names(folder: Path | str = ".") -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


Calls = list[dict[str, Any]]
Captured = pytest.CaptureFixture[str]


def test_writes_beside_the_file_and_says_so(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "good.py"]) == 0
    assert Path("good_gluon.py").read_text() == CONVERTED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "good.py: sm90: 1 converted; wrote good_gluon.py\n"


def test_an_output_that_is_up_to_date_is_left_alone(convert: Calls, capsys: Captured) -> None:
    Path("good_gluon.py").write_text(CONVERTED)
    os.utime("good_gluon.py", (1, 1))
    assert main(["convert", "good.py"]) == 0
    assert Path("good_gluon.py").stat().st_mtime == 1
    assert "good_gluon.py is up to date" in capsys.readouterr().err


def test_a_kept_kernel_is_written_told_and_exits_2(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "kept.py"]) == 2
    assert Path("kept_gluon.py").read_text() == SOURCE
    told, summary = capsys.readouterr().err.splitlines()
    assert told == "kept.py:3:4: TTG301 A cause. Do this."
    assert summary == "kept.py: sm90: 1 kept as Triton; wrote kept_gluon.py"


def test_diff_prints_and_writes_nothing(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "good.py", "--diff"]) == 0
    assert not Path("good_gluon.py").exists()
    assert capsys.readouterr().out == "--- good.py\n+++ good_gluon.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


@pytest.mark.parametrize(
    ("there", "code"),
    [
        pytest.param(None, 1, id="missing"),
        pytest.param("x = 3\n", 1, id="differs"),
        pytest.param("x = 2\r\n", 1, id="other line ends"),
        pytest.param(CONVERTED, 0, id="up to date"),
    ],
)
def test_check_answers_and_writes_nothing(convert: Calls, there: str | None, code: int) -> None:
    output = Path("good_gluon.py")
    if there is not None:
        output.write_bytes(there.encode())
    assert main(["convert", "good.py", "--check"]) == code
    assert (output.read_bytes().decode() if output.exists() else None) == there


def test_check_is_about_the_output_alone(convert: Calls) -> None:
    Path("kept_gluon.py").write_text(SOURCE)
    assert main(["convert", "kept.py", "--check"]) == 0


def test_one_bad_file_stops_no_other_and_the_worst_code_wins(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "missing.py", "bad.py", "bug.py", "kept.py", "good.py", "-o", "out"]) == 70
    assert names("out") == ["good_gluon.py", "kept_gluon.py"]
    assert main(["convert", "missing.py", "bad.py", "good.py"]) == 66
    assert main(["convert", "bad.py", "kept.py"]) == 65
    assert "Traceback" not in capsys.readouterr().err


def test_an_internal_error_is_one_line_unless_debugging(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "bug.py"]) == 70
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("bug.py: TTG900 Internal error: RuntimeError: two lines. This is a bug in tt2gl")
    assert main(["convert", "bug.py", "--debug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_missing_package_is_no_internal_error(
    convert: Calls, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fake(path: str, **options: Any) -> Conversion:
        raise ModuleNotFoundError("No module named 'triton.experimental'", name="triton.experimental")

    monkeypatch.setattr(sys.modules["tt2gl.convert"], "convert", fake)
    assert main(["convert", "good.py"]) == 2
    assert capsys.readouterr().err.startswith("good.py: TTG012 The Python package triton is missing")


def test_ctrl_c(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "interrupted.py", "good.py"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert not Path("good_gluon.py").exists()


def test_json_is_all_of_stdout(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "good.py", "kept.py", "bad.py", "--json"]) == 65
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [entry["status"] for entry in document["kernels"]] == ["converted", "kept"]
    assert document["kernels"][1]["diagnostics"] == [KEPT.to_json()]
    assert [entry["code"] for entry in document["diagnostics"]] == ["TTG003"]
    assert document["files"][0] == {"file": "good.py", "output": "good_gluon.py", "up_to_date": False}
    assert document["summary"] == {"converted": 1, "kept": 1, "failed": 0}
    assert captured.err == "bad.py:1:2: TTG003 Wrong.\n"


def test_json_carries_the_diff(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "good.py", "--json", "--diff"]) == 0
    assert "+x = 2" in json.loads(capsys.readouterr().out)["files"][0]["diff"]
    assert not Path("good_gluon.py").exists()


def test_options_reach_the_conversion(convert: Calls) -> None:
    Path("l.json").write_text('{"version": 1, "launches": []}')
    command = ["convert", "good.py", "--target", "gfx942", "--launches", "l.json", "--root", "src", "--only", "a, b"]
    assert main(command) == 0
    expected = {"target": "gfx942", "launches": (), "root": Path("src"), "only": ("a", "b")}
    assert expected.items() <= convert[0].items()


def test_configuration_stands_in_for_options(convert: Calls) -> None:
    Path("pyproject.toml").write_text('[tool.tt2gl]\ntarget = "sm80"\nno = ["row_cache"]\n')
    main(["convert", "good.py"])
    main(["convert", "good.py", "--target", "sm90", "--no", "tma"])
    main(["convert", "good.py", "--only", "tma"])
    assert [call["target"] for call in convert] == ["sm80", "sm90", "sm80"]
    assert [set(call["without"]) for call in convert] == [{"row_cache"}, {"tma"}, set()]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([], id="no command"),
        pytest.param(["transmogrify"], id="unknown command"),
        pytest.param(["convert"], id="no file"),
        pytest.param(["convert", "good.py", "--diff", "--check"], id="diff and check"),
        pytest.param(["convert", "good.py", "--only", "a", "--no", "b"], id="only and no"),
        pytest.param(["convert", "good.py", "-o", "good.py"], id="output is the input"),
        pytest.param(["convert", "good.py", "--target", "sm99"], id="unknown target"),
        pytest.param(["convert", "good.py", "--timeout", "-1"], id="negative time limit"),
        pytest.param(["verify", "good.py", "--run", "hopefully"], id="unknown way to run"),
        pytest.param(["verify", "good.py", "--seeds", "0"], id="no seed"),
        pytest.param(["verify", "good.py", "--memory-limit", "much"], id="no size"),
        pytest.param(["verify", "good.py", "--memory-limit", "0"], id="no memory"),
    ],
)
def test_wrong_usage_is_64(convert: Calls, capsys: Captured, command: list[str]) -> None:
    try:
        code = main(command)
    except SystemExit as error:  # how argparse ends
        code = int(error.code or 0)
    assert code == 64
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err
    assert convert == []


def test_an_unknown_target_is_told_once_with_the_known_ones(convert: Calls, capsys: Captured) -> None:
    assert main(["convert", "good.py", "kept.py", "--target", "sm99"]) == 64
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("tt2gl: TTG010 ")
    assert "gfx942" in lines[0]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param("/dev/full", "No space left on device", id="full disk"),
        pytest.param("good.py/out.py", "its folder is a file", id="not a folder"),
    ],
)
def test_unwritable_output_is_73(convert: Calls, capsys: Captured, place: str, words: str) -> None:
    assert main(["convert", "good.py", "-o", place]) == 73
    captured = capsys.readouterr().err
    assert captured.startswith(f"{place}: TTG005 ")
    assert words in captured
    assert "Traceback" not in captured


def test_an_output_that_cannot_be_written_is_told_before_the_conversion(convert: Calls) -> None:
    assert main(["convert", "good.py", "-o", "kept.py/out.py"]) == 73
    assert convert == []


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[list[KernelReport], Calls]:
    """A stand-in for the verification: the reports it will return, the calls it got."""
    monkeypatch.chdir(tmp_path)
    reports: list[KernelReport] = []
    calls: Calls = []

    def fake(path: str, gluon_path: str | None, **options: Any) -> tuple[KernelReport, ...]:
        calls.append({"path": path, "gluon_path": gluon_path, **options})
        return tuple(reports)

    module = ModuleType("tt2gl.verify.api")
    module.verify = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tt2gl.verify.api", module)
    return reports, calls


def report(
    status: Status = "converted",
    ok: bool = True,
    equal: bool | None = None,
    simulate: SimulateResult | None = None,
) -> KernelReport:
    compiled = CompileResult(ok, Metrics(0, 32, 0, 1024, 0) if ok else None, None if ok else "no")
    device = None if equal is None else DeviceResult("GPU", equal, equal, 0.0, 1.0, 1.0)
    return KernelReport(
        "k.py", "k", "sm90", 0, status, triton=compiled, gluon=compiled, simulate=simulate, device=device
    )


def test_verify_that_was_to_run_and_did_not_could_not_tell(verify: tuple[list[KernelReport], Calls]) -> None:
    verify[0].append(report())
    assert main(["verify", "k.py", "--run", "gpu"]) == 2


@pytest.mark.parametrize(
    ("found", "code"),
    [
        pytest.param([report()], 0, id="both compile"),
        pytest.param([report(equal=True)], 0, id="equal"),
        pytest.param([report(), report(ok=False)], 2, id="one does not compile"),
        pytest.param([report("kept")], 2, id="kept"),
        pytest.param([report("failed", ok=False), report(equal=False)], 1, id="a definite no outweighs"),
    ],
)
def test_verify_exit_codes(verify: tuple[list[KernelReport], Calls], found: list[KernelReport], code: int) -> None:
    verify[0].extend(found)
    assert main(["verify", "k.py"]) == code


def finding(kernel: Literal["triton", "gluon"]) -> SimulateFinding:
    return SimulateFinding(kernel, "out-of-bounds", "load outside x", "k.py", 3, "x")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        pytest.param(SimulateResult(True, True, 0.0), 0, id="equal"),
        pytest.param(SimulateResult(True, False, 3.0), 0, id="equal up to rounding"),
        pytest.param(SimulateResult(False, False, 3.0), 1, id="not equal"),
        pytest.param(SimulateResult(True, True, 0.0, (finding("gluon"),)), 1, id="a fault of the port"),
        pytest.param(SimulateResult(True, True, 0.0, (finding("triton"), finding("gluon"))), 0, id="of both"),
        pytest.param(None, 2, id="not simulated"),
    ],
)
def test_exit_codes_of_simulations(
    verify: tuple[list[KernelReport], Calls], result: SimulateResult | None, code: int
) -> None:
    verify[0].append(report(simulate=result))
    assert main(["verify", "k.py", "--run", "simulate"]) == code


def test_verify_hands_on_how_to_simulate(verify: tuple[list[KernelReport], Calls]) -> None:
    options = ["--arithmetic", "field", "--seeds", "3", "--memory-limit", "1.5GiB", "--simulate-timeout", "9"]
    main(["verify", "k.py", "--run", "simulate", *options])
    main(["verify", "k.py", "--memory-limit", "500000"])
    assert verify[1][0]["simulation"] == SimulationOptions("field", 3, 3 << 29, 9.0)
    assert verify[1][1]["simulation"] == SimulationOptions(memory_limit=500_000)


def test_verify_prints_a_table_or_a_document(verify: tuple[list[KernelReport], Calls], capsys: Captured) -> None:
    verify[0].append(report())
    main(["verify", "k.py", "g.py", "--target", "sm90", "--target", "gfx942", "--target", "sm90", "--run", "gpu"])
    assert "32 | 32" in capsys.readouterr().out
    assert verify[1][0]["gluon_path"] == "g.py"
    assert verify[1][0]["targets"] == ["sm90", "gfx942"]
    assert verify[1][0]["run"] == "gpu"
    main(["verify", "k.py", "--json"])
    assert json.loads(capsys.readouterr().out)["kernels"][0]["compile"]["gluon"]["ok"] is True


@pytest.mark.slow
def test_doctor(capsys: Captured) -> None:
    assert main(["doctor"]) == 0
    assert f"tt2gl    {tt2gl.__version__}\n" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1
    assert found["healthy"] is True
    assert found["targets"]["sm90"] is True


def test_version_and_help_import_nothing_heavy() -> None:
    script = (
        "import sys, tt2gl.cli\n"
        "try: tt2gl.cli.main([sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "sys.exit(any(name in sys.modules for name in ('triton', 'libcst', 'rich')))"
    )
    for option in ("--version", "--help"):
        subprocess.run([sys.executable, "-c", script, option], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(convert: Calls) -> None:
    """`tt2gl convert --diff | head -0`."""
    script = (
        "import sys, types; from tt2gl.results import Conversion\n"
        "fake = types.ModuleType('tt2gl.convert')\n"
        "fake.convert = lambda path, **_: Conversion(path, 'a\\n' * 100000, 'b\\n' * 100000, ())\n"
        "sys.modules['tt2gl.convert'] = fake\n"
        "from tt2gl.cli import main; sys.exit(main(['convert', '--diff', 'good.py']))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    assert process.wait() == 128 + signal.SIGPIPE


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_kill_the_children_too(tmp_path: Path, number: signal.Signals, code: int) -> None:
    script = (
        "import sys, types, time, pathlib, os; from tt2gl.isolate import run_isolated\n"
        "def hang():\n"
        "    pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)\n"
        "fake = types.ModuleType('tt2gl.convert')\n"
        "fake.convert = lambda path, **_: run_isolated(hang)\n"
        "sys.modules['tt2gl.convert'] = fake\n"
        "from tt2gl.cli import main; sys.exit(main(['convert', 'good.py']))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, env=environment, cwd=tmp_path, start_new_session=True
    )
    pid_file = tmp_path / "pid"
    deadline = time.monotonic() + 20
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(timeout=10) == code
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
