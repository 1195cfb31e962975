"""`[tool.tt2gl]` of the nearest `pyproject.toml`: what a project would otherwise repeat on every command line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity


@dataclass(frozen=True)
class Config:
    """Defaults of a project. `launches` and `root` are resolved against the folder of the `pyproject.toml`."""

    target: str | None = None
    launches: Path | None = None
    root: Path | None = None
    no: frozenset[str] = frozenset()


def read_config(start: Path) -> Config:
    """The `[tool.tt2gl]` table of the nearest `pyproject.toml` that has one, from `start` upwards; else no defaults.

    Raises TTG007 for a file that is not TOML, an unknown key, or a value of the wrong type.
    """
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and (config := _read(path)) is not None:
            return config
    return Config()


def _read(path: Path) -> Config | None:
    try:
        text = path.read_text("utf-8")
        tool = tomllib.loads(text).get("tool", {})
    except OSError as error:
        raise _error(path, 0, f"The file cannot be read: {error.strerror or error}.", "Make it readable.") from error
    except ValueError as error:  # tomllib.TOMLDecodeError and UnicodeDecodeError
        position = re.search(r"at line (\d+)", str(error))
        line = int(position[1]) if position else 0
        raise _error(path, line, f"The file is not TOML: {error}.", "Correct the file.") from error
    if not isinstance(tool, dict) or "tt2gl" not in tool:
        return None
    table = tool["tt2gl"]
    if not isinstance(table, dict):
        raise _error(path, 0, "The value of tool.tt2gl is not a table.", "Write [tool.tt2gl] and the keys below it.")
    for key, value in table.items():
        _check(path, text, key, value)
    launches, root = table.get("launches"), table.get("root")
    return Config(
        target=table.get("target"),
        launches=path.parent / launches if launches is not None else None,
        root=path.parent / root if root is not None else None,
        no=frozenset(table.get("no", ())),
    )


def _check(path: Path, text: str, key: str, value: Any) -> None:
    line = next(
        (n for n, line in enumerate(text.splitlines(), 1) if re.match(rf'\s*"?{re.escape(key)}"?\s*=', line)), 0
    )
    if key not in ("target", "launches", "root", "no"):
        raise _error(
            path, line, f"There is no key {key!r} in [tool.tt2gl].", "The keys are target, launches, root and no."
        )
    if key == "no":
        if not isinstance(value, list) or not all(isinstance(rule, str) for rule in value):
            raise _error(path, line, "The key no must be a list of rule names.", 'For example no = ["row_cache"].')
    elif not isinstance(value, str):
        raise _error(path, line, f"The key {key} must be a string.", f'For example {key} = "...".')


def _error(path: Path, line: int, message: str, hint: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic("TTG007", Severity.ERROR, str(path), line, 0, message, hint), ExitCode.USAGE)
