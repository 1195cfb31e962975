"""What the sanitizer's runs are judged to be, and the benchmark around them with conversion and GPU replaced."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import sanitize
from bench.run import Case
from tt2gl.children import Outcome
from tt2gl.launches import Launch
from tt2gl.results import KernelReport
from tt2gl.slicing.slices import Slice

PRINTED = """\
/k.py:9: kernel: block: [0,0,0], thread: [0,0,0] Assertion `Buffer being accessed has outstanding writes` failed.
/k.py:9: kernel: block: [0,0,0], thread: [1,0,0] Assertion `Buffer being accessed has outstanding writes` failed.
/k.py:12: kernel: block: [1,0,0], thread: [0,0,0] Assertion `Deadlock detected` failed.
"""

LOG = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at b+0x10 and Read access at b+0x20 [64 hazards]
=========
========= Error: Race reported between Write access at b+0x10 and Read access at b+0x20 [64 hazards]
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""


def test_a_run_that_ends_well_is_clean() -> None:
    assert sanitize.judge(Outcome("ok", True)) == ("clean", ())


def test_a_kernel_that_does_not_run_is_not_said_to_be_reported() -> None:
    told = ("RunError: the kernel failed: out of resource: shared memory",)
    assert sanitize.judge(Outcome("error", error=told[0], detail="Traceback ...")) == ("failed", told)


def test_each_assertion_is_told_once() -> None:
    outcome: Outcome[bool] = Outcome("error", error="RunError: device-side assert triggered", detail=PRINTED)
    told = ("Buffer being accessed has outstanding writes", "Deadlock detected")
    assert sanitize.judge(outcome) == ("reported", told)


def test_a_hang_is_a_timeout_unless_something_was_reported_before() -> None:
    late: Outcome[bool] = Outcome("timeout", error="took longer than 120 s")
    assert sanitize.judge(late) == ("timeout", ("took longer than 120 s",))
    assert sanitize.judge(Outcome("timeout", error=late.error, detail=PRINTED))[0] == "reported"


def test_ports_run_with_the_sanitizer_on_and_what_it_says_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel: Any = object()
    cases = [
        Case(KernelReport("k.py", name, "sm90", 0, "converted"), launch(name), kernel, kernel) for name in ("a", "b")
    ]

    def run(
        function: Any, given: Slice, of: Launch, instrumented: bool, timeout: float, under: Sequence[str]
    ) -> Outcome[bool]:
        if under:
            assert (under[0], instrumented, os.environ["TRITON_INSTRUMENTATION_MODE"]) == ("tool", False, "")
            Path(under[-1]).write_text(LOG if of.kernel == "b" else "========= COMPUTE-SANITIZER\n")
            return Outcome("ok", True)
        assert instrumented
        assert os.environ["TRITON_INSTRUMENTATION_MODE"] == "consan"
        return Outcome("ok", True) if of.kernel == "a" else Outcome("crash", error="exited", detail=PRINTED)

    for name in (sanitize.INSTRUMENTED, *sanitize.BLOCKING):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sanitize, "compute_sanitizer", lambda: "tool")
    monkeypatch.setattr(sanitize, "gpu_present", lambda commit: {"commit": commit})
    monkeypatch.setattr(sanitize, "prepare", lambda arguments, target: cases)
    monkeypatch.setattr(sanitize, "run_spawned", run)
    out = tmp_path / "out"
    line = ["sanitize.py", "--out", str(out), "--target", "sm90", "--commit", "abc", "--tool", "consan"]
    monkeypatch.setattr(sys, "argv", [*line, "--tool", "racecheck"])
    assert sanitize.main() == 1
    document = json.loads((out / "sm90-sanitizer.json").read_text())
    assert document["summary"] == {"clean": 2, "reported": 2}
    assert [each["verdict"] for each in document["launches"]] == ["clean", "reported"] * 2
    assert document["launches"][3]["told"] == ["Race reported between Write access at b+0x10 and Read access at b+0x20"]
    assert capsys.readouterr().out.endswith(
        "ports, consan: 1 clean, 1 reported, 0 timeout, 0 failed\n"
        "ports, racecheck: 1 clean, 1 reported, 0 timeout, 0 failed\n"
    )


def launch(kernel: str) -> Launch:
    return Launch(file="k.py", kernel=kernel, signature={}, constexprs={}, grid=(1, 1, 1), args={})
