"""A progress bar for what takes over two seconds, on a terminal alone."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from types import FrameType
from typing import Protocol


class Advance(Protocol):
    """Called with how much is done and how much there is, of a step where there are several."""

    def __call__(self, done: int, total: int, step: str = "") -> None:
        """Take note of it."""


PATIENCE = 2.0  # seconds before a bar appears
_REFRESH = 0.2  # seconds between drawings


@contextlib.contextmanager
def progress(label: str) -> Iterator[Advance]:
    """A bar on stderr that appears after `PATIENCE` seconds and leaves no trace; silent where stderr is no terminal.

    Drawn from a timer signal, not from a thread: the stages fork, and a forked copy of a threaded process may
    inherit a lock that nobody holds.
    """
    if not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        yield _not_shown
        return
    bar = _Bar(label)
    before = signal.signal(signal.SIGALRM, bar.tick)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, _REFRESH)
    try:
        yield bar.advance
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        bar.close()


def _not_shown(done: int, total: int, step: str = "") -> None:
    """There is no bar."""


class _Bar:
    def __init__(self, label: str) -> None:
        # Imported here, not at the first tick: a signal handler may interrupt an import.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        words, left = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[left]}")
        columns = (words, BarColumn(), TimeElapsedColumn(), left)
        # rich would send what is printed meanwhile to the bar's stream, stdout's text included.
        self._rich = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            # Jobs differ: what is left is told by all that is done.
            speed_estimate_period=3600.0,
        )
        self._label = label
        self._task = self._rich.add_task(label, total=None, left="")
        self._done = 0
        self._total: int | None = None
        self._step = ""

    def advance(self, done: int, total: int, step: str = "") -> None:
        if step != self._step:
            self._rich.reset(self._task, total=total, completed=done)
        self._done, self._total, self._step = done, total, step

    def tick(self, _signal: int, _frame: FrameType | None) -> None:
        self._rich.start()
        step = f": {self._step}" if self._step else ""
        count = f" {self._done}/{self._total}" if self._total else ""
        seconds = self._rich.tasks[0].time_remaining
        left = f"{timedelta(seconds=round(seconds))} left" if seconds is not None else ""
        words = self._label + step + count
        self._rich.update(self._task, description=words, completed=self._done, total=self._total, left=left)
        self._rich.refresh()

    def close(self) -> None:
        if self._rich.live.is_started:
            self._rich.stop()
