"""Runs work in child processes, so that an aborting compiler, a hang or a leak cannot hurt the caller.

Each job is one `os.fork` of a parent that has imported Triton but never created an MLIR context: a job then
costs milliseconds, and needs neither a picklable function nor picklable arguments, only a picklable result.
"""

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
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar

from tt2gl.cores import available_cores

T = TypeVar("T")

Kind = Literal["ok", "error", "crash", "timeout"]

_HEADER = struct.Struct("<Q")
_DETAIL_CHARACTERS = 8000
_PR_SET_PDEATHSIG = 1
# How often a child that died without closing its pipe (a process of its own still holds it) is looked for.
_POLL_SECONDS = 0.2
# Objects made, and not freed by their counts, after which a child looks for cycles.
_COLLECTED_AFTER = 200_000


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


class Memory(Protocol):
    """Outcomes of jobs that were done before, maybe by a process that did not live to the end of its own."""

    def recall(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome[Any] | None:
        """How this job ended, None where that is not known."""

    def note(self, function: Callable[..., Any], args: tuple[Any, ...], outcome: Outcome[Any]) -> None:
        """Keep how a job ended."""


_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextlib.contextmanager
def remembering(memory: Memory) -> Iterator[None]:
    """Jobs of this process that `memory` knows are not done again within the block; it is told of all others."""
    before = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(before)


def preload() -> None:
    """Import Triton and its compilers, so that jobs forked from now on find them imported.

    Creates no MLIR context: LLVM's threads and locks would not survive a fork.
    """
    import triton.backends
    import triton.compiler
    import triton.experimental.gluon
    import triton.experimental.gluon.language
    import triton.language  # noqa: F401


def private_triton() -> None:
    """Give Triton, in this child process, an empty cache of its own, and take the user's debugging switches away.

    Nothing stale is reused, the user's cache is not written, and an interpreter or a dump asked for by the
    environment changes nothing. Only for a child: it edits the environment.
    """
    import triton.runtime.cache

    for name in ("TRITON_INTERPRET", "TRITON_KERNEL_OVERRIDE", "TRITON_KERNEL_DUMP", "TRITON_STORE_BINARY_ONLY"):
        os.environ.pop(name, None)
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="cache-")
    if hasattr(triton.runtime.cache, "triton_key"):
        # The key hashes all of libtriton, half a second a process; in an empty cache any key will do.
        triton.runtime.cache.triton_key = lambda: "tt2gl"


def printed_so_far() -> str:
    """What this child process has printed, its compilers too: where MLIR says what is wrong. The first MiB of it."""
    with contextlib.suppress(OSError), Path(tempfile.gettempdir(), "output").open("rb") as file:
        return file.read(1 << 20).decode(errors="replace")
    return ""


def run_isolated(function: Callable[..., T], *args: Any, timeout: float = 60.0) -> Outcome[T]:
    """Call `function(*args)` in a child process, for at most `timeout` seconds."""
    return map_isolated(function, [args], workers=1, timeout=timeout)[0]


def map_isolated(
    function: Callable[..., T],
    argument_tuples: Sequence[tuple[Any, ...]],
    *,
    workers: int | None = None,
    timeout: float = 60.0,
    on_done: Callable[[int, Outcome[T]], None] | None = None,
) -> list[Outcome[T]]:
    """Call `function` once for every argument tuple, each call in a child process of its own.

    Runs `workers` children at a time (default: the cores this process may use), each for at most `timeout`
    seconds. `on_done(index, outcome)` is called in this process as jobs end, in any order; the list is in the order
    of the arguments. A KeyboardInterrupt, or an exception of `on_done`, kills all children and is raised again.
    """
    limit = workers or available_cores()
    memory = _memory.get()
    outcomes: list[Outcome[T] | None] = [None] * len(argument_tuples)
    waiting = list(reversed(range(len(argument_tuples))))
    running: set[_Child] = set()
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < limit:
                    index = waiting.pop()
                    known = memory.recall(function, argument_tuples[index]) if memory is not None else None
                    if known is not None:
                        outcomes[index] = known
                        if on_done is not None:
                            on_done(index, known)
                        continue
                    with _interrupts_held():
                        child = _Child(index, function, argument_tuples[index], timeout)
                        running.add(child)
                    selector.register(child.pipe, selectors.EVENT_READ, child)
                for child in _finished(running, selector) if running else ():
                    running.discard(child)
                    selector.unregister(child.pipe)
                    outcome: Outcome[T] = child.end()
                    outcomes[child.index] = outcome
                    if memory is not None:
                        memory.note(function, argument_tuples[child.index], outcome)
                    if on_done is not None:
                        on_done(child.index, outcome)
        finally:
            for child in running:
                child.end()
    return [outcome for outcome in outcomes if outcome is not None]


def one_line(error: BaseException) -> str:
    """An exception as one line: its type, and the last line of its message that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    name = type(error).__name__
    return f"{name}: {lines[-1]}" if lines else name


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block is over: a child forked but not yet noted could not be killed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _finished(running: set[_Child], selector: selectors.BaseSelector) -> Iterator[_Child]:
    """Wait for news, then yield the children that are done, dead or out of time."""
    soonest = min(child.deadline for child in running)
    wait = min(max(soonest - time.monotonic(), 0.0), _POLL_SECONDS)
    for key, _ in selector.select(wait):
        key.data.receive()
    now = time.monotonic()
    for child in list(running):
        if child.complete or now >= child.deadline or child.died():
            yield child


class _Child:
    """One forked job: its process, its pipe and the folder where it may leave what it likes."""

    def __init__(self, index: int, function: Callable[..., Any], args: tuple[Any, ...], timeout: float) -> None:
        self.index = index
        self.timeout = timeout
        self.folder = Path(tempfile.mkdtemp(prefix="tt2gl-"))
        self.deadline = time.monotonic() + timeout
        self.complete = False
        self._received = bytearray()
        self._status: int | None = None
        self.pipe, write_end = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                stream.flush()
        with warnings.catch_warnings():
            # A progress bar's thread makes 3.12 warn of forking; the child touches none of its locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _run_in_child(function, args, write_end, self.folder)
        os.close(write_end)

    def receive(self) -> None:
        """Take what the pipe holds; complete once the whole result, or the end of the pipe, is here."""
        chunk = os.read(self.pipe, 1 << 20)
        self._received += chunk
        self.complete = not chunk or self._whole()

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
        printed = tail(self.folder / "output")
        shutil.rmtree(self.folder, ignore_errors=True)
        if message is not None:
            return decode(message, printed)
        if late:
            return Outcome("timeout", error=f"took longer than {self.timeout:g} s", detail=printed)
        return Outcome("crash", error=describe_death(self._status, printed), detail=printed)

    def _message(self) -> bytes | None:
        return bytes(self._received[_HEADER.size :]) if self._whole() else None

    def _whole(self) -> bool:
        if len(self._received) < _HEADER.size:
            return False
        (size,) = _HEADER.unpack_from(self._received)
        return len(self._received) >= _HEADER.size + int(size)


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


def _run_in_child(function: Callable[..., Any], args: tuple[Any, ...], write_end: int, folder: Path) -> NoReturn:
    """The whole life of a child: never returns, never runs the parent's exit handlers."""
    # What the parent imported stays: collections that walk it cost a tenth of a job's time, and copies of its pages.
    # So do those of trees that live as long as the job: what little is left behind goes with the process.
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])
    try:
        with contextlib.suppress(OSError):
            os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _die_with_parent()
        _redirect_output(folder)
        # What a killed compiler leaves behind goes away with the folder.
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        message = encode(function, args)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        view = memoryview(_HEADER.pack(len(message)) + message)
        while view:
            view = view[os.write(write_end, view) :]
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    """Linux: be killed when the parent is, so that jobs within jobs leave nothing behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


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
