"""Two texts side by side in one column: what went, what came, and some lines around."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Sign = Literal["-", "+", " ", "@"]

_AROUND = 3


@dataclass(frozen=True)
class Row:
    """A line: gone, come or as it was, with its number in each text, 0 where it has none. `@`: some are left out."""

    sign: Sign
    before: int
    after: int
    text: str


@dataclass(frozen=True)
class Difference:
    """The rows, and how many lines went and came; no rows where the texts are equal."""

    rows: tuple[Row, ...]
    removed: int
    added: int

    @property
    def text(self) -> str:
        """The rows as people know them from diff."""
        return "\n".join(f"{row.sign}{row.text}" if row.sign != "@" else "@@" for row in self.rows)


def difference(before: Sequence[tuple[int, str]], after: Sequence[tuple[int, str]]) -> Difference:
    """The difference of two texts, given as lines with their numbers."""
    old, new = [text.rstrip("\r") for _, text in before], [text.rstrip("\r") for _, text in after]
    if old == new:
        return Difference((), 0, 0)
    rows = tuple(_rows(before, after, old, new))
    return Difference(rows, sum(row.sign == "-" for row in rows), sum(row.sign == "+" for row in rows))


def _rows(
    before: Sequence[tuple[int, str]], after: Sequence[tuple[int, str]], old: list[str], new: list[str]
) -> Iterator[Row]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for index, group in enumerate(matcher.get_grouped_opcodes(_AROUND)):
        if index:
            yield Row("@", 0, 0, "")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                for place in range(old_end - old_start):
                    number, text = before[old_start + place][0], old[old_start + place]
                    yield Row(" ", number, after[new_start + place][0], text)
                continue
            for place in range(old_start, old_end):
                yield Row("-", before[place][0], 0, old[place])
            for place in range(new_start, new_end):
                yield Row("+", 0, after[place][0], new[place])
