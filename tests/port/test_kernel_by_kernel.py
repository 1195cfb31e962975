"""What an interruption of `port` loses: the kernel at hand, and not its file."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from tests.port.test_port import SOURCE, calls, contents
from tt2gl.isolate import map_isolated
from tt2gl.ledger import Ledger
from tt2gl.port import api
from tt2gl.port.api import port
from tt2gl.port.jobs import Converted, ConvertJob, VerifyJob, at_work
from tt2gl.port.journal import NAME, PARTS
from tt2gl.results import CompileResult, KernelReport, Metrics

KERNELS = 6


def one_kernel(step: str, file: str, number: int) -> str:
    """The work on one kernel: it says in a file that it was begun and ended."""
    for what in ("begun", "ended"):
        with Path("calls").open("a") as told:
            told.write(f"{what} {step} {file} {number}\n")
        time.sleep(0.03)
    return f"# {file} {number}\n"


def by_kernel(step: str, job: ConvertJob | VerifyJob) -> str:
    with at_work(job):
        outcomes = map_isolated(one_kernel, [(step, job.path.name, number) for number in range(KERNELS)])
    return "".join(outcome.value or "" for outcome in outcomes)


def fake_convert(job: ConvertJob) -> Converted:
    report = KernelReport(str(job.path), job.path.stem, job.target, 0, "converted")
    how = "convert again" if job.compiled else "convert"
    return Converted(job.path.read_text() + by_kernel(how, job) + f"# compiled: {job.compiled}\n", (report,))


def fake_verify(job: VerifyJob) -> tuple[KernelReport, ...]:
    """A port of `bad.py` compiles only once its conversion has tried what compiles."""
    by_kernel("verify", job)
    good = job.path.stem != "bad" or "# compiled: True" in job.port.read_text()
    made = CompileResult(good, Metrics(0, 32, 0, 1024, 0) if good else None, None if good else "no")
    status: Literal["converted", "failed"] = "converted" if good else "failed"
    return (KernelReport(str(job.path), job.path.stem, job.target, 0, status, (), (), made, made),)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "run_convert", fake_convert)
    monkeypatch.setattr(api, "run_verify", fake_verify)
    monkeypatch.setattr(api, "preload", lambda: None)
    Path("package").mkdir()
    for name in ("a", "b"):
        Path("package", f"{name}.py").write_text(SOURCE.format(name=name))
    return tmp_path


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from tests.port import test_kernel_by_kernel as fakes
from tt2gl.port import api
api.run_convert, api.run_verify, api.preload = fakes.fake_convert, fakes.fake_verify, lambda: None
api.port("package", "out", targets=["sm90"], jobs=1, resume=True)
"""


def start() -> subprocess.Popen[bytes]:
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", SCRIPT.format(paths=[str(root)])]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def test_a_port_that_compiles_is_converted_once(folder: Path) -> None:
    port("package", "out", targets=["sm90"])
    assert not [line for line in calls() if "again" in line]
    assert contents("out")["a.py"].endswith("# compiled: False\n")


@pytest.mark.slow
def test_one_that_does_not_compile_is_converted_again_and_it_alone(folder: Path) -> None:
    Path("package", "bad.py").write_text(SOURCE.format(name="bad"))
    ported = port("package", "out", targets=["sm90"])
    assert {line.split()[3] for line in calls() if "again" in line} == {"bad.py"}
    assert [line for line in calls() if line.startswith("begun verify a.py")] == [
        f"begun verify a.py {number}" for number in range(KERNELS)
    ]
    assert contents("out")["bad.py"].endswith("# compiled: True\n")
    assert {report.status for file in ported.files for report in file.kernels} == {"converted"}
    # The next one knows that at once.
    done = calls()
    again = port("package", "out", targets=["sm90"], resume=True)
    assert all(file.up_to_date for file in again.files)
    assert calls() == done


def test_what_stays_behind_is_the_journal_alone(folder: Path) -> None:
    port("package", "out", targets=["sm90"])
    assert {path.name for path in Path("out").iterdir()} == {NAME, "a.py", "b.py"}


def test_without_resume_nothing_is_taken_from_what_was_cut_short(folder: Path) -> None:
    Path("out", PARTS).mkdir(parents=True)
    Path("out", PARTS, "key").write_bytes(b"x")
    Path("out", NAME).write_text("")
    port("package", "out", targets=["sm90"])
    assert not Path("out", PARTS).exists()


def in_ledgers() -> set[tuple[str, str, int]]:
    """The kernels whose work is written down in `out`, of files that are not whole yet."""
    every = [(s, f, n) for s in ("convert", "verify") for f in ("a.py", "b.py") for n in range(KERNELS)]
    ledgers = [Ledger(path) for path in Path("out", PARTS).glob("*")]
    return {kernel for kernel in every if any(ledger.recall(one_kernel, kernel) for ledger in ledgers)}


def begun() -> Counter[tuple[str, str, int]]:
    lines = (line.split() for line in calls() if line.startswith("begun"))
    return Counter((step, file, int(number)) for _, step, file, number in lines)


@pytest.mark.slow
def test_killed_ten_times_no_kernel_that_was_done_is_done_again(folder: Path) -> None:
    expected = port("package", "whole", targets=["sm90"])
    Path("calls").write_text("")
    generator = random.Random(5)
    done: dict[tuple[str, str, int], int] = {}
    for _ in range(10):
        process = start()
        enough = len(calls()) + generator.randrange(1, 8)
        while len(calls()) < enough and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.wait()
        counts = begun()
        done.update({kernel: counts[kernel] for kernel in in_ledgers() - done.keys()})
    resumed = port("package", "out", targets=["sm90"], jobs=1, resume=True)
    assert contents("out") == contents("whole")
    assert [file.kernels for file in resumed.files] == [file.kernels for file in expected.files]
    assert done
    counts = begun()
    assert len(counts) == 2 * 2 * KERNELS
    assert {kernel: counts[kernel] for kernel in done} == done
