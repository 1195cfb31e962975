"""Jobs on a Dask cluster, as `map_isolated` does them on this machine.

A worker runs each job in a fresh interpreter, so that a compiler that aborts does not take the worker along. The
folders have to be where they are here on every worker, in a file system that all share.
"""

from __future__ import annotations

import contextlib
import os
import platform
import queue
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tt2gl.children import Outcome, one_line
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.report.document import header
from tt2gl.spawned import run_spawned

T = TypeVar("T")

# Seconds that a scheduler has to answer, and a cluster without a worker to get one.
_PATIENCE = 30.0
_POLL_SECONDS = 1.0
# Beyond a job's own limit, in seconds: an interpreter's start.
_START = 60.0


class Cluster:
    """An open connection to a scheduler.

    `width` is how many jobs a machine does at a time, of the machine that does most.
    """

    def __init__(self, address: str, client: Any) -> None:
        self._address, self._client = address, client
        self._versions = versions()
        threads: Counter[str] = Counter()
        for worker, count in client.nthreads().items():
            threads[worker.rpartition(":")[0]] += count
        self.width = max(threads.values(), default=1)

    def map(
        self,
        function: Callable[..., T],
        argument_tuples: Sequence[tuple[Any, ...]],
        *,
        timeout: float,
        on_done: Callable[[int, Outcome[T]], None],
    ) -> None:
        """Call `function` once for every argument tuple, the first ones first; `on_done` as for `map_isolated`.

        A job whose worker dies is done by another, as often as the scheduler allows (`allowed-failures`, 3), then it
        is a crash. Raises DiagnosticError TTG014 where the scheduler is lost, or all workers are for too long.
        """
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        place = str(Path.cwd())
        indices = {}
        for index, arguments in enumerate(argument_tuples):
            call = (place, self._versions, function, arguments, timeout)
            future = self._client.submit(do_there, *call, pure=False, priority=-index)
            indices[future] = index
        try:
            for future in indices:
                future.add_done_callback(done.put)
            for _ in indices:
                future = self._next(done)
                on_done(indices[future], self._outcome(future))
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(indices), force=True)

    def _next(self, done: queue.SimpleQueue[Any]) -> Any:
        """The job that ends next. Raises TTG014 where there is nobody to end one."""
        alone_since = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                return done.get(timeout=_POLL_SECONDS)
            if self._client.status != "running":
                raise _problem(self._address, "The connection to the scheduler was lost.", _GO_ON)
            if self._client.nthreads():
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > _PATIENCE:
                raise _problem(self._address, "The scheduler has no worker left.", _GO_ON)

    def _outcome(self, future: Any) -> Outcome[Any]:
        if future.status == "finished":
            outcome: Outcome[Any] = future.result()
            return outcome
        if future.status in ("cancelled", "lost"):
            raise _problem(self._address, "The connection to the scheduler was lost.", _GO_ON)
        error = future.exception()
        if type(error).__name__ == "KilledWorker":
            return Outcome("crash", error="each worker that took it died")
        return Outcome("error", error=one_line(error))


_GO_ON = "See to the cluster, then go on with --resume."


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """A cluster whose workers have been seen to have the same tt2gl and the same compilers as there are here.

    Raises DiagnosticError TTG014 where there is no such scheduler, TTG012 where `distributed` is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        message = "The Python package distributed is missing."
        raise _problem(address, message, "Install tt2gl[dask].", code="TTG012") from error
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        message = f"There is no scheduler that can be reached: {one_line(error)}."
        raise _problem(address, message, "Give its address, as tcp://HOST:8786.") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise _problem(address, "The scheduler has no worker.", "Start some, `dask worker ADDRESS`.") from error
        _check_workers(address, client)
        yield Cluster(address, client)


def versions() -> dict[str, Any]:
    """What has to be the same here and there, for the same bytes to come of the same input."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {**{name: value for name, value in header().items() if name != "version"}, "python": python}


def do_there(
    place: str, expected: Mapping[str, Any], function: Callable[..., T], arguments: tuple[Any, ...], timeout: float
) -> Outcome[T]:
    """A job on a worker, from the folder that relative paths are meant from."""
    if versions() != expected:
        # A worker that came later was not asked before.
        return Outcome("error", error=f"the worker has {_in_words(versions())}, not {_in_words(expected)}")
    return run_spawned(_in_folder, place, function, arguments, timeout=timeout + _START)


def _in_folder(place: str, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    os.chdir(place)
    return function(*arguments)


def _check_workers(address: str, client: Any) -> None:
    """Raises TTG014 for the first worker that has something else than is here."""

    # A function within a function is sent as code, so that a worker without tt2gl can say so.
    def versions_there() -> Any:
        from tt2gl.port.cluster import versions

        return versions()

    expected = versions()
    for worker, found in sorted(client.run(versions_there, on_error="return").items()):
        if found != expected:
            has = one_line(found) if isinstance(found, BaseException) else _in_words(found)
            message = f"The worker {worker} has not what is here ({_in_words(expected)}): {has}."
            raise _problem(address, message, "Install the same versions on all workers.")


def _in_words(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _problem(address: str, message: str, hint: str, code: str = "TTG014") -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, Severity.ERROR, address, 0, 0, message, hint), ExitCode.UNKNOWN)
