"""Rule `hoist`: statements that a loop no longer makes on every turn stand before it.

for start in range(0, N, BLOCK):                                   # before
    cols = start + gl.arange(0, BLOCK, layout=layout)

cols_range = gl.arange(0, BLOCK, layout=layout)                    # after
for start in range(0, N, BLOCK):
    cols = start + cols_range
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TypeVar

import libcst as cst

from tt2gl.plan import Hoist
from tt2gl.rewrite.build import statement

Loop = TypeVar("Loop", cst.For, cst.While, cst.If)


def before_loop(loop: Loop, steps: Sequence[Hoist]) -> cst.FlattenSentinel[cst.BaseStatement]:
    """The statements, then the loop with its own comment."""
    blank = list(takewhile(lambda line: line.comment is None, loop.leading_lines))
    lines: list[cst.BaseStatement] = [statement(f"{step.name} = {step.source}") for step in steps]
    lines[0] = lines[0].with_changes(leading_lines=blank)
    return cst.FlattenSentinel([*lines, loop.with_changes(leading_lines=loop.leading_lines[len(blank) :])])


def early_line(step: Hoist) -> cst.SimpleStatementLine:
    """What is made before another statement."""
    line = statement(f"{step.name} = {step.source}")
    assert isinstance(line, cst.SimpleStatementLine)
    return line
