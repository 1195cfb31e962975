"""Runs work in fresh interpreters: what a forked child cannot do, such as work on a GPU.

CUDA does not survive a fork, and a worker of a cluster has no parent of ours to be forked from.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tt2gl.children import Outcome, decode, describe_death, encode, tail

T = TypeVar("T")


def run_spawned(
    function: Callable[..., T], *args: Any, timeout: float = 300.0, under: Sequence[str] = ()
) -> Outcome[T]:
    """Call `function(*args)` in a fresh interpreter: for work on a GPU, which a forked child cannot use.

    Costs an interpreter's start; the function must be importable and its arguments picklable. `under` is a command that
    runs the interpreter, such as a debugger with its options.
    """
    folder = Path(tempfile.mkdtemp(prefix="tt2gl-"))
    try:
        (folder / "job").write_bytes(pickle.dumps((function, args)))
        paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
        with (folder / "output").open("wb") as log:
            process = subprocess.Popen(
                [*under, sys.executable, "-P", "-c", "from tt2gl.spawned import _run_job; _run_job()", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": paths},
            )
        try:
            process.wait(timeout)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        printed = tail(folder / "output")
        if late:
            return Outcome("timeout", error=f"took longer than {timeout:g} s", detail=printed)
        if (folder / "result").exists():
            return decode((folder / "result").read_bytes(), printed)
        code = process.returncode
        return Outcome("crash", error=describe_death(-code if code < 0 else code << 8, printed), detail=printed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_job() -> None:
    """The whole of a spawned child: the folder's job in, its result out."""
    folder = Path(sys.argv[1])
    message = encode(_load_and_call, (folder / "job",))
    (folder / "partial").write_bytes(message)
    (folder / "partial").rename(folder / "result")


def _load_and_call(path: Path) -> Any:
    function, args = pickle.loads(path.read_bytes())
    return function(*args)
