"""A forked child process that does jobs for its parent, one after the other, and tells how each ended."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import resource
import selectors
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NoReturn, TypeVar

T = TypeVar("T")

Kind = Literal["ok", "error", "crash", "timeout"]

# Before a message its length, and, to the child, the number of a job.
_HEADER = struct.Struct("<Q")
_DETAIL_CHARACTERS = 8000
_ON_THE_GPU = ("CUDA error:", "HIP error:")
_PR_SET_PDEATHSIG = 1
# glibc's `mallopt`: what is freed stays with the process up to so many bytes, and blocks up to so many come from there.
_M_TRIM_THRESHOLD, _KEPT = -1, 512 << 20
_M_MMAP_THRESHOLD, _LARGEST = -3, 32 << 20
COLLECTED_AFTER = 200_000
"""Objects made, and not freed by their counts, after which a process looks for cycles: syntax trees are many."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How a job ended: `error` is one line, `detail` the traceback and the tail of what the job printed."""

    kind: Kind
    value: T | None = None
    error: str = ""
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the job returned; `value` is then its result."""
        return self.kind == "ok"


class Child:
    """A process that does the jobs that it is given, its pipes, and the folder where it may leave what it likes.

    `index` is the job at hand, `before` how many it did before that one.
    """

    def __init__(
        self, function: Callable[..., Any], argument_tuples: Sequence[tuple[Any, ...]], index: int, timeout: float
    ) -> None:
        self.index = index
        self.timeout = timeout
        self.before = 0
        self.folder = Path(tempfile.mkdtemp(prefix="tt2gl-"))
        self.deadline = time.monotonic() + timeout
        self.complete = False
        self._received = bytearray()
        self._status: int | None = None
        self.pipe, write_end = os.pipe()
        orders, self._orders = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        with warnings.catch_warnings():
            # A progress bar's thread makes 3.12 warn of forking; the child touches none of its locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _run_in_child(function, argument_tuples, index, write_end, orders, self.folder)
        os.close(write_end)
        os.close(orders)

    def go_on(self, index: int) -> Outcome[Any]:
        """How the job at hand ended, of which the message is whole; the child is given the next."""
        message = self._message()
        assert message is not None
        outcome = decode(message, tail(self.folder / "output"))
        self.index, self.before = index, self.before + 1
        self.deadline = time.monotonic() + self.timeout
        self.complete = False
        self._received.clear()
        # A child that has died meanwhile is found by what it does not send.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, _HEADER.pack(index))
        return outcome

    @property
    def whole(self) -> bool:
        """Whether all of the job's message is here."""
        if len(self._received) < _HEADER.size:
            return False
        (size,) = _HEADER.unpack_from(self._received)
        return len(self._received) >= _HEADER.size + int(size)

    def receive(self) -> None:
        """Take what the pipe holds; complete once the whole result, or the end of the pipe, is here."""
        chunk = os.read(self.pipe, 1 << 20)
        self._received += chunk
        self.complete = not chunk or self.whole

    def died(self) -> bool:
        """Whether the process ended without a result on its way."""
        if self._status is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self._status = status if pid else None
        return self._status is not None and not _readable(self.pipe)

    def end(self) -> Outcome[Any]:
        """Kill what is left of the job (its compilers too), collect it and say how it ended."""
        message = self._message()
        late = not self.complete and self._status is None
        if self._status is None and message is None and not late:
            # The pipe is closed, so the process is at its end: a kill now would hide the signal it died of.
            self._status = _wait(self.pid, seconds=5.0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # The group outlives its leader.
            os.killpg(self.pid, signal.SIGKILL)
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._status = _wait(self.pid, seconds=None)
        os.close(self.pipe)
        os.close(self._orders)
        printed = tail(self.folder / "output")
        shutil.rmtree(self.folder, ignore_errors=True)
        if message is not None:
            return decode(message, printed)
        if late:
            return Outcome("timeout", error=f"took longer than {self.timeout:g} s", detail=printed)
        return Outcome("crash", error=describe_death(self._status, printed), detail=printed)

    def _message(self) -> bytes | None:
        return bytes(self._received[_HEADER.size :]) if self.whole else None


def _readable(descriptor: int) -> bool:
    """Whether `descriptor` has something to read now."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


def _wait(pid: int, seconds: float | None) -> int | None:
    """The wait status of `pid`, waited for at most `seconds` (None: as long as it takes)."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            done, status = os.waitpid(pid, 0 if end is None else os.WNOHANG)
        except ChildProcessError:
            return None
        if done:
            return status
        if end is not None and time.monotonic() > end:
            return None
        time.sleep(0.002)


def _run_in_child(
    function: Callable[..., Any],
    argument_tuples: Sequence[tuple[Any, ...]],
    index: int,
    write_end: int,
    orders: int,
    folder: Path,
) -> NoReturn:
    """The whole life of a child: never returns, never runs the parent's exit handlers."""
    # What the parent imported stays: collections that walk it cost a tenth of a job's time, and copies of its pages.
    # So do those of trees that live as long as the job: what little is left behind goes after it.
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    try:
        with contextlib.suppress(OSError):
            os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _die_with_parent()
        _keep_memory()
        _redirect_output(folder)
        # What a killed compiler leaves behind goes away with the folder.
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        order = _HEADER.pack(index)
        while order:
            message = encode(function, argument_tuples[_HEADER.unpack(order)[0]])
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            view = memoryview(_HEADER.pack(len(message)) + message)
            while view:
                view = view[os.write(write_end, view) :]
            order = os.read(orders, _HEADER.size)
            # The next job is not told what this one printed, and has its memory.
            os.ftruncate(1, 0)
            gc.collect()
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    """Linux: be killed when the parent is, so that jobs within jobs leave nothing behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _keep_memory() -> None:
    """Keep what is freed: half of a simulation's time went into asking the system for the same memory again."""
    with contextlib.suppress(AttributeError, OSError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_TRIM_THRESHOLD, _KEPT)
        allocator.mallopt(_M_MMAP_THRESHOLD, _LARGEST)


def _redirect_output(folder: Path) -> None:
    import faulthandler

    # pytest's handler writes to the parent's terminal through a descriptor of its own.
    faulthandler.disable()
    log = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)


def one_line(error: BaseException) -> str:
    """An exception as one line: its type, and the last line of its message that says anything.

    torch says first what failed on the GPU, and then how to find out more.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(_ON_THE_GPU)]
    name = type(error).__name__
    return f"{name}: {[*lines, *causes[:1]][-1]}" if lines else name


def encode(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Call a function, and make a message of what comes of it."""
    try:
        return pickle.dumps(("ok", function(*args)))
    except BaseException as error:  # noqa: BLE001 (whatever ends the job is its outcome)
        return pickle.dumps(("error", (one_line(error), traceback.format_exc())))


def decode(message: bytes, printed: str) -> Outcome[Any]:
    """The outcome that a message tells of."""
    try:
        kind, value = pickle.loads(message)
    except Exception as error:  # noqa: BLE001 (unpickling runs the constructors of any class)
        return Outcome("error", error=f"unreadable result: {one_line(error)}", detail=traceback.format_exc() + printed)
    if kind == "ok":
        return Outcome("ok", value=value, detail=printed)
    line, trace = value
    return Outcome("error", error=line, detail=(trace + printed)[-_DETAIL_CHARACTERS:])


def describe_death(status: int | None, printed: str) -> str:
    """How a process ended that left no message, in one line."""
    if status is None:
        how = "ended without a result"
    elif os.WIFSIGNALED(status):
        how = signal.Signals(os.WTERMSIG(status)).name
    else:
        how = f"exited with {os.waitstatus_to_exitcode(status)}"
    said = _last_words(printed)
    return f"{how}: {said}" if said else how


def _last_words(printed: str) -> str:
    """The line that says why: LLVM's own error if there is one, else the last."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    causes = [line for line in lines if "LLVM ERROR" in line or "Assertion" in line]
    return (causes or lines or [""])[-1][:500]


def tail(path: Path) -> str:
    """The end of a text file, or nothing."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _DETAIL_CHARACTERS))
        return file.read().decode(errors="replace")
    return ""
