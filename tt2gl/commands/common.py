"""What the commands share: what a run gathers and how it ends, options that several have, and their types."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity

if TYPE_CHECKING:
    from tt2gl.config import Config
    from tt2gl.launches import Launch
    from tt2gl.report.document import FileEntry
    from tt2gl.results import JsonDocument, KernelReport

# What tt2gl is installed with; `doctor` alone does without them.
_REQUIRED = ("triton", "libcst", "rich", "numpy", "ml_dtypes", "greenlet", "jinja2", "markupsafe")


@dataclass
class Run:
    """What one command gathers while it goes through its files."""

    arguments: argparse.Namespace
    exit_code: int = ExitCode.CLEAN
    started: float = field(default_factory=time.monotonic)
    kernels: list[KernelReport] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: list[FileEntry] = field(default_factory=list)

    def end_with(self, code: int) -> None:
        """Exit with the worst code seen; a definite no outweighs a could-not-tell."""
        rank: list[int] = [ExitCode.CLEAN, ExitCode.UNKNOWN, ExitCode.NO]
        self.exit_code = max(self.exit_code, code, key=lambda each: rank.index(each) if each in rank else each)

    @contextlib.contextmanager
    def reporting(self, file: str = "tt2gl") -> Iterator[None]:
        """Tell what ends the work on `file`, and go on after it."""
        try:
            yield
        except DiagnosticError as error:
            diagnostic = error.diagnostic
            self._tell(replace(diagnostic, file=diagnostic.file or file), error.exit_code, error)
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in _REQUIRED:
                self._tell(_internal(file, error), os.EX_SOFTWARE, error)
                return
            message = f"The Python package {package} is missing, or too old: there is no {error.name}."
            hint = "See `tt2gl doctor` for what to install."
            self._tell(Diagnostic("TTG012", Severity.ERROR, file, 0, 0, message, hint), ExitCode.UNKNOWN, error)
        except Exception as error:  # noqa: BLE001 - the one place where a bug turns into a message
            self._tell(_internal(file, error), os.EX_SOFTWARE, error)

    def _tell(self, diagnostic: Diagnostic, code: int, error: Exception) -> None:
        if self.arguments.debug:
            say("".join(traceback.format_exception(error)).rstrip())
        say(str(diagnostic))
        self.diagnostics.append(diagnostic)
        self.end_with(code)

    def print_document(self) -> None:
        """The JSON document of all that was gathered, on stdout."""
        from tt2gl.report.document import document

        seconds = time.monotonic() - self.started
        print_json(document(self.kernels, seconds=seconds, diagnostics=self.diagnostics, files=self.files))


def _internal(file: str, error: Exception) -> Diagnostic:
    message = f"Internal error: {type(error).__name__}: {' '.join(str(error).split())}."
    hint = "This is a bug in tt2gl: please report it, with the output of --debug."
    return Diagnostic("TTG900", Severity.ERROR, file, 0, 0, message, hint)


def project_config() -> Config:
    """`[tool.tt2gl]` of the working directory's project."""
    from tt2gl.config import read_config

    return read_config(Path.cwd())


def known_target(target: str | None) -> str | None:
    """`target`, once it is known to exist: told once, not for every file."""
    from tt2gl.targets import get_target

    return get_target(target).name if target is not None else None


def given_launches(arguments: argparse.Namespace, config: Config) -> tuple[Sequence[Launch] | None, Path | None]:
    """The launches named on the command line, else the project's, else None: to be found in the file."""
    path = arguments.launches or config.launches
    root = arguments.root or (None if arguments.launches else config.root)
    if path is None:
        return None, root
    from tt2gl.launch_file import read_launches

    return read_launches(path), root


def print_json(value: JsonDocument) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def say(message: str) -> None:
    """A line for people, on stderr."""
    sys.stderr.write(message + "\n")


def seconds(text: str) -> float:
    """A time of more than nothing, as an option has it. Raises ValueError."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError
    return number


def count(text: str) -> int:
    """A number from one on, as an option has it. Raises ValueError."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def size(text: str) -> int:
    """A size such as 512MiB or 4GiB; a bare number is of bytes. Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B?)", text.strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise ValueError
    return int(float(found[1]) * 1024 ** " KMGT".index((found[2] or " ").upper()))


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
