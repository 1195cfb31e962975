"""What a run of `check` keeps for the next: results by the contents that they follow from, in `.tt2gl_cache`.

A file is as before where its text is, and those of the files that it imports, its launches, Triton and tt2gl. A kernel
is as before where its code is, comments and place aside.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tt2gl import __version__
from tt2gl.check.lowering import (
    Lowering,
    Measured,
    lowering_from_json,
    lowering_to_json,
    measured_from_json,
    measured_to_json,
)
from tt2gl.diagnostics import DiagnosticError
from tt2gl.files import write_text

FOLDER = ".tt2gl_cache"


@dataclass(frozen=True)
class Record:
    """The kernels of a file for one target, and what they follow from: `inputs` has the digests of files by name."""

    inputs: Mapping[str, str]
    measured: tuple[Measured, ...]


@dataclass
class Cache:
    """All that is kept for one Triton. `kernels` are lowerings by the identity of a kernel."""

    path: Path
    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    kernels: dict[str, Lowering] = field(default_factory=dict)

    def keep(self, files: Collection[str]) -> None:
        """Forget the files that are none of these."""
        self.records = {key: record for key, record in self.records.items() if key[0] in files}

    def save(self) -> None:
        """Write the cache; a folder that cannot be written costs time alone."""
        # Kernels of other branches are worth keeping, for a while.
        most = 1000 + 4 * sum(len(record.measured) for record in self.records.values())
        kernels = dict(list(self.kernels.items())[-most:])
        document = {
            "tt2gl": __version__,
            "records": [
                {
                    "file": file,
                    "target": target,
                    "inputs": dict(record.inputs),
                    "measured": [measured_to_json(measured) for measured in record.measured],
                }
                for (file, target), record in self.records.items()
            ],
            "kernels": {identity: lowering_to_json(lowering) for identity, lowering in kernels.items()},
        }
        with contextlib.suppress(DiagnosticError, OSError):
            write_text(self.path, json.dumps(document, separators=(",", ":")))
            ignored = self.path.with_name(".gitignore")
            if not ignored.exists():
                write_text(ignored, "*\n")


def read_cache(home: Path, triton: str) -> Cache:
    """What was kept below `home`; empty where nothing was, another tt2gl did, or it is damaged."""
    cache = Cache(home / FOLDER / f"check-{triton}.json")
    try:
        document: Any = json.loads(cache.path.read_bytes())
        if document["tt2gl"] != __version__:
            return cache
        records = {}
        for value in document["records"]:
            file, target = value["file"], value["target"]
            measured = tuple(measured_from_json(each, file, target) for each in value["measured"])
            records[file, target] = Record(value["inputs"], measured)
        kernels = {identity: lowering_from_json(value) for identity, value in document["kernels"].items()}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return cache
    return Cache(cache.path, records, kernels)
