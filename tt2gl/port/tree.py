"""The folder that is ported, and what of it is copied as it is."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity

# What version control, interpreters and tools leave behind, and virtual environments.
_NOT_SOURCE = {"__pycache__", ".git", ".hg", ".svn", ".venv", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


@dataclass(frozen=True)
class Tree:
    """A folder's files by their place in it, in order. `digest` tells its Python apart from any other's."""

    folder: Path
    files: tuple[PurePosixPath, ...]
    candidates: tuple[PurePosixPath, ...]
    digest: str

    def path(self, place: PurePosixPath) -> Path:
        """Where a file of the folder is."""
        return self.folder / place


def read_tree(folder: Path, out: Path) -> Tree:
    """The files below `folder`, without those of `out`; the candidates are Python files that speak of Triton.

    Links to folders are not followed. Raises DiagnosticError: TTG001 where `folder` is none, TTG002 where one of its
    files cannot be read.
    """
    if not folder.is_dir():
        hint = "Give the folder that holds the kernels; for single files there is `tt2gl convert`."
        problem = Diagnostic("TTG001", Severity.ERROR, str(folder), 0, 0, "There is no such folder.", hint)
        raise DiagnosticError(problem, ExitCode.NO_INPUT)
    files = tuple(sorted(_places(folder, Path(os.path.realpath(out)))))
    digest, candidates = hashlib.sha256(), []
    for place in files:
        if place.suffix == ".py":
            content = _read(folder / place)
            digest.update(f"{place}\0{len(content)}\0".encode() + content)
            if b"triton" in content:
                candidates.append(place)
    return Tree(folder, files, tuple(candidates), digest.hexdigest())


def _places(folder: Path, out: Path) -> Iterator[PurePosixPath]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in _NOT_SOURCE
            and not Path(parent, name, "pyvenv.cfg").exists()
            and Path(os.path.realpath(Path(parent, name))) != out
        ]
        for name in names:
            if not name.endswith(".pyc") and Path(parent, name).is_file():
                yield PurePosixPath(Path(parent, name).relative_to(folder).as_posix())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"The file cannot be read: {error.strerror or error}."
        hint = "Make it readable, or take it out of the folder."
        problem = Diagnostic("TTG002", Severity.ERROR, str(path), 0, 0, message, hint)
        raise DiagnosticError(problem, ExitCode.BAD_SOURCE) from error


def copy_file(source: Path, place: Path) -> bool:
    """Put a file at `place` as it is, unless it is there; whether that was needed. Raises TTG005 where it fails."""
    try:
        if place.is_file() and place.read_bytes() == source.read_bytes():
            return False
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, place)
    except OSError as error:
        message = f"The output cannot be written: {error.strerror or error}."
        hint = "Make room or choose another --out, then go on with --resume."
        problem = Diagnostic("TTG005", Severity.ERROR, str(place), 0, 0, message, hint)
        raise DiagnosticError(problem, ExitCode.CANNOT_WRITE) from error
    return True
