"""What the README shows of `tt2gl check`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.test_readme import BEFORE, LAUNCHES, README, run
from tt2gl.check.lock import read_lock
from tt2gl.config import read_config

pytestmark = pytest.mark.once

SECTION = README.partition("### Check\n")[2].partition("\n### ")[0]
SESSIONS = [
    (command, re.sub(r"^    ", "", said, flags=re.MULTILINE))
    for command, said in re.findall(r"^    \$ tt2gl (.*)\n((?:    .*\n)+)", SECTION, re.MULTILINE)
]
BLOCK = re.findall(r"^```\n(\[.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)[0]
CONFIGURATION = re.findall(r"^```toml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]


def of_any_triton(text: str) -> list[str]:
    """Lines without what differs between Tritons."""
    return re.sub(r"triton-\S+|registers:? \d+", "", text).strip().splitlines()


@pytest.mark.slow
def test_what_check_prints_and_writes(tmp_path: Path) -> None:
    text = f"import torch\nimport triton\nimport triton.language as tl\n\n\n{BEFORE}"
    (tmp_path / "launches.json").write_text(LAUNCHES)
    (tmp_path / "softmax.py").write_text(text)
    configuration = '[tool.tt2gl]\ntarget = "sm90"\nlaunches = "launches.json"\n[tool.tt2gl.check]\nregisters = 1.0\n'
    (tmp_path / "pyproject.toml").write_text(configuration)
    (updating, updated), (checking, checked) = SESSIONS
    assert run(tmp_path, updating) == updated.strip()
    assert of_any_triton((tmp_path / "tt2gl.lock").read_text().partition("\n\n")[2]) == of_any_triton(BLOCK)
    edited = re.findall(r"with `(cols = .*?)`", SECTION)[0]
    (tmp_path / "softmax.py").write_text(text.replace("cols = tl.arange(0, BLOCK)", edited))
    assert of_any_triton(run(tmp_path, checking, status=1)) == of_any_triton(checked)


def test_the_block_shown_reads(tmp_path: Path) -> None:
    (tmp_path / "tt2gl.lock").write_text(f"version: 1\n\n{BLOCK}")
    lock = read_lock(tmp_path / "tt2gl.lock")
    assert lock is not None
    assert [lowering.registers for lowering in lock.kernels.values()] == [22]


def test_the_configuration_shown_reads(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(CONFIGURATION)
    assert tomllib.loads(CONFIGURATION)["tool"]["tt2gl"]["check"].keys() == {"files", "targets", "registers", "shared"}
    assert read_config(tmp_path).check.registers == pytest.approx(1.0)
