"""Jobs that misbehave end as outcomes, and never take the caller along."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from tt2gl.children import Outcome, one_line
from tt2gl.isolate import map_isolated, printed_so_far, remembering, run_isolated
from tt2gl.spawned import run_spawned


def test_returns_the_value() -> None:
    outcome = run_isolated(lambda a, b: a + b, 2, 3)
    assert outcome.ok
    assert outcome.value == 5


def test_an_exception_is_one_line_and_a_traceback() -> None:
    def fail() -> None:
        raise ValueError("first\nlast line")

    outcome = run_isolated(fail)
    assert (outcome.kind, outcome.error) == ("error", "ValueError: last line")
    assert "Traceback" in outcome.detail


def test_an_abort_names_its_signal_and_the_last_line_printed() -> None:
    def abort() -> None:
        os.write(2, b"noise\nLLVM ERROR: Cannot select: t1\nstack dump\n")
        os.abort()

    outcome = run_isolated(abort)
    assert outcome.kind == "crash"
    assert outcome.error == "SIGABRT: LLVM ERROR: Cannot select: t1"
    assert "noise" in outcome.detail


def test_a_job_reads_what_its_compilers_printed() -> None:
    def compile_badly() -> str:
        os.write(2, b"kernel.py:3:4: error: no\n")
        return printed_so_far()

    assert run_isolated(compile_badly).value == "kernel.py:3:4: error: no\n"


def test_a_segfault_is_a_crash() -> None:
    outcome = run_isolated(lambda: ctypes.string_at(0))
    assert (outcome.kind, outcome.error) == ("crash", "SIGSEGV")


def test_an_exit_without_a_result_is_a_crash() -> None:
    outcome = run_isolated(lambda: os._exit(3))
    assert (outcome.kind, outcome.error) == ("crash", "exited with 3")


def test_sys_exit_is_an_error() -> None:
    assert run_isolated(lambda: sys.exit("done")).error == "SystemExit: done"


def test_a_hang_is_killed_with_its_own_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def hang() -> None:
        process = subprocess.Popen(["sleep", "60"])
        note.write_text(str(process.pid))
        process.wait()

    start = time.monotonic()
    outcome = run_isolated(hang, timeout=1.5)
    assert time.monotonic() - start < 10
    assert (outcome.kind, outcome.error) == ("timeout", "took longer than 1.5 s")
    assert _ended(int(note.read_text()))


def test_a_result_larger_than_the_pipe_arrives_whole() -> None:
    outcome = run_isolated(lambda: b"x" * 20_000_000)
    assert outcome.value == b"x" * 20_000_000


def test_a_result_that_cannot_be_pickled_is_an_error() -> None:
    outcome = run_isolated(lambda: lambda: None)
    assert outcome.kind == "error"
    assert "pickle" in outcome.error.lower() or "local object" in outcome.error


def test_outcomes_are_in_the_order_of_the_arguments() -> None:
    def late(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    done: list[int] = []

    def note(index: int, outcome: Outcome[float]) -> None:
        done.append(index)

    outcomes = map_isolated(late, [(0.8,), (0.0,), (0.4,)], workers=3, on_done=note)
    assert [outcome.value for outcome in outcomes] == [0.8, 0.0, 0.4]
    assert done == [1, 2, 0]


def test_a_bad_job_leaves_its_neighbours_alone() -> None:
    def maybe(number: int) -> int:
        if number == 1:
            os.abort()
        return number

    kinds = [outcome.kind for outcome in map_isolated(maybe, [(0,), (1,), (2,)], workers=2)]
    assert kinds == ["ok", "crash", "ok"]


def test_only_jobs_of_a_family_follow_each_other_in_a_child() -> None:
    def pid(_: str) -> int:
        return os.getpid()

    a, b, c, other = map_isolated(pid, [("a",), ("a",), ("a",), ("b",)], workers=1, family=lambda name: name)
    assert a.value == b.value == c.value != other.value
    alone = map_isolated(pid, [("a",), ("a",)], workers=1)
    assert alone[0].value != alone[1].value


def test_a_child_that_has_done_much_gives_way() -> None:
    pids = [outcome.value for outcome in map_isolated(os.getpid, [()] * 60, workers=1, family=lambda: 0)]
    assert len(set(pids)) == 2


def test_a_bad_job_leaves_its_family_alone() -> None:
    def maybe(number: int) -> int:
        if number == 1:
            os.abort()
        if number == 3:
            time.sleep(60)
        return number

    outcomes = map_isolated(maybe, [(number,) for number in range(5)], workers=1, timeout=2.0, family=lambda _: 0)
    assert [outcome.kind for outcome in outcomes] == ["ok", "crash", "ok", "timeout", "ok"]


def test_what_crashes_after_others_is_tried_alone() -> None:
    def spoiled(number: int) -> int:
        if "TT2GL_SPOILED" in os.environ:
            os.abort()
        if number == 0:
            os.environ["TT2GL_SPOILED"] = "yes"
        return number

    told: list[int] = []
    jobs = [(0,), (1,), (2,)]
    outcomes = map_isolated(spoiled, jobs, workers=1, family=lambda _: 0, on_done=lambda index, _: told.append(index))
    assert [outcome.value for outcome in outcomes] == [0, 1, 2]
    assert sorted(told) == [0, 1, 2]


def test_ends_with_the_first_outcome_that_is_enough(tmp_path: Path) -> None:
    def slow_or_done(number: int) -> int:
        (tmp_path / str(number)).touch()
        if number == 1:
            time.sleep(0.3)
        if number == 3:
            time.sleep(60)
        return number

    enough = [(number,) for number in range(9)]
    outcomes = map_isolated(slow_or_done, enough, workers=2, until=lambda outcome: outcome.value in (1, 2, 4))
    assert [outcome.value for outcome in outcomes] == [0, 1]
    assert {int(path.name) for path in tmp_path.iterdir()} <= {0, 1, 2, 3}


def test_ends_with_the_first_outcome_that_is_known_and_enough() -> None:
    class Known:
        def recall(self, _: object, args: tuple[int, ...]) -> Outcome[int] | None:
            return Outcome("ok", value=args[0]) if args[0] in (1, 2) else None

        def note(self, *_: object) -> None:
            pass

    with remembering(Known()):
        outcomes = map_isolated(abs, [(0,), (1,), (2,), (3,)], until=lambda outcome: outcome.value in (1, 2))
    assert [outcome.value for outcome in outcomes] == [0, 1]


def test_what_a_job_printed_is_not_told_to_the_next() -> None:
    def said(word: str) -> str:
        os.write(2, word.encode())
        return printed_so_far()

    outcomes = map_isolated(said, [("longer",), ("b",)], workers=1, family=lambda _: 0)
    assert [(outcome.value, outcome.detail) for outcome in outcomes] == [("longer", "longer"), ("b", "b")]


def test_nothing_to_do() -> None:
    assert map_isolated(abs, []) == []


def test_temporary_files_of_a_job_are_removed() -> None:
    def leave() -> str:
        descriptor, path = tempfile.mkstemp()
        os.close(descriptor)
        return path

    path = run_isolated(leave).value
    assert path is not None
    assert not Path(path).exists()


def test_what_a_job_prints_is_kept_from_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = run_isolated(lambda: sys.stdout.write("hello\n"))
    assert outcome.detail == "hello\n"
    assert capfd.readouterr().out == ""


def test_an_interrupt_kills_the_children_and_is_raised(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import os, pathlib, sys, time
        from tt2gl.isolate import map_isolated

        def job(name):
            pathlib.Path(sys.argv[1], name).write_text(str(os.getpid()))
            time.sleep(60)

        try:
            map_isolated(job, [("a",), ("b",)], workers=2)
        except KeyboardInterrupt:
            sys.exit(42)
    """)
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    _wait_for(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text() for name in "ab"))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 42
    assert all(_ended(int((tmp_path / name).read_text())) for name in "ab")


def test_jobs_within_a_job_end_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def inner() -> None:
        (tmp_path / "partial").write_text(str(os.getpid()))
        (tmp_path / "partial").rename(note)
        time.sleep(60)

    assert run_isolated(lambda: run_isolated(inner), timeout=2).kind == "timeout"
    assert _ended(int(note.read_text()))


def test_a_fresh_interpreter_returns_the_value() -> None:
    assert run_spawned(divmod, 7, 2).value == (3, 1)


def test_a_fresh_interpreter_runs_no_file_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pickle.py").write_text("raise SystemExit(1)\n")
    assert run_spawned(divmod, 7, 2).value == (3, 1)


def test_a_fresh_interpreter_reports_an_exception() -> None:
    assert run_spawned(divmod, 7, 0).error.startswith("ZeroDivisionError")


def test_a_fresh_interpreter_that_aborts_is_a_crash() -> None:
    outcome = run_spawned(os.abort)
    assert (outcome.kind, outcome.error) == ("crash", "SIGABRT")


def test_a_fresh_interpreter_is_killed_when_late() -> None:
    assert run_spawned(time.sleep, 60, timeout=0.5).kind == "timeout"


def test_one_line_of_an_empty_exception() -> None:
    assert one_line(RuntimeError()) == "RuntimeError"


def _wait_for(condition: object) -> None:
    assert callable(condition)
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def _ended(pid: int) -> bool:
    """Whether the process is gone, or a zombie that its new parent has yet to collect."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_one_line_of_what_failed_on_a_gpu_says_what_it_was() -> None:
    said = (
        "CUDA error: an illegal memory access was encountered\nFor debugging consider CUDA_LAUNCH_BLOCKING=1\nCompile."
    )
    assert one_line(RuntimeError(said)) == "RuntimeError: CUDA error: an illegal memory access was encountered"
    assert one_line(RuntimeError(said.replace("CUDA e", "E"))) == "RuntimeError: Compile."
