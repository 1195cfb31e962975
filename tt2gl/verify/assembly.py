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
_LOCATED = re.compile(r"([^\s@\[\]:]+)\.py:(\d+):\d+")


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

    def a_step(self, found: Mapping[str, Counter[str]]) -> Counter[str]:
        """What is counted by loop, summed over the loops that hold no other loop in which something was counted.

        What stands before and after a loop is left out, and so is what an outer loop does between its inner ones:
        prologues and epilogues of pipelines.
        """
        loops = [loop for loop, counted in found.items() if loop and counted]
        outer = frozenset().union(*(self.parents.get(loop, frozenset()) for loop in loops))
        return sum((found[loop] for loop in loops if loop not in outer), Counter())


def read_assembly(text: str, comment: str, files: Mapping[str, str]) -> Assembly:
    """The lines of a module. `comment` opens comments; `files` has the sources that places may be in, by stem."""
    lines: list[AssemblyLine] = []
    parents: dict[str, frozenset[str]] = {}
    loop, place = "", None
    all_lines = text.splitlines()
    for index, line in enumerate(all_lines):
        block = _BLOCK.match(line)
        if block is not None:
            said = "\n".join(_comments(all_lines, index, comment))
            inside = _INSIDE.search(said)
            if "Loop Header: Depth" in said and block[1]:
                loop = block[1]
                parents[loop] = frozenset(_PARENT.findall(said))
            else:
                loop = inside[1] if inside else ""
        code, _, remark = line.partition(comment)
        if code.lstrip().startswith(".loc"):
            # Without a line (`:0:0`) code belongs to no statement, and so to the one before it.
            place = place_among(_LOCATED.findall(remark), files) or place
        elif code.strip():
            lines.append(AssemblyLine(code, loop, place))
    return Assembly(lines, parents)


def _comments(lines: Sequence[str], index: int, comment: str) -> Iterator[str]:
    """The comment of a block's first line, and the lines below it that are comments alone."""
    yield lines[index].partition(comment)[2]
    for line in lines[index + 1 :]:
        if not line.lstrip().startswith(comment) or _BLOCK.match(line):
            return
        yield line


def place_among(chain: Iterable[tuple[str, str]], files: Mapping[str, str]) -> Place | None:
    """The innermost of a chain of calls (file's stem and line) that is in one of `files`: Triton's own are not."""
    return next((Place(files[stem], int(line)) for stem, line in chain if stem in files and int(line)), None)
