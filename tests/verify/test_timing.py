"""What of timing can be tested without a GPU: the order of runs, and how many there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tt2gl.verify.timing import choose_repeats, flushes_to_hide, interleave

pytestmark = pytest.mark.once


@dataclass
class Clock:
    """Stands in for the GPU: every run takes what it says, and is noted."""

    order: list[str] = field(default_factory=list)

    def run(self, name: str) -> Callable[[], object]:
        return lambda: self.order.append(name)

    def timed(self, run: Callable[[], object]) -> tuple[Any, Any]:
        run()
        name = self.order[-1]
        return SimpleNamespace(elapsed_time=lambda end: {"a": 1.0, "b": 2.0, "c": 3.0}[name]), None


def test_timing_interleaves_and_rotates_the_order() -> None:
    clock = Clock()
    times = interleave([clock.run("a"), clock.run("b"), clock.run("c")], clock.timed, lambda: None, repeats=3)
    assert "".join(clock.order) == "abcbcacab"
    assert times == [[1.0] * 3, [2.0] * 3, [3.0] * 3]


@pytest.mark.parametrize(("seconds", "repeats"), [(1e-6, 300), (0.01, 60), (10.0, 20), (0.0, 300)])
def test_repeats_fill_the_time_within_bounds(seconds: float, repeats: int) -> None:
    assert choose_repeats(seconds) == repeats


@pytest.mark.parametrize(
    ("host", "flush", "count"), [(10e-6, 100e-6, 1), (200e-6, 100e-6, 3), (1.0, 1e-6, 64), (1e-6, 0.0, 2)]
)
def test_the_cache_is_flushed_until_the_launch_is_queued(host: float, flush: float, count: int) -> None:
    assert flushes_to_hide(host, flush) >= 1
    if flush:
        assert flushes_to_hide(host, flush) == count
