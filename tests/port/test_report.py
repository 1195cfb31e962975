"""`tt2gl port --report`: what is looked at for it, once, and what is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.port.test_port import calls, fake_convert, fake_verify
from tests.test_readme import RANKING, README
from tt2gl.cli import main
from tt2gl.port import api
from tt2gl.port.api import Port, PortedFile, port
from tt2gl.port.jobs import VerifyJob
from tt2gl.results import KernelReport, NamedLayout

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent.parent
LAYOUT = NamedLayout("a", "row_layout", 3, "threads", "BlockedLayout()", (8,), 16, {"reg": ((1,), (2,), (4,))})


def fake_layouts(job: VerifyJob) -> tuple[NamedLayout, ...]:
    with Path("calls").open("a") as stream:
        stream.write(f"layouts {job.path.name} {job.target}\n")
    if job.path.stem == "b":
        raise ValueError("no layouts here")
    return (LAYOUT,)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "run_convert", fake_convert)
    monkeypatch.setattr(api, "run_verify", fake_verify)
    monkeypatch.setattr(api, "run_layouts", fake_layouts)
    monkeypatch.setattr(api, "preload", lambda: None)
    Path("package").mkdir()
    for name in ("a", "b", "kept"):
        Path("package", f"{name}.py").write_text(f"import triton\n\n\ndef {name}(): ...\n")
    return tmp_path


def test_layouts_are_not_looked_at_unasked(folder: Path) -> None:
    ported = port("package", "out", targets=["sm90"])
    assert [file.layouts for file in ported.files] == [(), (), ()]
    assert not [line for line in calls() if line.startswith("layouts")]


def test_layouts_of_ports_come_back_from_the_journal(folder: Path) -> None:
    first = port("package", "out", targets=["sm90"], layouts=True)
    # A job that fails costs its file's layouts, and a kept file has none.
    assert {Path(file.path).stem: file.layouts for file in first.files} == {"a": (LAYOUT,), "b": (), "kept": ()}
    done = calls()
    assert [line for line in done if line.startswith("layouts")] == ["layouts a.py sm90", "layouts b.py sm90"]
    again = port("package", "out", targets=["sm90"], layouts=True, resume=True)
    assert [file.layouts for file in again.files] == [file.layouts for file in first.files]
    assert calls() == done


@pytest.mark.parametrize("asked", [False, True])
def test_a_report_is_written_where_one_is_asked_for(
    asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []

    def fake(*_: object, **options: Any) -> Port:
        seen.append(options["layouts"])
        kept = KernelReport("k/a.py", "a", "sm90", 0, "kept")
        return Port((PortedFile("k/a.py", "out/a.py", False, "sm90", (kept,), ()),), 0)

    monkeypatch.setattr(api, "port", fake)
    assert main(["port", "k", "--out", "out", *(["--report", "told"] if asked else [])]) == 2
    assert seen == [asked]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == (
        ["report.html", "report.json", "report.md"] if asked else []
    )
    said = capsys.readouterr().err.splitlines()
    assert ("wrote told/report.html, report.md and report.json" in said) == asked


@pytest.mark.slow
def test_a_real_port_and_what_the_readme_shows_of_it(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "ranking.py").write_text(RANKING)
    command = ["port", "kernels", "--out", "out", "--target", "sm90", "--report", "report"]
    place = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tt2gl", *command], cwd=tmp_path, capture_output=True, text=True, check=False, env=place
    )
    assert done.returncode == 2, done.stderr
    scale, sort = json.loads((tmp_path / "report" / "report.json").read_text())["kernels"]
    (layout,) = scale["layouts"]
    assert (layout["shape"], sort["layouts"]) == ([1024], [])
    assert [len(layout["bases"][name]) for name in ("lane", "warp")] == [5, 2]
    assert "+    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK" in scale["diff"]
    assert (tmp_path / "report" / "report.html").read_text().count('<svg class="layout"') == 2
    (shown,) = re.findall(r"^```markdown\n(.*?)^```$", README, re.M | re.S)
    assert shown in (tmp_path / "report" / "report.md").read_text()
    assert "    wrote report/report.html, report.md and report.json\n" in README
    assert "wrote report/report.html, report.md and report.json\n" in done.stderr
