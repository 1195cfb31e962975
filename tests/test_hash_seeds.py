"""The same file gives the same bytes whatever Python's hash seed is, which orders sets anew in each process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.once, pytest.mark.slow]

# Helpers that several kernels share, block pointers, rings, products of both vendors; one launch a kernel.
FILES = ("grouped_matmul:sm90", "linear_attention:gfx942", "softmax:sm90")
SCRIPT = """
import sys
from pathlib import Path

from tt2gl.convert import convert
from tt2gl.launch_file import read_launches

corpus = Path(sys.argv[1])
for file, target in (each.split(":") for each in sys.argv[2:]):
    launches = {each.kernel: each for each in reversed(read_launches(corpus / f"{file}.launches.json"))}
    made = convert(corpus / f"{file}.py", target=target, launches=[*launches.values()], root=corpus, compile=False)
    print(made.text, *(each for report in made.kernels for each in (report.status, *report.diagnostics)), sep="\\n")
"""


def test_a_seed_changes_nothing(corpus: Path, repository: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(corpus), *FILES]
    running = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(repository)}
        )
        for seed in ("1", "2")
    ]
    first, second = (each.communicate()[0].decode().splitlines() for each in running)
    assert [each.returncode for each in running] == [0, 0]
    assert first.count("converted") == 10
    assert first == second
