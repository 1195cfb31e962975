"""bench/port.py: what it asks of `port`."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import port
from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch, TensorArg

SMALL = Launch("a.py", "k", {"x": "*fp16"}, {}, args={"x": TensorArg("float16", (16,), (1,))})


def test_the_largest_launch_of_each_kernel_is_run() -> None:
    large = replace(SMALL, args={"x": TensorArg("float16", (64,), (1,))})
    other = replace(SMALL, kernel="other")
    assert port.largest([SMALL, large, other]) == [large, other]
    assert port.largest([]) == []


def test_only_the_files_asked_for_are_ported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def run(command: list[str], *, cwd: str, env: dict[str, str], check: bool) -> subprocess.CompletedProcess[str]:
        seen["files"] = sorted(path.name for path in Path(cwd, "kernels").iterdir())
        seen["launches"] = read_launches(Path(cwd, "launches.json"))
        seen["command"], seen["path"] = command, env["PYTHONPATH"]
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr("bench.port.subprocess.run", run)
    assert port.main(["--only", "rotary", "--only", "dropout", "--out", str(tmp_path / "report")]) == 3
    assert seen["files"] == ["dropout.py", "rotary.py"]
    assert len(seen["launches"]) == len({launch.kernel for launch in seen["launches"]}) == 2
    assert seen["command"][1:5] == ["-m", "tt2gl", "port", "kernels"]
    assert seen["command"][-2:] == ["--report", str(tmp_path / "report")]
    assert seen["command"][seen["command"].index("--run") + 1] == "gpu"
    assert seen["path"].startswith(str(port.ROOT))
