"""Every kernel of the corpus compiles as it stands, for NVIDIA and for AMD, on every Triton supported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.subset
@pytest.mark.parametrize(("backend", "architecture"), [("cuda", "90"), ("hip", "gfx942")], ids=["sm90", "gfx942"])
def test_originals_compile(backend: str, architecture: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "tests/corpus/compile_originals.py", backend, architecture],
        check=False,
        cwd=ROOT,
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    launches = sum(len(json.loads(path.read_text())["launches"]) for path in (ROOT / "corpus").glob("*.launches.json"))
    assert len(results) == launches
    assert [result for result in results if result["error"]] == []
