"""A cursor over MLIR text, and the patterns of its smallest parts.

There is no list of tokens: the parsers match patterns at the cursor, as most of the text is taken in whole parts (the
head of an operation, its dictionary, its types) that have been read before and are looked up by their text.
"""

from __future__ import annotations

import re

SPACE = re.compile(r"(?:\s|//[^\n]*)*+")
# What white space and comments begin with.
_BLANK = frozenset(" \n\t\r/")
STRING_TEXT = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
STRING = re.compile(STRING_TEXT)
INTEGER = re.compile(r"-?\d++(?![.\w])")
# A bare name: keywords, keys of dictionaries, what follows `#`, `!`, `@`.
NAME_TEXT = r"[A-Za-z_$][\w$.]*+(?:-(?!>)[\w$.]++)*+"
NAME = re.compile(NAME_TEXT)
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t"}


class ParseError(Exception):
    """MLIR text that cannot be read.

    `line` and `column` count from 1, in the text given; `source` is that line of the text.
    """

    def __init__(self, message: str, line: int, column: int, source: str) -> None:
        super().__init__(f"{message} (line {line}, column {column}): {source.strip()}")
        self.message, self.line, self.column, self.source = message, line, column, source

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, int, int, str]]:
        # As it comes back from a child process.
        return type(self), (self.message, self.line, self.column, self.source)


class UndefinedError(ParseError):
    """A name that the text uses and never defines."""


class Cursor:
    """A text and the place reached in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def error(self, message: str, position: int | None = None, kind: type[ParseError] = ParseError) -> ParseError:
        """The error to raise at `position`, by default where the cursor is."""
        at = self.position if position is None else position
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        source = self.text[start : len(self.text) if end < 0 else end]
        return kind(message, self.text.count("\n", 0, at) + 1, at - start + 1, source)

    def skip(self) -> None:
        """Go past white space and comments."""
        if self.text[self.position : self.position + 1] in _BLANK:
            match = SPACE.match(self.text, self.position)
            assert match is not None
            self.position = match.end()

    def at(self, literal: str) -> bool:
        """Whether `literal` comes next, white space aside."""
        if self.text.startswith(literal, self.position):
            return True
        self.skip()
        return self.text.startswith(literal, self.position)

    def take(self, literal: str) -> bool:
        """Go past `literal` if it comes next."""
        if not self.text.startswith(literal, self.position):
            self.skip()
            if not self.text.startswith(literal, self.position):
                return False
        self.position += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Go past `literal`. Raises `ParseError` where something else comes."""
        start = self.position
        if not self.take(literal):
            # Where the rest of a line is missing, that line is at fault, not the next.
            wrong = start if "\n" in self.text[start : self.position] else self.position
            raise self.error(f"expected `{literal}`", wrong)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past what `pattern` matches here, if it does."""
        self.skip()
        found = pattern.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def name(self, what: str = "a name") -> str:
        """A bare name; `what` says in the error what it would have been."""
        found = self.match(NAME)
        if found is None:
            raise self.error(f"expected {what}")
        return found[0]

    def integer(self) -> int:
        """A decimal integer."""
        found = self.match(INTEGER)
        if found is None:
            raise self.error("expected an integer")
        return int(found[0])

    def string(self) -> str:
        """A quoted string, without its quotes and escapes."""
        found = self.match(STRING)
        if found is None:
            raise self.error("expected a string")
        return unescape(found[0])


def unescape(quoted: str) -> str:
    r"""What a quoted string says: `"a\0Ab"` has a line break."""
    inner = quoted[1:-1]
    if "\\" not in inner:
        return inner

    def plain(match: re.Match[bytes]) -> bytes:
        return bytes.fromhex(match[1].decode()) if match[1] else _LETTERS.get(match[2], match[2])

    return _ESCAPE.sub(plain, inner.encode()).decode("utf-8", "surrogateescape")
