"""Times calls on the GPU: in turns, with nothing in the cache and the host's part left out."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

_WARM_UP_SECONDS = 0.1
_TIMING_SECONDS = 0.6
_FEWEST_REPEATS, _MOST_REPEATS = 20, 300
# Written before every timed call, so that no input is left in the L2 cache: at least this, and four times the cache.
_FLUSH_BYTES = 256 << 20


def milliseconds(runs: Sequence[Callable[[], object]], prepare: Callable[[], None], device: str) -> list[list[float]]:
    """The times of each of the runs, interleaved; before each, `prepare` has its inputs as they were."""
    import torch

    cache = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
    flushed = torch.empty(max(_FLUSH_BYTES, 4 * cache), dtype=torch.int8, device=device)
    host = max(_host_seconds(run) for run in runs)
    torch.cuda.synchronize()
    flushes = flushes_to_hide(host, _gpu_seconds(flushed.zero_))

    def timed(run: Callable[[], object]) -> tuple[Any, Any]:
        prepare()
        for _ in range(flushes):
            flushed.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        return start, end

    def wait() -> None:
        torch.cuda.synchronize()

    warm = interleave(runs, timed, wait, repeats=_FEWEST_REPEATS // 4)
    spent = time.perf_counter()
    warm = interleave(runs, timed, wait, repeats=_FEWEST_REPEATS // 4)
    spent = (time.perf_counter() - spent) / len(warm[0])
    interleave(runs, timed, wait, repeats=max(1, math.ceil(_WARM_UP_SECONDS / spent)))
    return interleave(runs, timed, wait, repeats=choose_repeats(spent))


def interleave(
    runs: Sequence[Callable[[], object]],
    timed: Callable[[Callable[[], object]], tuple[Any, Any]],
    wait: Callable[[], None],
    repeats: int,
) -> list[list[float]]:
    """Time every run `repeats` times, in turns whose order rotates, so that drift of the clock hits all alike.

    `timed` returns the events around one run, read once all are over (after `wait`).
    """
    events: list[list[tuple[Any, Any]]] = [[] for _ in runs]
    for repeat in range(repeats):
        for turn in range(len(runs)):
            index = (repeat + turn) % len(runs)
            events[index].append(timed(runs[index]))
    wait()
    return [[start.elapsed_time(end) for start, end in pairs] for pairs in events]


def choose_repeats(seconds_a_round: float) -> int:
    """How many rounds fill the time set aside for timing, within bounds."""
    return max(_FEWEST_REPEATS, min(_MOST_REPEATS, math.ceil(_TIMING_SECONDS / max(seconds_a_round, 1e-9))))


def flushes_to_hide(host_seconds: float, flush_seconds: float) -> int:
    """How often to flush so that the GPU is still busy when the host has queued the kernel to be timed.

    Else the time between the events would include the host's, which is no kernel's fault.
    """
    return max(1, min(64, math.ceil(1.5 * host_seconds / max(flush_seconds, 1e-9))))


def _host_seconds(run: Callable[[], object]) -> float:
    """What a launch costs the host; the quickest of a few, started with nothing queued."""
    import torch

    times = []
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _gpu_seconds(run: Callable[[], object]) -> float:
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    run()
    start.record()
    for _ in range(10):
        run()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 10_000
