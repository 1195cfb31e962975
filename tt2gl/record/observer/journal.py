"""The file that every process of the command appends what it saw to."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any


class Journal:
    """Lines of JSON, each appended by one write: processes do not mix, and a crash loses none that is written."""

    def __init__(self, path: str) -> None:
        self._path = path

    def append(self, entry: dict[str, Any]) -> None:
        """Add one line; a full disk is no reason to end the command."""
        line = json.dumps(entry, allow_nan=False) + "\n"
        with contextlib.suppress(OSError):
            # Opened each time: the command may close descriptors that are not its own.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
