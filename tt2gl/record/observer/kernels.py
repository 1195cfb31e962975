"""Every launch of a jit function goes by here: it is taken down, and then carried out or skipped."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

from . import values
from .gpu import Gpu
from .journal import Journal
from .launches import Caller, source_file


def observe(journal: Journal, gpu: Gpu | None) -> None:
    """Watch this process's launches. With a `gpu` to be played, kernels are compiled if asked for, and never run."""
    import triton
    from triton.runtime.jit import JITFunction

    if gpu is not None:
        from .driver import install

        install(gpu)
    journal.append({"triton": triton.__version__})
    recorder = _Recorder(journal)
    original = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        recorder.take_down(self, args, kwargs, None if warmup else grid)
        if gpu is None:
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)
        for hook in getattr(self, "pre_run_hooks", ()):
            hook(*args, **kwargs)
        return _Skipped(lambda: original(self, *args, grid=grid, warmup=True, **kwargs))

    JITFunction.run = run


class _Skipped:
    """Stands for the compiled kernel that a launch returns: compiled when something of it is asked for."""

    def __init__(self, compiled: Callable[[], Any]) -> None:
        self._compiled = compiled
        self._kernel: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._kernel is None:
            self._kernel = self._compiled()
        return getattr(self._kernel, name)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *_args, **_kwargs: None


class _Recorder:
    """Takes launches down, each distinct one once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._callers: dict[int, tuple[Any, Caller]] = {}
        self._seen: set[str] = set()
        self._glimpses: set[Any] = set()
        self._lock = threading.Lock()

    def take_down(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> None:
        """Take one launch down; without a grid it was a request to compile, whose arguments are not real ones."""
        if function.is_gluon():
            return
        glimpse = _glimpse(function, args, kwargs, grid)
        if glimpse is not None and glimpse in self._glimpses:
            return
        try:
            caller = self._caller(function)
            entry = caller.launch(args, kwargs, grid, with_range=False)
            if grid is None:
                entry["args"] = None
            if self._new(json.dumps(entry)):
                if grid is not None and any(map(_may_have_range, entry["args"].values())):
                    entry = caller.launch(args, kwargs, grid, with_range=True)
                self._journal.append({"launch": entry})
            if glimpse is not None:
                self._glimpses.add(glimpse)
        except Exception as error:  # noqa: BLE001 - the command must run on as it would have
            self._refuse(function, error)

    def _caller(self, function: Any) -> Caller:
        """The function is kept with its caller, so that no other gets its id."""
        known = self._callers.get(id(function))
        if known is None:
            from triton.compiler.compiler import make_backend
            from triton.runtime import driver

            known = function, Caller(function, make_backend(driver.active.get_current_target()))
            self._callers[id(function)] = known
        return known[1]

    def _new(self, key: str) -> bool:
        with self._lock:
            before = len(self._seen)
            self._seen.add(key)
            return len(self._seen) > before

    def _refuse(self, function: Any, error: Exception) -> None:
        reason = " ".join(str(error).split()) or type(error).__name__
        with contextlib.suppress(Exception):
            refused = {"file": source_file(function), "kernel": function.__name__, "reason": reason}
            if self._new(json.dumps(refused)):
                self._journal.append({"refused": refused})


def _glimpse(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> Any:
    """What tells a launch from others at little cost, None where nothing does.

    An autotuner measures hundreds of launches of one kind, and small kernels take longer when their launches do.
    """
    named = {**dict(zip(function.arg_names, args, strict=False)), **kwargs}
    try:
        size = grid(named) if callable(grid) else grid
        glimpse = (id(function), grid is None, tuple(size or ()), tuple(map(values.glimpse, named.values())), *kwargs)
        hash(glimpse)
    except Exception:  # noqa: BLE001 - what has no hash, or a grid that asks for more, is looked at in full
        return None
    return glimpse


def _may_have_range(argument: Any) -> bool:
    match argument:
        case {"dtype": str(name)}:
            return "int" in name
        case {"tuple": items}:
            return any(map(_may_have_range, items))
    return False
