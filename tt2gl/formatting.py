"""The width of converted files: what conversion made too long is broken as `black` breaks it; no other line moves."""

from __future__ import annotations

import ast
import textwrap

from tt2gl.trees import python_tree

WIDTH = 120
"""Lines of converted code are kept to this length, where they can be."""

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where statements have others, or what has them."""


def fitted(text: str, author: str) -> str:
    """A converted file with its long statements on several lines; `author` is the file before, whose own lines stay."""
    # Python's parser takes no byte order mark in a string.
    mark, text = text[: len(text) - len(text.removeprefix("\ufeff"))], text.removeprefix("\ufeff")
    known, lines = set(author.splitlines()), text.splitlines(keepends=True)
    long = {
        at for at, line in enumerate(lines) if len(line.rstrip("\r\n")) > WIDTH and line.rstrip("\r\n") not in known
    }
    if not long:
        return mark + text
    for first, last, whole in sorted(_statements(python_tree(text)), reverse=True):
        if long.intersection(range(first, last)):
            lines[first:last] = [_broken("".join(lines[first:last]), whole)]
    return mark + "".join(lines)


def _statements(tree: ast.Module) -> list[tuple[int, int, bool]]:
    """First line, the line after, of each statement or of the head of a block, and whether that is all of it."""
    found = []
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        for block in _BLOCKS:
            waiting += getattr(node, block, ())
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if end >= node.lineno:
                found.append((node.lineno - 1, end, not body))
    return found


def _broken(lines: str, whole: bool) -> str:
    """A statement's lines as `black` has them in what its indentation leaves of the width."""
    # Loading it takes a while, and most files need nothing of it.
    import black
    from black.parsing import InvalidInput

    bare = textwrap.dedent(lines)
    indent = lines[: len(lines) - len(lines.lstrip(" \t"))]
    mode = black.Mode(line_length=WIDTH - len(indent), string_normalization=False, magic_trailing_comma=False)
    bare = bare if whole else f"{bare}    pass\n"
    try:
        made = black.format_str(bare, mode=mode)
        if ast.dump(ast.parse(made)) != ast.dump(ast.parse(bare)):
            return lines
    except (InvalidInput, SyntaxError):
        return lines
    return textwrap.indent(made if whole else made.removesuffix("    pass\n"), indent)
