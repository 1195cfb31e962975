"""Replacements in a file's text, and which of the author's lines each line of the new text comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tt2gl.trees import functions_in, python_tree

BYTE_ORDER_MARK = "\ufeff"
"""It is no part of a text that is parsed, and stays in front of it."""


@dataclass(frozen=True, order=True)
class Edit:
    """Bytes `start` to `end` of a text become `text`; equal ends insert."""

    start: int
    end: int
    text: str


class Places:
    """Where the nodes of Python's own tree of a text are in it."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.starts = _starts(self.raw)

    def of(self, node: ast.expr) -> tuple[int, int]:
        """The bytes of an expression: the first, and the one after it."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def line(self, number: int) -> bytes:
        """A line, counted from 1, with its end."""
        return self.raw[self.starts[number - 1] : (*self.starts, len(self.raw))[number]]

    def lines(self, statement: ast.stmt, *, comments: bool = False) -> tuple[int, int]:
        """The bytes of a statement's lines; `comments`: with those of the comments right above it."""
        assert statement.end_lineno is not None
        first = statement.lineno
        while comments and self.line(first - 1).lstrip().startswith(b"#"):
            first -= 1
        return self.starts[first - 1], (*self.starts, len(self.raw))[statement.end_lineno]


@dataclass(frozen=True)
class LineMap:
    """Where each line of a new text was in the author's.

    `lines`: the author's line of each new line, counted from 1. `indents`: by new line, the column that the author's
    statement starts at, for lines that were edited; on others columns are what they were.
    """

    lines: tuple[int, ...]
    indents: dict[int, int]

    def author(self, line: int, column: int) -> tuple[int, int]:
        """The author's place of a place in the new text; line 0 (the whole file) is no place, and stays."""
        if not 1 <= line <= len(self.lines):
            return line, column
        return self.lines[line - 1], self.indents.get(line, column)

    def line_of(self, author_line: int) -> int:
        """The first line of the new text that comes from the author's line, or from the nearest one before it."""
        before = [line for line in self.lines if line <= author_line]
        return self.lines.index(max(before)) + 1 if before else author_line


def in_functions(
    text: str, names: Collection[str], edits_of: Callable[[Places, ast.FunctionDef], Iterable[Edit]]
) -> str:
    """The text of a file with the edits of the functions of these names made."""
    bare = text.removeprefix(BYTE_ORDER_MARK)
    places = Places(bare)
    functions = [function for function in functions_in(python_tree(bare)) if function.name in names]
    edits = [edit for function in functions for edit in edits_of(places, function)]
    return text[: len(text) - len(bare)] + apply(bare, edits)[0]


def apply(text: str, edits: Sequence[Edit]) -> tuple[str, LineMap]:
    """The text with all edits made, which must not overlap; insertions at one place stand in the order given."""
    raw = text.encode()
    starts = _starts(raw)
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
    parts: list[bytes] = []
    lines: list[int] = [1]
    indents: dict[int, int] = {}
    place, line = 0, 1
    for edit in ordered:
        if edit.start < place:
            raise ValueError("edits overlap")
        kept = raw[place : edit.start]
        lines.extend(range(line + 1, line + 1 + kept.count(b"\n")))
        line += kept.count(b"\n")
        parts.append(kept)
        new = edit.text.encode()
        for _ in range(new.count(b"\n")):
            indents[len(lines)] = _indent(raw, starts[line - 1])
            lines.append(line)
        indents[len(lines)] = _indent(raw, starts[line - 1])
        parts.append(new)
        line += raw[edit.start : edit.end].count(b"\n")
        place = edit.end
    rest = raw[place:]
    lines.extend(range(line + 1, line + 1 + rest.count(b"\n")))
    parts.append(rest)
    return b"".join(parts).decode(), LineMap(tuple(lines), indents)


def _starts(raw: bytes) -> list[int]:
    """The first byte of each line. What else than its end `str.splitlines` splits at, Python's parser does not."""
    return [0, *(found.end() for found in re.finditer(b"\n", raw))]


def _indent(raw: bytes, start: int) -> int:
    end = start
    while raw[end : end + 1] in (b" ", b"\t"):
        end += 1
    return end - start
