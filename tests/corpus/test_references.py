"""Every kernel computes what its reference says: Triton's interpreter against torch, on the CPU."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.features import FAMILIES, lacking_in_interpreter

pytestmark = [pytest.mark.once, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]

# Several one after the other in a process: its imports take as long as the kernels of several.
GROUPS = [FAMILIES[place::8] for place in range(8)]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed beside this Triton")
@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_kernels_agree_with_their_references(group: list[str]) -> None:
    families = [family for family in group if not lacking_in_interpreter(family)]
    command = [sys.executable, "tests/corpus/interpret.py", *families]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(result["family"], result["kernel"]) for result in results} == {
        (family, launch["kernel"]) for family in families for launch in launches(family)
    }
    assert [result for result in results if result["problems"]] == []


def launches(family: str) -> list[dict[str, str]]:
    made: list[dict[str, str]] = json.loads((ROOT / f"corpus/{family}.launches.json").read_text())["launches"]
    return made
