"""The import statements of a file, as they are written, and how they would name what is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from tt2gl.source import SourceFile


def spelled_beside(spelled: str, path: Path, other: Path) -> str:
    """What a file is called where the file `path` is `spelled` so; empty where the two have no folder in common."""
    names = spelled.lstrip(".").split(".")
    if names[-1] != path.stem or len(path.parents) < len(names):
        return ""
    folder = path.parents[len(names) - 1]
    if not other.is_relative_to(folder):
        return ""
    return "." * (len(spelled) - len(spelled.lstrip("."))) + ".".join(other.relative_to(folder).with_suffix("").parts)


def absolute_import(source: SourceFile, name: str) -> str | None:
    """The import of another package's name, as a file has it."""
    found = _absolute(source, name)
    if found is None:
        return None
    small, alias = found
    said = alias.evaluated_name + (f" as {alias.evaluated_alias}" if alias.evaluated_alias else "")
    return f"from {spelled(small)} import {said}" if isinstance(small, cst.ImportFrom) else f"import {said}"


def absolute_module(source: SourceFile, name: str) -> str:
    """The module that a file has a name from, as it stands in any file; empty where it says it from where it is."""
    found = _absolute(source, name)
    return spelled(found[0]) if found is not None and isinstance(found[0], cst.ImportFrom) else ""


def _absolute(source: SourceFile, name: str) -> tuple[cst.Import | cst.ImportFrom, cst.ImportAlias] | None:
    """The statement that binds a name, and how, if it means the same in any file."""
    for statement in statements(source.module.body):
        small = statement.small
        if not isinstance(small, (cst.Import, cst.ImportFrom)) or isinstance(small.names, cst.ImportStar):
            continue
        for alias in small.names:
            bound = alias.evaluated_alias or alias.evaluated_name
            if bound == name and not (isinstance(small, cst.ImportFrom) and small.relative):
                return small, alias
    return None


@dataclass(frozen=True)
class Statement:
    """A statement that has a line of its own. `alone`: it is all that a branch of the file has."""

    small: cst.BaseSmallStatement
    alone: bool = False


def statements(body: Sequence[cst.BaseStatement], inside: bool = False) -> Iterator[Statement]:
    """The statements of a file that have a line of their own, those of its branches among them."""
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
            yield Statement(statement.body[0], inside and len(body) == 1)
        elif isinstance(statement, (cst.If, cst.Else, cst.Try, cst.ExceptHandler, cst.Finally)):
            if isinstance(statement.body, cst.IndentedBlock):
                yield from statements(statement.body.body, inside=True)
            others = [getattr(statement, name, None) for name in ("orelse", "finalbody")]
            others += getattr(statement, "handlers", ())
            yield from statements([each for each in others if each is not None])


def aliases(statement: cst.ImportFrom) -> Iterator[cst.ImportAlias]:
    """The names that a statement lists."""
    if not isinstance(statement.names, cst.ImportStar):
        yield from statement.names


def spelled(statement: cst.ImportFrom) -> str:
    """The module of a statement, as it is written."""
    module = cst.Module([]).code_for_node(statement.module) if statement.module is not None else ""
    return "." * len(statement.relative) + module
