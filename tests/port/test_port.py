"""`port` over faked jobs: what is done, journaled, written and told, and what an interruption leaves.

Real conversions are in test_port_end_to_end.py.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.port import api
from tt2gl.port.api import Port, port
from tt2gl.port.jobs import Converted, ConvertJob, Settings, VerifyJob
from tt2gl.port.journal import NAME, Journal, converted_from_json, converted_to_json
from tt2gl.results import (
    CompileResult,
    DeviceResult,
    KernelReport,
    Metrics,
    SimulateFinding,
    SimulateResult,
)

SOURCE = "import triton\n\n\ndef {name}(): ...\n"


def fake_convert(job: ConvertJob) -> Converted:
    """Goes by the file's name; says in a file beside the folder that it was called."""
    with Path("calls").open("a") as calls:
        calls.write(f"convert {job.path.name} {job.target}\n")
    name = job.path.stem
    if name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hang":
        time.sleep(60)
    if name == "plain":
        return Converted(None)
    if name == "slow":
        time.sleep(1.0)
    status: Any = "kept" if name == "kept" else "converted"
    told = Diagnostic("TTG301", Severity.ERROR, str(job.path), 3, 0, "A cause.", "Do this.")
    report = KernelReport(str(job.path), name, job.target, 0, status, diagnostics=(told,) * (status == "kept"))
    text = job.path.read_text()
    return Converted(text if status == "kept" else f"{text}# {job.target}\n", (report,))


def fake_verify(job: VerifyJob) -> tuple[KernelReport, ...]:
    with Path("calls").open("a") as calls:
        calls.write(f"verify {job.path.name} {job.target}\n")
    assert job.port.read_text().endswith(f"# {job.target}\n")
    compiled = CompileResult(True, Metrics(0, 32, 0, 1024, 0))
    equal = SimulateResult(True, True, 0.0) if job.settings.run == "simulate" else None
    name = job.path.stem
    return (KernelReport(str(job.path), name, job.target, 0, "converted", (), (), compiled, compiled, equal),)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "run_convert", fake_convert)
    monkeypatch.setattr(api, "run_verify", fake_verify)
    monkeypatch.setattr(api, "preload", lambda: None)
    (tmp_path / "package" / "sub").mkdir(parents=True)
    for name in ("a", "b", "kept", "plain", "sub/c"):
        Path("package", f"{name}.py").write_text(SOURCE.format(name=Path(name).name))
    Path("package", "__init__.py").write_text("")
    Path("package", "sub", "table.csv").write_text("1,2\n")
    Path("package", "__pycache__").mkdir()
    Path("package", "__pycache__", "a.pyc").write_bytes(b"x")
    yield tmp_path
    assert not list(tmp_path.rglob("*.tmp"))


def calls() -> list[str]:
    return sorted(Path("calls").read_text().splitlines()) if Path("calls").exists() else []


def contents(folder: Path | str) -> dict[str, str]:
    """All files below a folder but the journal."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != NAME]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(paths)}


def up_to_date(ported: Port) -> Port:
    """The same port where all was there already."""
    return replace(ported, files=tuple(replace(file, up_to_date=True) for file in ported.files))


def test_every_file_is_ported_or_copied(folder: Path) -> None:
    Path("package", "a.py").chmod(0o755)
    Path("package", "plain.py").chmod(0o755)
    ported = port("package", "out", targets=["sm90"])
    expected = contents("package")
    del expected["__pycache__/a.pyc"]
    expected |= {name: f"{expected[name]}# sm90\n" for name in ("a.py", "b.py", "sub/c.py")}
    assert contents("out") == expected
    assert [(file.path, file.output, file.target) for file in ported.files] == [
        (f"package/{name}", f"out/{name}", "sm90") for name in ("a.py", "b.py", "kept.py", "sub/c.py")
    ]
    assert ported.copied == 3
    executable = [path.name for path in sorted(Path("out").rglob("*.py")) if path.stat().st_mode & 0o100]
    assert executable == ["a.py", "plain.py"]


def test_a_tree_for_each_of_several_targets(folder: Path) -> None:
    ported = port("package", "out", targets=["sm90", "gfx942", "sm90"])
    assert {path.name for path in Path("out").iterdir()} == {NAME, "sm90", "gfx942"}
    assert contents("out/sm90").keys() == contents("out/gfx942").keys()
    assert contents("out/gfx942")["a.py"].endswith("# gfx942\n")
    assert [file.target for file in ported.files] == ["sm90"] * 4 + ["gfx942"] * 4


def test_reports_are_joined(folder: Path) -> None:
    ported = port("package", "out", targets=["sm90"], settings=Settings(run="simulate"))
    reports = {report.kernel: report for file in ported.files for report in file.kernels}
    assert reports["kept"].status == "kept"
    assert [each.code for each in reports["kept"].diagnostics] == ["TTG301"]
    assert reports["a"].gluon is not None
    assert reports["a"].simulate == SimulateResult(True, True, 0.0)
    assert "verify kept.py sm90" not in calls()


@pytest.mark.parametrize("jobs", [1, 4])
def test_the_same_bytes_and_results_whatever_the_number_of_jobs(folder: Path, jobs: int) -> None:
    first = port("package", "one", targets=["sm90"], jobs=2)
    second = port("package", "two", targets=["sm90"], jobs=jobs)
    assert contents("one") == contents("two")
    moved = tuple(replace(file, output=file.output.replace("two", "one")) for file in second.files)
    assert Port(moved, second.copied) == first


def test_resume_does_nothing_again(folder: Path) -> None:
    first = port("package", "out", targets=["sm90"])
    done = calls()
    assert not any(file.up_to_date for file in first.files)
    assert port("package", "out", targets=["sm90"], resume=True) == up_to_date(first)
    assert calls() == done


def test_without_resume_all_is_done_again(folder: Path) -> None:
    port("package", "out", targets=["sm90"])
    Path("calls").unlink()
    port("package", "out", targets=["sm90"])
    assert "convert a.py sm90" in calls()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(without=("hoist",)), id="rules"),
        pytest.param(Settings(launches=()), id="launches"),
        pytest.param(Settings(root=Path("src")), id="root"),
    ],
)
def test_resume_with_other_options_does_it_again(folder: Path, settings: Settings) -> None:
    port("package", "out", targets=["sm90"])
    Path("calls").unlink()
    port("package", "out", targets=["sm90"], settings=settings, resume=True)
    assert "convert a.py sm90" in calls()


def test_resume_after_a_change_of_the_source_does_it_again(folder: Path) -> None:
    port("package", "out", targets=["sm90"])
    Path("calls").unlink()
    Path("package", "b.py").write_text("import triton\n\n\ndef other(): ...\n")
    port("package", "out", targets=["sm90"], resume=True)
    # What a file is converted to may come of the helpers in another.
    assert "convert a.py sm90" in calls()
    assert contents("out")["b.py"] == "import triton\n\n\ndef other(): ...\n# sm90\n"


def test_to_run_kernels_later_converts_nothing_again(folder: Path) -> None:
    port("package", "out", targets=["sm90"])
    Path("calls").unlink()
    port("package", "out", targets=["sm90"], settings=Settings(run="simulate"), resume=True)
    assert calls() == ["verify a.py sm90", "verify b.py sm90", "verify c.py sm90"]


def test_a_file_that_ends_its_job_harms_no_other(folder: Path) -> None:
    Path("package", "crash.py").write_text(SOURCE.format(name="crash"))
    ported = port("package", "out", targets=["sm90"])
    (broken,) = [file for file in ported.files if file.path == "package/crash.py"]
    assert [(each.code, each.severity) for each in broken.diagnostics] == [("TTG900", Severity.ERROR)]
    assert "SIGSEGV" in broken.diagnostics[0].message
    assert contents("out")["crash.py"] == SOURCE.format(name="crash")
    assert contents("out")["b.py"].endswith("# sm90\n")


def test_a_file_that_hangs_harms_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_limit", lambda settings: 0.5)
    Path("package", "hang.py").write_text(SOURCE.format(name="hang"))
    ported = port("package", "out", targets=["sm90"])
    (broken,) = [file for file in ported.files if file.path == "package/hang.py"]
    assert "took longer than 0.5 s" in broken.diagnostics[0].message
    assert contents("out")["a.py"].endswith("# sm90\n")


def test_progress_counts_jobs_by_step(folder: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    port("package", "out", targets=["sm90"], on_progress=lambda *step: seen.append(step))
    assert seen == [("converting", done, 5) for done in range(6)] + [("verifying", done, 3) for done in range(4)]


@pytest.mark.parametrize("there", ["notes.txt", "package/a.py"])
def test_a_folder_with_something_else_in_it_is_refused(folder: Path, there: str) -> None:
    out = Path("other")
    (out / there).parent.mkdir(parents=True)
    (out / there).write_text("mine")
    with pytest.raises(DiagnosticError) as caught:
        port("package", out, targets=["sm90"])
    assert (caught.value.diagnostic.code, caught.value.exit_code) == ("TTG006", ExitCode.USAGE)
    assert contents(out) == {there: "mine"}
    assert calls() == []


def test_the_folder_itself_is_no_output(folder: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        port("package", "package", targets=["sm90"])
    assert caught.value.diagnostic.code == "TTG006"


def test_an_output_inside_the_folder_is_not_ported(folder: Path) -> None:
    for _ in range(2):
        port("package", "package/out", targets=["sm90"])
    assert "out/a.py" not in contents("package/out")
    assert "a.py" in contents("package/out")


def test_no_such_folder(folder: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        port("nowhere", "out", targets=["sm90"])
    assert (caught.value.diagnostic.code, caught.value.exit_code) == ("TTG001", ExitCode.NO_INPUT)


# ------------------------------------------------------------------------------------------------- interruptions

SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from tests.port.test_port import fake_convert, fake_verify
from tt2gl.port import api
api.run_convert, api.run_verify, api.preload = fake_convert, fake_verify, lambda: None
api.port("package", "out", targets=["sm90"], resume=True)
"""


def start() -> subprocess.Popen[bytes]:
    root = Path(__file__).parent.parent.parent
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(paths=[str(root)])], start_new_session=True, stderr=subprocess.DEVNULL
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_resumed_the_same_bytes(folder: Path, number: signal.Signals) -> None:
    for index in range(12):
        Path("package", f"k{index:02}.py").write_text(SOURCE.format(name=f"k{index}"))
    expected = port("package", "whole", targets=["sm90"])
    generator = random.Random(number)
    for _ in range(10):
        process = start()
        time.sleep(generator.uniform(0.2, 1.0))
        process.send_signal(number)
        process.wait()
    resumed = port("package", "out", targets=["sm90"], resume=True)
    assert contents("out") == contents("whole")
    assert [file.kernels for file in resumed.files] == [file.kernels for file in expected.files]


def test_what_a_killed_port_left_unfinished_is_gone_after_the_next(folder: Path) -> None:
    port("package", "out", targets=["sm90"])
    expected = contents("out")
    Path("out", "b.py").write_text("older")
    child = os.fork()
    if child == 0:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "replace", lambda *_: os._exit(9))
            port("package", "out", targets=["sm90"], resume=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = contents("out").keys() - expected.keys()
    assert len(left) == 1
    assert all(name.startswith(".b.py.") for name in left)
    port("package", "out", targets=["sm90"], resume=True)
    assert contents("out") == expected


@pytest.mark.slow
def test_what_is_done_when_interrupted_is_not_done_again(folder: Path) -> None:
    Path("package", "slow.py").write_text(SOURCE.format(name="slow"))
    process = start()
    end = time.monotonic() + 30
    while not (Path("out", NAME).exists() and len(Path("out", NAME).read_bytes().splitlines()) >= 3):
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.wait()
    done = {json.loads(line)["file"] for line in Path("out", NAME).read_text().splitlines()}
    Path("calls").unlink()
    port("package", "out", targets=["sm90"], resume=True)
    assert not {line.split()[1] for line in calls() if line.startswith("convert")} & {Path(file).name for file in done}


def test_a_line_cut_short_is_done_again(folder: Path) -> None:
    first = port("package", "out", targets=["sm90"])
    journal = Path("out", NAME)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    assert port("package", "out", targets=["sm90"], resume=True) == up_to_date(first)
    assert sorted(journal.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_a_full_disk_is_told_and_keeps_what_is_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, left = os.write, [2]

    def full(descriptor: int, data: Any) -> int:
        if b'"step"' in bytes(data):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr("tt2gl.port.journal.os.write", full)
    with pytest.raises(DiagnosticError) as caught:
        port("package", "out", targets=["sm90"], jobs=1)
    assert (caught.value.diagnostic.code, caught.value.exit_code) == ("TTG005", ExitCode.CANNOT_WRITE)
    assert "--resume" in caught.value.diagnostic.hint
    monkeypatch.setattr("tt2gl.port.journal.os.write", write)
    done = len(calls())
    port("package", "out", targets=["sm90"], jobs=1, resume=True)
    assert len([line for line in calls() if line.startswith("convert")]) == done + 5 - 2


def test_results_come_back_as_they_went_into_the_journal(tmp_path: Path) -> None:
    told = Diagnostic("TTG301", Severity.WARNING, "k.py", 3, 4, "A cause.", "Do this.")
    metrics = Metrics(1, None, 0, 1024, 0, {"128": 2}, {}, 3, 4, {"wgmma": 1}, 5)
    report = KernelReport(
        "k.py",
        "k",
        "sm90",
        1,
        "converted",
        ("hoist",),
        (told,),
        CompileResult(True, metrics),
        CompileResult(False, None, "no"),
        SimulateResult(False, False, float("inf"), (SimulateFinding("gluon", "race", "said", "k.py", 3),), None),
        DeviceResult("GPU", True, False, 0.5, 1.0, float("nan")),
    )
    with Journal(tmp_path / NAME, resume=False) as journal:
        journal.append("key", converted_to_json(Converted("text\n", (report,), (told,))))
    with Journal(tmp_path / NAME, resume=True) as journal:
        found = converted_from_json(journal.entries["key"])
    assert repr(found) == repr(Converted("text\n", (report,), (told,)))
