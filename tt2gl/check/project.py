"""The files of a project that may have kernels, and those that each depends on. Imports nothing that is slow to."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.check.lock import NAME
from tt2gl.trees import nodes_in

if TYPE_CHECKING:
    from tt2gl.host.scopes import World

# Folders that hold no sources of the project; virtual environments are told by their pyvenv.cfg.
_LEFT_OUT = ("node_modules", "__pycache__", "build", "dist", "site-packages")
_KERNEL = re.compile(rb"^[ \t]*@[^\n]*\bjit\b", re.MULTILINE)


def find_home(start: Path, configured: Path | None) -> Path:
    """The folder of the lock: that of the project's configuration, else where a lock is already, else `start`."""
    if configured is not None:
        return configured
    return next((folder for folder in (start, *start.parents) if (folder / NAME).is_file()), start)


def find_files(home: Path, patterns: Sequence[str]) -> Iterator[Path]:
    """The Python files below `home` that `patterns` name (all where there are none), in order."""
    if patterns:
        yield from sorted({path for pattern in patterns for path in home.glob(pattern) if path.is_file()})
        return
    for folder, folders, files in os.walk(home):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _LEFT_OUT and not Path(folder, name, "pyvenv.cfg").exists()
        )
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


class Files:
    """The contents of files, each read once."""

    def __init__(self, home: Path, root: Path | None) -> None:
        self.home = home
        self.root = root
        self._contents: dict[Path, bytes | None] = {}
        self._digests: dict[Path, str] = {}
        self._imports: dict[Path, list[Path]] = {}

    def content(self, path: Path) -> bytes | None:
        """The bytes of a file, None where it cannot be read."""
        if path not in self._contents:
            try:
                self._contents[path] = path.read_bytes()
            except OSError:
                self._contents[path] = None
        return self._contents[path]

    def digest(self, path: Path) -> str:
        """A digest of a file, empty where it cannot be read."""
        if path not in self._digests:
            content = self.content(path)
            self._digests[path] = "" if content is None else hashlib.sha256(content).hexdigest()
        return self._digests[path]

    def has_kernels(self, path: Path) -> bool:
        """Whether a file may have kernels: its text speaks of Triton, and some decorator of jit."""
        content = self.content(path)
        return content is not None and b"triton" in content and _KERNEL.search(content) is not None

    def name(self, path: Path) -> str:
        """A file as the lock names it."""
        absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links stay what the user calls them
        return (absolute.relative_to(self.home) if absolute.is_relative_to(self.home) else absolute).as_posix()

    def imported(self, path: Path) -> list[Path]:
        """The files of the project that a file imports, and those that these do, in order of their paths."""
        from tt2gl.host.scopes import World

        world = World(self.root)
        found: set[Path] = set()
        waiting = [path.absolute()]
        while waiting:
            importer = waiting.pop()
            if importer not in self._imports:
                self._imports[importer] = [*_imports(self.content(importer), importer, world)]
            for other in self._imports[importer]:
                if other not in found and other != path.absolute() and other.is_relative_to(self.home):
                    found.add(other)
                    waiting.append(other)
        return sorted(found)


def _imports(content: bytes | None, path: Path, world: World) -> Iterator[Path]:
    try:
        tree = ast.parse(content or b"")
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in nodes_in(tree):
        paths: list[Path | None] = []
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                paths += [world.find(".".join(parts[:count]), path) for count in range(1, len(parts) + 1)]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for name in ("", *(alias.name for alias in node.names)):
                dotted = ".".join(filter(None, (base, name)))
                if dotted or node.level:
                    paths.append(world.relative(node.level, dotted, path) if node.level else world.find(dotted, path))
        yield from (found for found in paths if found is not None and found.is_file())


def launches_digest(content: bytes | None, file: str) -> str:
    """A digest of those entries of a launches file that may be of `file`: all that end in its name."""
    if content is None:
        return ""
    try:
        entries = json.loads(content)["launches"]
        own = [entry for entry in entries if entry["file"].rpartition("/")[2] == file.rpartition("/")[2]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
