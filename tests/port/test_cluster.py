"""`port` on a Dask cluster of this machine, over faked jobs: the same bytes, whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

from tests.port.test_port import SOURCE, contents, fake_convert, fake_verify
from tt2gl.cli import main
from tt2gl.diagnostics import DiagnosticError, ExitCode
from tt2gl.port import api, cluster
from tt2gl.port.api import port
from tt2gl.port.jobs import Converted, ConvertJob
from tt2gl.port.journal import NAME

pytestmark = pytest.mark.once


def fake_convert_there(job: ConvertJob) -> Converted:
    """As `fake_convert`, slowly; one file takes the worker along."""
    time.sleep(0.2)
    if job.path.stem == "deadly":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return fake_convert(job)


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "run_convert", fake_convert_there)
    monkeypatch.setattr(api, "run_verify", fake_verify)
    monkeypatch.setattr(api, "preload", lambda: None)
    (tmp_path / "package").mkdir()
    for name in ("a", "b", "kept", "plain"):
        Path("package", f"{name}.py").write_text(SOURCE.format(name=name))
    return tmp_path


@pytest.mark.slow
def test_a_worker_killed_half_way_changes_nothing(folder: Path, workers: Any) -> None:
    here = port("package", "here", targets=["sm90"])
    with distributed.Client(workers.scheduler_address, set_as_default=False) as client:
        victim = next(iter(client.run(os.getpid).values()))

    def on_progress(step: str, done: int, total: int) -> None:
        if (step, done) == ("converting", 2):
            os.kill(victim, signal.SIGKILL)

    there = port("package", "there", targets=["sm90"], scheduler=workers.scheduler_address, on_progress=on_progress)
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)
    assert contents("there") == contents("here")
    assert [file.kernels for file in there.files] == [file.kernels for file in here.files]


@pytest.mark.slow
def test_a_file_that_kills_each_worker_is_reported(folder: Path, workers: Any) -> None:
    Path("package", "deadly.py").write_text(SOURCE.format(name="deadly"))
    ported = port("package", "out", targets=["sm90"], scheduler=workers.scheduler_address)
    (told,) = [each for file in ported.files if file.path == "package/deadly.py" for each in file.diagnostics]
    assert told.code == "TTG900"
    assert "each worker that took it died" in told.message
    assert contents("out")["deadly.py"] == SOURCE.format(name="deadly")
    assert contents("out")["a.py"].endswith("# sm90\n")


def test_a_worker_of_another_version_is_refused(folder: Path, workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "versions", lambda: {"tt2gl": "9.9"})
    with pytest.raises(DiagnosticError, match=r"has not what is here \(tt2gl 9\.9\): tt2gl ") as caught:
        port("package", "out", targets=["sm90"], scheduler=workers.scheduler_address)
    assert (caught.value.diagnostic.code, caught.value.exit_code) == ("TTG014", ExitCode.UNKNOWN)


def test_a_worker_that_comes_with_another_version_does_nothing() -> None:
    outcome = cluster.do_there(".", {"tt2gl": "9.9"}, fake_verify, (), 1.0)
    assert outcome.error.endswith("not tt2gl 9.9")


def test_a_scheduler_that_is_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        assert main(["port", "package", "--out", "out", "--scheduler", address]) == ExitCode.UNKNOWN
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{address}: TTG014 There is no scheduler that can be reached")
    assert sorted(path.name for path in Path("out").iterdir()) in ([], [NAME])


def test_a_scheduler_without_workers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as empty, pytest.raises(DiagnosticError) as told:
        port("package", "out", targets=["sm90"], scheduler=empty.scheduler_address)
    assert told.value.diagnostic.message == "The scheduler has no worker."
