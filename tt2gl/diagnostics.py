"""What tt2gl tells a user: one value type, one table of codes.

Every stage reports through `Diagnostic`. A stage that cannot go on raises `DiagnosticError`, which carries
one; only the command line prints and only the command line exits.

Codes by floor: TTG0xx input and environment, TTG1xx source and slicing, TTG2xx launches, TTG3xx conversion and
layouts, TTG4xx compiling and running, TTG5xx lowering compared with Triton's.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


class Severity(enum.StrEnum):
    """How much a diagnostic matters: an error stops a kernel, a warning may, a note never does."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class ExitCode(enum.IntEnum):
    """Exit codes of the command line (64 and up follow sysexits.h)."""

    CLEAN = 0
    NO = 1
    UNKNOWN = 2
    USAGE = 64
    BAD_SOURCE = 65
    NO_INPUT = 66
    CANNOT_WRITE = 73
    INTERRUPTED = 130


@dataclass(frozen=True)
class Diagnostic:
    """One finding: `line` counts from 1, `column` from 0; `message` is the cause, `hint` what to do."""

    code: str
    severity: Severity
    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        hint = f" {self.hint}" if self.hint else ""
        return f"{where}: {self.code} {self.message}{hint}"

    def to_json(self) -> dict[str, Any]:
        """The diagnostic as the JSON document spells it."""
        return {**asdict(self), "severity": self.severity.value}


def shown(path: Path | str) -> str:
    """A path as messages have it, which go into reports: from the working directory, or the file's name alone."""
    absolute, here = Path(path).absolute(), Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else absolute.name


class DiagnosticError(Exception):
    """A stage cannot go on; `exit_code` is what the command line returns when this ends the run."""

    def __init__(self, diagnostic: Diagnostic, exit_code: ExitCode = ExitCode.UNKNOWN) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic
        self.exit_code = exit_code
