"""The README shows what tt2gl really prints and writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BEFORE, AFTER = (
    re.sub(r"  # (before|after): .*", "", block)
    for block in re.findall(r"^```python\n(@\w+\.jit  # .*?)^```$", README, re.MULTILINE | re.DOTALL)
)
LAUNCHES = re.findall(r"^```json\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]
SESSIONS = [
    (command, re.sub(r"^    ?", "", said, flags=re.MULTILINE))
    for command, said in re.findall(r"^    \$ tt2gl (\w+ softmax\.py.*)\n((?:    .*\n)+)", README, re.MULTILINE)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = f"import torch\nimport triton\nimport triton.language as tl\n\n\n{BEFORE}"
    (tmp_path / "softmax.py").write_text(text)
    (tmp_path / "launches.json").write_text(LAUNCHES)
    return tmp_path


def run(folder: Path, command: str) -> str:
    """What a command prints, its diagnostics first."""
    argv = [sys.executable, "-m", "tt2gl", *command.split()]
    place = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True, env=place)
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())


def test_sessions_are_shown() -> None:
    assert [command.split()[0] for command, _ in SESSIONS] == ["convert", "convert", "verify"]


def test_what_convert_prints_and_writes(folder: Path) -> None:
    for command, said in SESSIONS[:2]:
        assert run(folder, command) == said.strip()
    assert (folder / "softmax_gluon.py").read_text().endswith(f"\n\n\n{AFTER}")


def test_what_verify_prints(folder: Path) -> None:
    command, said = SESSIONS[2]
    assert masked(run(folder, command)) == masked(said)


def masked(table: str) -> list[list[str]]:
    """A table's cells, but registers and words on them, which differ between Tritons."""
    rows = [line.split() for line in table.strip().splitlines() if "TTG504" not in line]
    return [[*row[:4], *row[7:]] if len(row) > 8 and row[2].isdigit() else row for row in rows]
