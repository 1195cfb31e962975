"""numpy's BLAS on one thread: tiles are too small to share, and threads that spin for one another on a busy machine
take ten times as long as one alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

# The names that OpenBLAS's functions have in numpy's wheels, newest first, and in plain builds.
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")


@functools.cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How to ask for, and set, the number of threads; None where numpy brings no OpenBLAS of its own."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for file in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(file))
            for name in _NAMES:
                if hasattr(library, name.format("set")):
                    return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within: products of matrices run on this thread, where numpy's BLAS lets itself be told so."""
    controls = _controls()
    before = controls[0]() if controls is not None else 1
    if controls is None or before == 1:
        yield
        return
    controls[1](1)
    try:
        yield
    finally:
        controls[1](before)
