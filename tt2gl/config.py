"""`[tool.tt2gl]` of the nearest `pyproject.toml`: what a project would otherwise repeat on every command line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity


@dataclass(frozen=True)
class CheckConfig:
    """`[tool.tt2gl.check]`: patterns of files, targets, and shares by which registers and shared memory may grow."""

    files: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    registers: float = 0.1
    shared: float = 0.0


@dataclass(frozen=True)
class Config:
    """Defaults of a project. `launches` and `root` are resolved against `folder`, that of the `pyproject.toml`."""

    target: str | None = None
    launches: Path | None = None
    root: Path | None = None
    no: frozenset[str] = frozenset()
    check: CheckConfig = field(default_factory=CheckConfig)
    folder: Path | None = None


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
        check=_check_config(path, text, table.get("check", {})),
        folder=path.parent,
    )


_EXAMPLES = {
    "no": 'For example no = ["row_cache"].',
    "files": 'For example files = ["kernels/**/*.py"].',
    "targets": 'For example targets = ["sm90", "gfx942"].',
}


def _check_config(path: Path, text: str, table: dict[str, Any]) -> CheckConfig:
    for key, value in table.items():
        line = _line_of(text, key)
        if key in ("files", "targets"):
            _expect_names(path, line, key, value)
        elif key not in ("registers", "shared"):
            hint = "The keys are files, targets, registers and shared."
            raise _error(path, line, f"There is no key {key!r} in [tool.tt2gl.check].", hint)
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            message = f"The key {key} must be a number, from 0 on."
            raise _error(path, line, message, f"For example {key} = 0.1: a tenth more is allowed.")
    return CheckConfig(
        files=tuple(table.get("files", ())),
        targets=tuple(table.get("targets", ())),
        registers=float(table.get("registers", CheckConfig.registers)),
        shared=float(table.get("shared", CheckConfig.shared)),
    )


def _line_of(text: str, key: str) -> int:
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if re.match(rf'\s*"?{re.escape(key)}"?\s*=', line)), 0)


def _expect_names(path: Path, line: int, key: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        what = {"no": "rule names", "files": "patterns", "targets": "targets"}[key]
        raise _error(path, line, f"The key {key} must be a list of {what}.", _EXAMPLES[key])


def _check(path: Path, text: str, key: str, value: Any) -> None:
    line = _line_of(text, key)
    if key not in ("target", "launches", "root", "no", "check"):
        hint = "The keys are target, launches, root and no, and those of [tool.tt2gl.check]."
        raise _error(path, line, f"There is no key {key!r} in [tool.tt2gl].", hint)
    if key == "check":
        if not isinstance(value, dict):
            hint = "Write [tool.tt2gl.check] and the keys below it."
            raise _error(path, line, "The value of tool.tt2gl.check is not a table.", hint)
    elif key == "no":
        _expect_names(path, line, key, value)
    elif not isinstance(value, str):
        raise _error(path, line, f"The key {key} must be a string.", f'For example {key} = "...".')


def _error(path: Path, line: int, message: str, hint: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic("TTG007", Severity.ERROR, str(path), line, 0, message, hint), ExitCode.USAGE)
