"""Every kernel of the corpus compiles as it stands, for NVIDIA and for AMD, on every Triton supported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.features import available

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "architecture", "which"),
    [
        pytest.param("cuda", "90", "first", id="sm90-first"),
        pytest.param("cuda", "90", "rest", id="sm90-rest"),
        pytest.param("hip", "gfx942", "first", id="gfx942-first"),
        pytest.param("hip", "gfx942", "rest", id="gfx942-rest"),
    ],
)
def test_originals_compile(backend: str, architecture: str, which: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "tests/corpus/compile_originals.py", backend, architecture, which],
        check=False,
        cwd=ROOT,
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    launched = [kernel for family in available(architecture) for kernel in _launched(family)]
    first = len(set(launched))
    assert len(results) == (first if which == "first" else len(launched) - first)
    assert [result for result in results if result["error"]] == []


def _launched(family: str) -> list[tuple[str, str]]:
    launches = json.loads((ROOT / f"corpus/{family}.launches.json").read_text())["launches"]
    return [(family, launch["kernel"]) for launch in launches]
