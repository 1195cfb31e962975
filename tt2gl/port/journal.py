"""Results on disk as they come, a line of JSON each, so that nothing that is done is done again.

A line names its work by a key, a digest of all that the result depends on. What a crash or a full disk cut short is no
line, and goes when the journal is opened again. What is done of a file that is not done yet, kernel by kernel, is in a
ledger of its own in the folder beside the journal, and goes with the file's line.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, TracebackType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.launch_file import launch_from_json, launch_to_json
from tt2gl.port.jobs import Converted
from tt2gl.results import KernelReport, NamedLayout

NAME = "tt2gl-port.jsonl"
"""The journal's file, in the output's folder."""

PARTS = "tt2gl-port.parts"
"""The folder of the ledgers, beside it."""

VERSION = 1


class Journal:
    """An open journal; `entries` are those that were there already, by key."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._parts = path.with_name(PARTS)
        if not resume:
            shutil.rmtree(self._parts, ignore_errors=True)
        self.entries: dict[str, Mapping[str, Any]] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            whole = self._read() if resume else 0
            os.ftruncate(self._descriptor, whole)
            os.lseek(self._descriptor, whole, os.SEEK_SET)
        except OSError as error:
            raise self._unwritable(error) from error

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._descriptor)
        if error is None:
            shutil.rmtree(self._parts, ignore_errors=True)

    def ledger(self, key: str) -> Path:
        """Where a job keeps what it has done, until its result is here."""
        return self._parts / key

    def _read(self) -> int:
        """Take in the lines that are whole; how many bytes they are."""
        with open(self._descriptor, "rb", closefd=False) as stream:
            content = stream.read()
        whole = content.rfind(b"\n") + 1
        for line in content[:whole].splitlines():
            entry = json.loads(line)
            if entry.get("version") == VERSION:
                self.entries[entry["key"]] = entry
        return whole

    def append(self, key: str, entry: Mapping[str, Any]) -> None:
        """Add a result, and have it on disk before anything else is done. Raises TTG005 where that fails."""
        line = json.dumps({"version": VERSION, "key": key, **entry}, allow_nan=False) + "\n"
        view = memoryview(line.encode())
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._unwritable(error) from error
        self.ledger(key).unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> DiagnosticError:
        message = f"The journal cannot be written: {error.strerror or error}."
        hint = "Make room or choose another --out, then go on with --resume."
        return DiagnosticError(
            Diagnostic("TTG005", Severity.ERROR, str(self._path), 0, 0, message, hint), ExitCode.CANNOT_WRITE
        )


# ------------------------------------------------------------------------------------------- results as JSON


def converted_to_json(converted: Converted) -> dict[str, Any]:
    """A file's conversion as its line has it."""
    told = [each.to_json() for each in converted.diagnostics]
    found = [launch_to_json(launch) for launch in converted.found]
    return {"text": converted.text, "kernels": reports_to_json(converted.kernels), "diagnostics": told, "found": found}


def converted_from_json(entry: Mapping[str, Any]) -> Converted:
    """The inverse of `converted_to_json`."""
    told: tuple[Diagnostic, ...] = _decoded(tuple[Diagnostic, ...], entry["diagnostics"])
    found = tuple(map(launch_from_json, entry.get("found", ())))
    return Converted(entry["text"], reports_from_json(entry["kernels"]), told, found)


def reports_to_json(reports: tuple[KernelReport, ...]) -> list[Any]:
    """Reports with all that they hold."""
    return [_finite(asdict(report)) for report in reports]


def reports_from_json(entries: list[Any]) -> tuple[KernelReport, ...]:
    """The inverse of `reports_to_json`."""
    reports: tuple[KernelReport, ...] = _decoded(tuple[KernelReport, ...], _infinite(entries))
    return reports


def layouts_to_json(layouts: tuple[NamedLayout, ...]) -> list[Any]:
    """Layouts with all that they hold."""
    return [asdict(layout) for layout in layouts]


def layouts_from_json(entries: list[Any]) -> tuple[NamedLayout, ...]:
    """The inverse of `layouts_to_json`."""
    layouts: tuple[NamedLayout, ...] = _decoded(tuple[NamedLayout, ...], entries)
    return layouts


def _decoded(kind: Any, value: Any) -> Any:
    """A value of the type that an annotation names, from what JSON made of it."""
    arguments = get_args(kind)
    if isinstance(value, dict) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _decoded(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    if get_origin(kind) is tuple:
        kinds = [arguments[0]] * len(value) if arguments[-1] is ... else arguments
        return tuple(_decoded(each, item) for each, item in zip(kinds, value, strict=True))
    if get_origin(kind) in (dict, Mapping):
        return {arguments[0](name): _decoded(arguments[1], item) for name, item in value.items()}
    if get_origin(kind) in (Union, UnionType):
        fitting = [each for each in arguments if each is not NoneType]
        return value if value is None or len(fitting) > 1 else _decoded(fitting[0], value)
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value


def _finite(value: Any) -> Any:
    """A value without the numbers that JSON lacks, which are tagged as launches tag them."""
    match value:
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value


def _infinite(value: Any) -> Any:
    match value:
        case {"float": str(text)} if len(value) == 1:
            return float(text)
        case dict():
            return {name: _infinite(item) for name, item in value.items()}
        case list():
            return [_infinite(item) for item in value]
    return value
