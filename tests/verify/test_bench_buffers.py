"""bench/buffers.py for real, on one kernel of the corpus."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.buffers import fewer

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_buffer_operations_are_counted_beside_tritons(tmp_path: Path) -> None:
    command = [sys.executable, "bench/buffers.py", "--only", "add_kernel", "--json", str(tmp_path / "found.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads((tmp_path / "found.json").read_text())
    assert made["environment"].keys() == {"triton", "date", "commit"}
    counted = {by: (each["buffer"], each["other"]) for by, each in made["kernels"][0].items() if isinstance(each, dict)}
    # Triton knows nothing of tensors whose size it is not told.
    assert counted == {"triton": (0, 3), "pointer_range": (3, 0), "port": (3, 0)}
    assert "gfx942: 1 kernels of 1" in done.stdout


def test_fewer_buffer_operations_are_told() -> None:
    many, few = {"buffer": 3, "other": 0}, {"buffer": 2, "other": 1}
    assert fewer({"triton": few, "pointer_range": many, "port": few})
    assert not fewer({"triton": few, "pointer_range": few, "port": many})
    # Fewer that do as much are wider ones.
    assert not fewer({"triton": few, "pointer_range": many, "port": {"buffer": 2, "other": 0}})
    assert not fewer({"kept": "it has no launches"})
