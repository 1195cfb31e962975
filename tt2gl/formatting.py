"""The width of converted files: what conversion made too long is broken as `black` breaks it; no other line moves."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize

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
    for first, last, rest in sorted(_statements(python_tree(text)), reverse=True):
        if long.intersection(range(first, last)):
            lines[first:last] = [_broken("".join(lines[first:last]), rest)]
    return mark + "".join(lines)


def _statements(tree: ast.Module) -> list[tuple[int, int, str]]:
    """First line, the line after, of each statement, head of a block or decorator, and what makes a statement of it."""
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
                found.append((node.lineno - 1, end, "    pass\n" if body else ""))
        for each in getattr(node, "decorator_list", ()):
            found.append((each.lineno - 1, each.end_lineno or each.lineno, "def f(): ...\n"))
    return found


def _broken(lines: str, rest: str) -> str:
    """A statement's lines as `black` has them in what its indentation leaves of the width; `rest` makes it one."""
    # Loading it takes a while, and most files need nothing of it.
    import black
    from black.parsing import InvalidInput

    bare = textwrap.dedent(lines)
    indent = lines[: len(lines) - len(lines.lstrip(" \t"))]
    mode = black.Mode(line_length=WIDTH - len(indent), string_normalization=False, magic_trailing_comma=False)
    bare += rest
    try:
        # What the author keeps from being formatted is broken at its commas alone.
        made = _at_commas(bare, mode.line_length) if "# fmt: skip" in bare else black.format_str(bare, mode=mode)
        if ast.dump(ast.parse(made)) != ast.dump(ast.parse(bare)):
            return lines
    except (InvalidInput, SyntaxError):
        return lines
    return textwrap.indent(made.removesuffix(rest), indent)


def _at_commas(text: str, width: int) -> str:
    """A statement with its long lines broken behind commas in brackets, the new ones indented as the long one is."""
    depth, commas = 0, dict[int, list[int]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == "," and depth:
                commas.setdefault(token.end[0], []).append(token.end[1])
    made: list[str] = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        indent = line[: len(line) - len(line.lstrip())]
        start = 0
        while len(line.rstrip()) - start + (len(indent) if start else 0) > width:
            room = start + width - (len(indent) if start else 0)
            fitting = [at for at in commas.get(number, ()) if start < at <= room and line[at:].strip()]
            if not fitting:
                break
            made.append(f"{indent if start else ''}{line[start : fitting[-1]]}\n")
            start = fitting[-1] + 1
        made.append(f"{indent if start else ''}{line[start:]}")
    return "".join(made)
