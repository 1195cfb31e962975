"""The README shows what tt2gl really prints and writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BEFORE, AFTER = (
    re.sub(r"  # (before|after): .*", "", block)
    for block in re.findall(r"^```python\n(@\w+\.jit  # .*?)^```$", README, re.MULTILINE | re.DOTALL)
)
# A loop before and after, as in a golden pair.
LOOP = [
    textwrap.indent(re.sub(r"  # (before|after): .*", "", block), "    ")
    for block in re.findall(r"^```python\n(\S[^\n]*  # (?:before|after): matmul.*?)^```$", README, re.M | re.S)
]
LAUNCHES = re.findall(r"^```json\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]
# The launches page shows the same launch with its grid and arguments.
RUNNABLE = re.findall(r"^```json\n(.*?)^```$", (ROOT / "docs" / "launches.md").read_text("utf-8"), re.M | re.S)[0]
SESSIONS = [
    (command, re.sub(r"^    ?", "", said, flags=re.MULTILINE))
    for command, said in re.findall(r"^    \$ tt2gl (\w+ \w+\.py.*)\n((?:    .*\n)+)", README, re.MULTILINE)
]


# Of this file the README shows the signature of its second kernel, and what is said of both.
RANKING = """import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


@triton.jit
def merge_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=float("inf"))
    tl.store(out_ptr + offsets, tl.standard.sort_impl(x), mask=offsets < n)
"""
KEPT = re.findall(r"^```python\n(# tt2gl: kept.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = f"import torch\nimport triton\nimport triton.language as tl\n\n\n{BEFORE}"
    (tmp_path / "softmax.py").write_text(text)
    (tmp_path / "ranking.py").write_text(RANKING)
    (tmp_path / "launches.json").write_text(LAUNCHES)
    (tmp_path / "runnable.json").write_text(RUNNABLE)
    return tmp_path


def run(folder: Path, command: str, *, status: int = 0) -> str:
    """What a command prints, without the spaces that fill a table's lines."""
    argv = [sys.executable, "-m", "tt2gl", *command.split()]
    place = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"}
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, env=place)
    assert done.returncode == status, done.stderr
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())


def test_sessions_are_shown() -> None:
    assert [command.split()[:2] for command, _ in SESSIONS] == [
        ["convert", "softmax.py"],
        ["convert", "ranking.py"],
        ["convert", "softmax.py"],
        ["verify", "softmax.py"],
        ["verify", "softmax.py"],
    ]


def test_what_convert_prints_and_writes(folder: Path) -> None:
    for command, said in (SESSIONS[0], SESSIONS[2]):
        assert run(folder, command) == said.strip()
    assert (folder / "softmax_gluon.py").read_text().endswith(f"\n\n\n{AFTER}")


def test_the_loop_is_that_of_a_golden_pair() -> None:
    golden = ROOT / "tests" / "golden"
    before, after = LOOP
    assert before in (golden / "matmul.py").read_text("utf-8")
    assert after in (golden / "matmul.sm90.gluon.py").read_text("utf-8")


def test_what_is_said_of_a_kept_kernel(folder: Path) -> None:
    command, said = SESSIONS[1]
    assert run(folder, command, status=2) == said.strip()
    assert f"\n\n\n{KEPT}" in (folder / "ranking_gluon.py").read_text()


@pytest.mark.parametrize("session", SESSIONS[3:], ids=["compiled", "simulated"])
def test_what_verify_prints(folder: Path, session: tuple[str, str]) -> None:
    command, said = session
    assert masked(run(folder, command)) == masked(said)


def masked(table: str) -> list[list[str]]:
    """A table's cells, but registers and words on them, which differ between Tritons."""
    rows = [line.split() for line in table.strip().splitlines() if "TTG504" not in line]
    return [[*row[:4], *row[7:]] if len(row) > 8 and row[2].isdigit() else row for row in rows]
