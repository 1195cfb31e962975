"""Outcomes of jobs on disk as they come: a process that is killed half way loses the job at hand, and no other.

What is read back is values alone: of pickles that name anything but dataclasses and enumerations of tt2gl, or paths,
nothing is made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import io
import os
import pathlib
import pickle
import struct
from collections.abc import Callable
from typing import Any

from tt2gl.children import Outcome

_LENGTH = struct.Struct("<Q")
# How else jobs end (crashes, time limits) may be due to the machine: those are tried again.
_SURE = ("ok", "error")


class Ledger:
    """The outcomes in one file. What was cut short in it is no outcome, and goes."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._known: dict[str, bytes] = {}
        whole = 0
        content = path.read_bytes() if path.exists() else b""
        while whole + _LENGTH.size <= len(content):
            start = whole + _LENGTH.size
            end = start + _LENGTH.unpack_from(content, whole)[0]
            if end > len(content):
                break
            key, _, message = content[start:end].partition(b"\n")
            self._known[key.decode()] = message
            whole = end
        if whole < len(content):
            os.truncate(path, whole)

    def recall(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome[Any] | None:
        """How a job of the same function and arguments ended."""
        message = self._known.get(_key(function, args))
        if message is None:
            return None
        with contextlib.suppress(Exception):  # whatever a file of another version has in it, the job can be done again
            outcome = _Values(io.BytesIO(message)).load()
            return outcome if isinstance(outcome, Outcome) else None
        return None

    def note(self, function: Callable[..., Any], args: tuple[Any, ...], outcome: Outcome[Any]) -> None:
        """Add an outcome to the file. A disk that is full is no reason to stop: it is only not known later."""
        if outcome.kind not in _SURE:
            return
        record = b"\n".join([_key(function, args).encode(), pickle.dumps(outcome)])
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(_LENGTH.pack(len(record)) + record)


def _key(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """A digest of a job: its arguments are values, whose `repr` says all that they are."""
    text = f"{function.__module__}.{function.__qualname__}{args!r}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class _Values(pickle.Unpickler):
    """Reads values, and runs nothing that is not one of their constructors."""

    def find_class(self, module: str, name: str) -> Any:
        """A class of values. Raises UnpicklingError for all else."""
        found = super().find_class(module, name)
        if isinstance(found, type):
            own = module.startswith("tt2gl.") and (dataclasses.is_dataclass(found) or issubclass(found, enum.Enum))
            if own or issubclass(found, (pathlib.PurePath, set, frozenset)):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no value")
