"""bench/simulate.py for real, on one file of the corpus."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_file_of_the_corpus_is_simulated_and_told(tmp_path: Path) -> None:
    command = [sys.executable, "bench/simulate.py", "--only", "strided_rows_kernel", "--most-bytes", "1e6"]
    command += ["--target", "sm90", "--target", "gfx942", "--seeds", "1", "--json", str(tmp_path / "found.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["sm90", "launches", "2", "2", *"000000"] in rows
    assert ["gfx942", "kernels", "1", "1", *"000000"] in rows
    summary = json.loads((tmp_path / "found.json").read_text())["summary"]
    assert summary == {"converted": 4, "kept": 0, "failed": 0, "equal": 4, "not_equal": 0}
