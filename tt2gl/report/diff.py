"""Unified diffs that `patch` reads."""

from __future__ import annotations

import difflib


def unified_diff(before: str, after: str, name_before: str, name_after: str) -> str:
    """The diff of two texts, empty where they are equal; line ends are kept, a missing last one is told."""
    lines: list[str] = []
    for line in difflib.unified_diff(_lines(before), _lines(after), name_before, name_after):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """Lines as `patch` counts them: str.splitlines would break at form feeds and Unicode separators too."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
