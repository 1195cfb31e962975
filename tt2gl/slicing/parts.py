"""One file's part of a slice: which lines it keeps, what its names are bound to, and the text they make."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from tt2gl.host.scopes import Module
from tt2gl.trees import nodes_in

DIGEST = "0_digest_0"
"""Stands for the digest of the slice in its modules' names until all text is there."""

SUPPORT = f"_tt2gl_{DIGEST}_support"
"""The name of the module that has the slice's `bind`, `find`, `inert`, `limits` and `stub`."""


@dataclass
class Kept:
    """A definition that stays: its lines, and the decorator lines that replace the author's."""

    node: ast.FunctionDef | ast.ClassDef
    decorators: dict[int, str] = field(default_factory=dict)
    verbatim: bool = False

    @property
    def first(self) -> int:
        """The first line that is not blanked."""
        lines = [self.node.lineno, *self.decorators]
        if self.verbatim:
            lines += [decorator.lineno for decorator in self.node.decorator_list]
        return min(lines)


@dataclass
class Part:
    """The slice of one file while it grows. `read`: what is read of each name whose module is not at hand."""

    module: Module
    name: str
    kept: dict[ast.AST, Kept] = field(default_factory=dict)
    read: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    early: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)

    def binds(self, name: str) -> bool:
        """Whether a name is bound in this part already."""
        return name in self.found or name in self.early or name in self.late


def split_lines(text: str) -> list[str]:
    """Lines with their endings; only what ends a line for Python does (not a form feed)."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)


def indent_of(module: Module, line: int) -> str:
    """The white space that a line of a module begins with; lines count from 1."""
    text = split_lines(module.text)[line - 1].removeprefix("\ufeff")
    return text[: len(text) - len(text.lstrip())]


def part_text(part: Part) -> str:
    """The text of a part: kept lines, blanks, one line of bindings above them and the late ones below."""
    lines = split_lines(part.module.text)
    endings = [line[len(line.rstrip("\r\n")) :] for line in lines]
    result = [""] * len(lines)
    inside: set[ast.AST] = set()
    for kept in part.kept.values():
        inside.update(node for node in nodes_in(kept.node) if node is not kept.node)
    kept_here = sorted((kept for kept in part.kept.values() if kept.node not in inside), key=lambda kept: kept.first)
    levels = [""]
    occupied: set[int] = set()
    for kept in kept_here:
        indent = indent_of(part.module, kept.node.lineno)
        while levels[-1] != "" and not indent.startswith(levels[-1]):
            levels.pop()
        if levels[-1] != indent:
            # A definition inside something else needs a block of its indentation, on a line that is free.
            result[kept.first - 2] = f"{levels[-1]}if 1:"
            occupied.add(kept.first - 2)
            levels.append(indent)
        for number in range(kept.node.lineno - 1, kept.node.end_lineno or kept.node.lineno):
            result[number] = lines[number].rstrip("\r\n")
        if kept.verbatim:
            for number in range(kept.first - 1, kept.node.lineno - 1):
                result[number] = lines[number].rstrip("\r\n")
        for number, text in kept.decorators.items():
            result[number - 1] = text
    statements = _prelude(part)
    newline = endings[0] if endings and endings[0] else "\n"
    if statements:
        first = min((index for index, line in enumerate(result) if line), default=0)
        if not result or not result[0]:
            place, indent = 0, ""
        else:
            place = next(index for index in range(first + 1, len(result)) if not result[index])
            indent = levels[-1]
        if not result:
            result, endings = [""], [newline]
        result[place] = indent + "; ".join(statements)
    body = "".join(line + ending for line, ending in zip(result, endings, strict=True))
    if body and not body.endswith(("\n", "\r")):
        body += newline
    return body + "".join(f"{statement}{newline}" for statement in part.late.values())


def _prelude(part: Part) -> list[str]:
    statements = []
    future = [
        alias.name
        for node in part.module.tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    ]
    if future:
        statements.append(f"from __future__ import {', '.join(future)}")
    if part.found or part.early:
        statements.append(f"from {SUPPORT} import bind, find, inert, limits, stub")
    if part.found:
        wanted = ", ".join(f"{name}={dotted!r}" for name, dotted in part.found.items())
        statements.append(f"bind(globals(), {wanted})")
    for name, text in part.early.items():
        if name not in part.found:
            statements.append(text[1:] if text.startswith("!") else f"{name} = {text}")
    return statements
