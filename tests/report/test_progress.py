"""The progress bar: only on a terminal, only after a while, and safe with forks."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from tt2gl.report.progress import progress

SCRIPT = """
import sys, time
import tt2gl.report.progress as module
module.PATIENCE = 0.1
with module.progress("converting k.py") as advance:
    for done in range({steps}):
        advance(done + 1, 3, {step!r})
        time.sleep({seconds})
print("done")
"""


def on_a_terminal(seconds: float, steps: int = 1, step: str = "") -> tuple[str, str]:
    """What a run writes to stdout, a pipe, and to stderr, a terminal."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", SCRIPT.format(seconds=seconds, steps=steps, step=step)]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=follower, text=True, check=True)
    os.close(follower)
    drawn = b""
    try:
        while chunk := os.read(leader, 4096):
            drawn += chunk
    except OSError:  # the end of a terminal on Linux
        pass
    os.close(leader)
    return process.stdout, drawn.decode()


def test_nothing_for_what_is_quick() -> None:
    assert on_a_terminal(0.0) == ("done\n", "")


def test_a_bar_for_what_takes_longer() -> None:
    out, drawn = on_a_terminal(0.8)
    assert out == "done\n"
    assert "converting k.py 1/3" in drawn


def test_a_bar_says_its_step_and_how_long_it_takes_yet() -> None:
    _, drawn = on_a_terminal(0.5, steps=3, step="verifying")
    assert "converting k.py: verifying 2/3" in drawn
    assert re.search(r"\d:\d\d:\d\d left", drawn)


def test_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with progress("converting") as advance:
        advance(1, 2)
        assert signal.getsignal(signal.SIGALRM) is before
    assert capsys.readouterr().err == ""
