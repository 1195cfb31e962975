"""Layout functions that conversions of several files wrote, once in a module of the ported package.

Before, in each file:                      After, in each file:

    @gluon.constexpr_function                  from .gluon_layouts import coalesced
    def coalesced(shape, order, ...):
        ...

A function moves where several files have it word for word, and only out of modules that are imported as parts of the
package: out of scripts, and out of folders that are no packages, a relative import would lead nowhere.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tt2gl.trees import nodes_in

_NAMES = ("gluon_layouts", "gluon_layouts_shared")
_HEAD = '''"""Layouts that several modules of this package use."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
'''
_IMPORTED = {"gluon", "gl"}
_DECORATOR = "gluon.constexpr_function"


@dataclass(frozen=True)
class _Helper:
    """A function as a file has it: its text, and the lines it stands on, counted from 0."""

    name: str
    text: str
    start: int
    end: int
    reads: frozenset[str]


def with_shared_helpers(
    texts: Mapping[PurePosixPath, tuple[str, str]], folders: frozenset[PurePosixPath], taken: frozenset[str]
) -> dict[PurePosixPath, str]:
    """The files' texts with what several have moved to a module of their own, which is among them where there is one.

    `texts` are original and port by place, `folders` those that are packages, `taken` the names in the topmost one.
    """
    module = next((name for name in _NAMES if name not in taken), None)
    found = {
        place: _helpers(original, port)
        for place, (original, port) in texts.items()
        if module is not None and _is_module(place, original, folders)
    }
    counts = Counter(helper.text for helpers in found.values() for helper in helpers)
    names = Counter(
        name for name, _ in sorted({(each.name, each.text) for helpers in found.values() for each in helpers})
    )
    shared = {
        helper.name: helper.text
        for helpers in found.values()
        for helper in helpers
        if counts[helper.text] > 1 and names[helper.name] == 1
    }
    shared = _closed(shared, {helper.name: helper.reads for helpers in found.values() for helper in helpers})
    ported = {place: port for place, (_, port) in texts.items()}
    if module is None or not shared:
        return ported
    for place, helpers in found.items():
        moved = [helper for helper in helpers if shared.get(helper.name) == helper.text]
        if moved:
            ported[place] = _without(ported[place], moved, "." * len(place.parts) + module)
    ported[PurePosixPath(f"{module}.py")] = "\n\n".join([_HEAD, *(shared[name] for name in sorted(shared))])
    return ported


def _is_module(place: PurePosixPath, original: str, folders: frozenset[PurePosixPath]) -> bool:
    """Whether a file is imported as a part of the package, and never run by itself."""
    return set(place.parents) <= folders and "__main__" not in original


def _helpers(original: str, port: str) -> list[_Helper]:
    """The layout functions at the top of a port that its original does not have, and that need nothing else of it."""
    lines, there = port.splitlines(keepends=True), original.splitlines(keepends=True)
    own = set(_functions(there, original)) if original != port else set()
    found = []
    for text, (node, start) in _functions(lines, port).items():
        reads = frozenset(_read_names(node))
        if text not in own:
            found.append(_Helper(node.name, text, start, node.end_lineno or start, reads))
    known = {helper.name for helper in found} | _IMPORTED
    return [helper for helper in found if helper.reads <= known]


def _functions(lines: list[str], text: str) -> dict[str, tuple[ast.FunctionDef, int]]:
    """Layout functions at the top of a file by their text, with the line where each begins, counted from 0."""
    functions = {}
    for node in ast.parse(text.removeprefix("\ufeff")).body:
        if isinstance(node, ast.FunctionDef) and [ast.unparse(each) for each in node.decorator_list] == [_DECORATOR]:
            start = node.decorator_list[0].lineno - 1
            functions["".join(lines[start : node.end_lineno]).replace("\r\n", "\n")] = (node, start)
    return functions


def _read_names(function: ast.FunctionDef) -> set[str]:
    """Names that a function reads and does not make itself; builtins apart."""
    names = [node for node in nodes_in(function) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in nodes_in(function) if isinstance(node, ast.arg)} | {function.name}
    return {node.id for node in names} - made - set(dir(builtins))


def _closed(shared: dict[str, str], reads: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Of functions to be shared those that call none which is not."""
    while True:
        kept = {name: text for name, text in shared.items() if reads[name] <= shared.keys() | _IMPORTED}
        if len(kept) == len(shared):
            return kept
        shared = kept


def _without(port: str, moved: list[_Helper], module: str) -> str:
    """A port that imports functions instead of having them."""
    lines = port.splitlines(keepends=True)
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    for helper in sorted(moved, key=lambda each: -each.start):
        stop = helper.end
        while stop < len(lines) and not lines[stop].strip():
            stop += 1
        del lines[helper.start : stop]
    names = ", ".join(sorted(helper.name for helper in moved))
    lines.insert(_behind_imports("".join(lines)), f"{end}from {module} import {names}{end}")
    return "".join(lines)


def _behind_imports(port: str) -> int:
    """The line after the imports of Gluon, counted from 0, which the conversion has written at the top of the file."""
    ends = [
        node.end_lineno or 0
        for node in ast.parse(port.removeprefix("\ufeff")).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triton.experimental")
    ]
    return max(ends)
