"""Assembly as LLVM prints it: which loop a line stands in, and which line of source it was made of.

LLVM says both in comments, in PTX (`//`) and in AMD's assembly (`;`) alike: a block of a loop names the loop's header,
a header its parents, and after `.loc` stands the place with its callers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.results import Place

# The start of a block, with a label or, where nobody jumps to it, with a comment alone.
_BLOCK = re.compile(r"^(?:\$L__|\.L)?(BB\d+_\d+):|^(?://|;) %bb\.\d+:")
_PARENT = re.compile(r"Parent Loop (BB\d+_\d+) ")
_INSIDE = re.compile(r"in Loop: Header=(BB\d+_\d+) ")
_LOCATED = re.compile(r"([^\s@\[\]:/]+)\.py:(\d+):(\d+)")

Exact = tuple[str, int, int]
"""A place with its column: the author's file, line, column."""


@dataclass(frozen=True)
class AssemblyLine:
    """One line, without its comment: `loop` is the header of the innermost loop around it, empty outside of loops."""

    text: str
    loop: str
    place: Place | None


@dataclass(frozen=True)
class Assembly:
    """All lines, and of each loop those around it."""

    lines: Sequence[AssemblyLine]
    parents: Mapping[str, frozenset[str]]

    def a_step(self, found: Mapping[str, Counter[str]], loads: Mapping[str, int]) -> Counter[str]:
        """What is counted by loop, summed over the loops that are a step (`steps`) where something was counted."""
        loops = self.steps({loop: counted for loop, counted in found.items() if counted}, loads)
        return sum((found[loop] for loop in found if loop in loops), Counter())

    def steps(self, work: Mapping[str, object], loads: Mapping[str, int]) -> frozenset[str]:
        """Those of the loops that do some work that hold no other: what each turn of them has is a step.

        What stands before and after a loop is left out, and so is what an outer loop does between its inner ones:
        prologues and epilogues of pipelines. So is a loop that loads nothing beside one that does, and one that does
        the work of a loop before it with fewer loads: it is the end of that one's pipeline.
        """
        loops = frozenset(filter(None, work))
        inside = loops.difference(*(self.parents.get(loop, frozenset()) for loop in loops))
        inner = [loop for loop in work if loop in inside]
        return frozenset(
            loop
            for index, loop in enumerate(inner)
            if not any(
                loads.get(other, 0) > loads.get(loop, 0)
                and (not loads.get(loop, 0) or before < index and work[other] == work[loop])
                for before, other in enumerate(inner)
                if self.parents.get(other) == self.parents.get(loop)
            )
        )


def read_assembly(text: str, comment: str, files: Mapping[str, str]) -> Assembly:
    """The lines of a module. `comment` opens comments; `files` has the sources that places may be in, by stem."""
    lines: list[AssemblyLine] = []
    parents: dict[str, frozenset[str]] = {}
    loop = ""
    all_lines = text.splitlines()
    for index, (line, place) in enumerate(zip(all_lines, exact_places(all_lines, comment, files), strict=True)):
        block = _BLOCK.match(line)
        if block is not None:
            said = "\n".join(_comments(all_lines, index, comment))
            inside = _INSIDE.search(said)
            if "Loop Header: Depth" in said and block[1]:
                loop = block[1]
                parents[loop] = frozenset(_PARENT.findall(said))
            else:
                loop = inside[1] if inside else ""
        code = line.partition(comment)[0]
        if code.strip() and not code.lstrip().startswith(".loc"):
            lines.append(AssemblyLine(code, loop, Place(*place[:2]) if place is not None else None))
    return Assembly(lines, parents)


def _comments(lines: Sequence[str], index: int, comment: str) -> Iterator[str]:
    """The comment of a block's first line, and the lines below it that are comments alone."""
    yield lines[index].partition(comment)[2]
    for line in lines[index + 1 :]:
        if not line.lstrip().startswith(comment) or _BLOCK.match(line):
            return
        yield line


def exact_places(lines: Iterable[str], comment: str, files: Mapping[str, str]) -> Iterator[Exact | None]:
    """Of each line of assembly the place that the `.loc` above it names, or it itself; None before the first."""
    place: Exact | None = None
    inline = False
    for line in lines:
        # Later LLVMs count the lines of inline assembly on, as if they were the author's.
        inline = ("begin inline asm" in line or "#ASMSTART" in line) or (
            inline and "end inline asm" not in line and "#ASMEND" not in line
        )
        if line.lstrip().startswith(".loc") and not inline:
            # Without a line (`:0:0`) code belongs to no statement, and so to the one before it.
            place = innermost(_LOCATED.findall(line.partition(comment)[2]), files) or place
        yield place


def innermost(chain: Iterable[tuple[str, str, str]], files: Mapping[str, str]) -> Exact | None:
    """The first of a chain of calls (file's stem, line, column) that is in one of `files`: Triton's own are not."""
    known = ((files[stem], int(line), int(column)) for stem, line, column in chain if stem in files)
    return next((place for place in known if place[1]), None)
