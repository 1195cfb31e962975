"""Runs work in child processes, so that an aborting compiler, a hang or a leak cannot hurt the caller.

A child is one `os.fork` of a parent that has imported Triton but never created an MLIR context: a job then
costs milliseconds, and needs neither a picklable function nor picklable arguments, only a picklable result.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tt2gl.children import Child, Outcome
from tt2gl.cores import available_cores

T = TypeVar("T")

# How often a child that died without closing its pipe (a process of its own still holds it) is looked for.
_POLL_SECONDS = 0.2
# What a child may do before another takes its place, so that what compilers never give back stays little.
_MOST_JOBS = 50


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


@dataclass
class _Waiting:
    """Jobs that are not begun, by their numbers, in order; `alone`: those that get a child of their own."""

    jobs: list[int]
    families: Sequence[Hashable]
    alone: set[int] = field(default_factory=set)

    def only_up_to(self, job: int) -> None:
        """Leave out the jobs behind one."""
        self.jobs = [each for each in self.jobs if each <= job]

    def following(self, child: Child) -> int | None:
        """Take the job that a child does after the one that it has told of, if it can do more and there is one."""
        if not child.whole or child.before + 1 >= _MOST_JOBS:
            return None
        family = self.families[child.index]
        alike = (job for job in self.jobs if self.families[job] == family and job not in self.alone)
        job = next(alike, None)
        if job is not None:
            self.jobs.remove(job)
        return job

    def again(self, job: int) -> None:
        """Have a job done anew, next and in a child of its own."""
        self.alone.add(job)
        self.jobs.insert(0, job)


@dataclass
class _Ended(Generic[T]):
    """How jobs ended, by their numbers, and the last of them that is to be done."""

    last: int
    on_done: Callable[[int, Outcome[T]], None] | None
    until: Callable[[Outcome[T]], bool] | None
    outcomes: dict[int, Outcome[T]] = field(default_factory=dict)

    def note(self, job: int, outcome: Outcome[T]) -> None:
        """Keep how a job ended, tell of it, and leave out those behind it where they need not be done."""
        self.outcomes[job] = outcome
        if self.until is not None and job < self.last and self.until(outcome):
            self.last = job
        if self.on_done is not None:
            self.on_done(job, outcome)


def map_isolated(
    function: Callable[..., T],
    argument_tuples: Sequence[tuple[Any, ...]],
    *,
    workers: int | None = None,
    timeout: float = 60.0,
    on_done: Callable[[int, Outcome[T]], None] | None = None,
    family: Callable[..., Hashable] | None = None,
    until: Callable[[Outcome[T]], bool] | None = None,
) -> list[Outcome[T]]:
    """Call `function` once for every argument tuple, each call in a child process of its own.

    Runs `workers` children at a time (default: the cores this process may use), each for at most `timeout`
    seconds. `on_done(index, outcome)` is called in this process as jobs end, in any order; the list is in the order
    of the arguments. Calls for whose arguments `family` says the same may follow each other in one child, which spares
    them what compilers do when they start; one that crashes after others is tried again in a child of its own. The
    list ends with the first outcome that `until` holds for: calls behind it need not be made. A KeyboardInterrupt, or
    an exception of `on_done`, kills all children and is raised again.
    """
    limit = workers or available_cores()
    memory = _memory.get()
    ended: _Ended[T] = _Ended(len(argument_tuples) - 1, on_done, until)
    for index, arguments in enumerate(argument_tuples if memory is not None else ()):
        if memory is not None and (known := memory.recall(function, arguments)) is not None:
            ended.note(index, known)
    families = [index if family is None else family(*arguments) for index, arguments in enumerate(argument_tuples)]
    waiting = _Waiting([index for index in range(ended.last + 1) if index not in ended.outcomes], families)
    running: set[Child] = set()
    with selectors.DefaultSelector() as selector:
        try:
            while waiting.jobs or any(child.index <= ended.last for child in running):
                while waiting.jobs and len(running) < limit:
                    with _interrupts_held():
                        running.add(child := Child(function, argument_tuples, waiting.jobs.pop(0), timeout))
                    selector.register(child.pipe, selectors.EVENT_READ, child)
                for child in _finished(running, selector) if running else ():
                    index = child.index
                    following = waiting.following(child)
                    if following is None:
                        running.discard(child)
                        selector.unregister(child.pipe)
                    outcome: Outcome[T] = child.end() if following is None else child.go_on(following)
                    if outcome.kind == "crash" and child.before and following is None:
                        # What others left behind may be to blame.
                        waiting.again(index)
                        continue
                    if memory is not None:
                        memory.note(function, argument_tuples[index], outcome)
                    ended.note(index, outcome)
                waiting.only_up_to(ended.last)
        finally:
            for child in running:
                child.end()
    return [ended.outcomes[index] for index in range(ended.last + 1)]


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block is over: a child forked but not yet noted could not be killed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _finished(running: set[Child], selector: selectors.BaseSelector) -> Iterator[Child]:
    """Wait for news, then yield the children that are done, dead or out of time."""
    soonest = min(child.deadline for child in running)
    wait = min(max(soonest - time.monotonic(), 0.0), _POLL_SECONDS)
    for key, _ in selector.select(wait):
        key.data.receive()
    now = time.monotonic()
    for child in list(running):
        if child.complete or now >= child.deadline or child.died():
            yield child
