"""One call of a kernel as an entry of a launches file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import values

_START = os.getcwd()  # noqa: PTH109 - a script's name may be relative to where the command started

# Options that the file always has, and keyword arguments that are none of the launch's.
_ALWAYS = ("num_warps", "num_stages", "num_ctas")
_NOT_OPTIONS = ("debug", "instrumentation_mode", "ir_override", "stream", "device")


def source_file(function: Any) -> str:
    """The absolute path of the file that defines a jit function."""
    return os.path.realpath(os.path.join(_START, function.fn.__code__.co_filename))  # noqa: PTH118


class Caller:
    """A kernel and a backend: what Triton's own binding makes of a call's arguments."""

    def __init__(self, function: Any, backend: Any) -> None:
        from triton.runtime.jit import create_function_from_signature

        self._function = function
        self._backend = backend
        self._bind = create_function_from_signature(function.signature, function.params, backend)

    def launch(self, args: Sequence[Any], kwargs: Mapping[str, Any], grid: Any, *, with_range: bool) -> dict[str, Any]:
        """The entry of one call. Raises NoPlaceError where the file cannot hold it, TypeError where it does not bind.

        Without a range, integer tensors are described without a look at their elements.
        """
        bound, specialization, extra = self._bind(*args, **kwargs)
        names = [parameter.name for parameter in self._function.params]
        kinds = {name: kind for name, (kind, _) in zip(names, specialization, strict=True)}
        keys = {name: key for name, (_, key) in zip(names, specialization, strict=True)}
        constexprs = {name: values.constant(keys[name]) for name in names if kinds[name] == "constexpr"}
        return {
            "file": source_file(self._function),
            "kernel": self._function.__name__,
            "signature": {name: _spelled(kind) for name, kind in kinds.items()},
            "constexprs": constexprs,
            "divisible_by_16": [name for name in names if name not in constexprs and _aligned(keys[name])],
            "options": self._options(kwargs, extra),
            "grid": _counts(grid(bound) if callable(grid) else grid),
            "args": {
                name: values.argument(bound[name], with_range=with_range) for name in names if name not in constexprs
            },
        }

    def _options(self, kwargs: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
        known = self._backend.parse_options(dict(kwargs))
        options = {name: values.constant(getattr(known, name)) for name in _ALWAYS}
        for name, value in extra.items():
            if name not in _ALWAYS and name not in _NOT_OPTIONS and value is not None:
                options[name] = values.constant(value)
        return options


def _aligned(key: Any) -> bool:
    """Whether Triton specialises on a multiple of 16; of a tuple's elements the file says nothing."""
    return isinstance(key, str) and "D" in key


def _spelled(kind: Any) -> str:
    return f"({', '.join(_spelled(item) for item in kind)})" if isinstance(kind, tuple) else str(kind)


def _counts(grid: Any) -> list[int] | None:
    if grid is None:
        return None
    counts = [int(count) for count in (grid if isinstance(grid, (tuple, list)) else (grid,))]
    return [*counts, 1, 1][:3]
