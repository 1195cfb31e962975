"""How many processes work at a time."""

from __future__ import annotations

import os

_LIMIT = "TT2GL_CORES"


def available_cores() -> int:
    """Processor cores that this process may use: those that it has, or as many of them as `use_cores` said."""
    had = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(had, int(os.environ.get(_LIMIT, had)))


def use_cores(count: int) -> None:
    """Have this process, and those that it starts, run at most `count` children at a time."""
    os.environ[_LIMIT] = str(count)
