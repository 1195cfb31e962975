"""Launches of liger-kernel's operators on a machine without a GPU are those that others recorded."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch, TensorArg
from tt2gl.record import api
from tt2gl.record.api import record

ROOT = Path(__file__).parent.parent.parent
LIGER = os.environ.get("TT2GL_LIGER")
LAUNCHES = os.environ.get("TT2GL_LIGER_LAUNCHES")


def without_ranges(launch: Launch) -> Launch:
    def plain(value: Any) -> Any:
        return replace(value, range=None) if isinstance(value, TensorArg) else value

    return replace(launch, args={name: plain(value) for name, value in (launch.args or {}).items()})


@pytest.mark.slow
@pytest.mark.skipif(not (LIGER and LAUNCHES), reason="set TT2GL_LIGER and TT2GL_LIGER_LAUNCHES")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_every_launch_of_liger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LIGER is not None
    assert LAUNCHES is not None
    monkeypatch.setattr(api, "present_architecture", lambda: None)
    monkeypatch.setenv("PYTHONPATH", LIGER)
    command = [sys.executable, str(ROOT / "bench" / "liger_ops.py")]
    recording = record(command, tmp_path / "L.json", root=Path(LIGER), target="sm90")
    assert recording.exit_code == 0
    found = list(map(without_ranges, recording.launches))
    assert [launch.kernel for launch in map(without_ranges, read_launches(LAUNCHES)) if launch not in found] == []
