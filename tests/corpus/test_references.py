"""Every kernel computes what its reference says: Triton's interpreter against torch, on the CPU."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.features import FAMILIES, lacking_in_interpreter

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed beside this Triton")
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_agree_with_their_references(family: str) -> None:
    if missing := lacking_in_interpreter(family):
        pytest.skip(f"Triton's interpreter has no {missing}")
    command = [sys.executable, "tests/corpus/interpret.py", family]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    launched = {
        launch["kernel"] for launch in json.loads((ROOT / f"corpus/{family}.launches.json").read_text())["launches"]
    }
    assert {result["kernel"] for result in results} == launched
    assert [result for result in results if result["problems"]] == []
