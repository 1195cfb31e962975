"""What a planted fault is: a correct kernel of `kernels/` with one line changed, and what must be found.

The categories are those of the programming model: what the source asks for, not what a compiler or a GPU makes of it.
Triton puts barriers between generic accesses of one partition, and some fences, by itself; Gluon's rules want what
goes through the async proxy fenced and waited for in the source all the same.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from tests.simulate.kernels import suite

# Kinds of findings (`tt2gl.simulate.findings.Kind`), or a result that is not the correct kernel's.
RESULT = "result"
Found = frozenset[str]

Category = Literal[
    "missing wait",
    "wait count off by one",
    "slot overwritten while read",
    "wrong slot",
    "missing arrive",
    "wrong arrival count",
    "wrong phase",
    "read before write",
    "missing fence",
    "load out of bounds",
    "store out of bounds",
    "wrong other value",
    "wrong layout of an index",
    "wrong index",
    "off by one in the drain",
    "racing partitions",
    "missing expect",
    "wrong byte count",
    "missing commit",
    "barrier not initialised",
    "use after dealloc",
    "missing store wait",
    "read before the MMA is done",
    "grid off by one",
]


@dataclass(frozen=True)
class Fault:
    """`line` of `function` in kernels/`file`.py becomes `fault`; any one of `finds` has to be found.

    `function` is the kernel's own where it is left out, `nth` counts equal lines of it from 1, and `launch` the
    kernel's launches from 0. Lines are without their indentation.
    """

    name: str
    file: str
    kernel: str
    line: str
    fault: str
    category: Category
    finds: Found
    function: str = ""
    nth: int = 1
    launch: int = 0

    @property
    def case(self) -> suite.Case:
        """The launch that shows the fault."""
        found = [case for case in suite.cases(self.file) if case.kernel == self.kernel]
        return found[self.launch]

    def number(self, text: str) -> int:
        """The number of the line to change, from 1. Raises ValueError where there is no such line."""
        name = self.function or self.kernel
        node = next(each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef) and each.name == name)
        lines = text.splitlines()
        numbers = [
            number
            for number in range(node.lineno, (node.end_lineno or 0) + 1)
            if lines[number - 1].strip() == self.line
        ]
        if len(numbers) < self.nth:
            raise ValueError(f"{self.name}: {name} has {len(numbers)} lines {self.line!r}")
        return numbers[self.nth - 1]

    def text(self, correct: str) -> str:
        """The file with the fault in it."""
        lines = correct.splitlines(keepends=True)
        index = self.number(correct) - 1
        lines[index] = lines[index].replace(self.line, self.fault)
        return "".join(lines)


def found(*kinds: str) -> Found:
    """Any of these kinds of findings shows the fault."""
    return frozenset(kinds)


# What most faults come to: a result used too soon, a wait that nothing ends, an access outside, other numbers.
EARLY = found("missing-wait", "race")
STUCK = found("deadlock")
OUTSIDE = found("out-of-bounds")
WRONG = found(RESULT)
