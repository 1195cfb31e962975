"""Assignments of a name to itself leave a block, and their comments stay."""

from __future__ import annotations

import libcst as cst
import pytest

from tt2gl.rewrite.idle_statements import has_idle, without_idle

BLOCKS = [
    ("x = x\ny = x\n", "y = x\n"),
    ("# as wide\nx = x  # cast\n# next\ny = x\n", "# as wide\n# cast\n# next\ny = x\n"),
    ("y = x\n# last\nx = x\n", "y = x\n# last\n"),
    ("x = x\n", "pass\n"),
    ("x = y\nx += x\nx, y = x, y\n", "x = y\nx += x\nx, y = x, y\n"),
]


@pytest.mark.parametrize(("before", "after"), BLOCKS)
def test_what_is_left_of_a_block(before: str, after: str) -> None:
    indented = ["".join(f"    {line}\n" for line in text.splitlines()) for text in (before, after)]
    module = cst.parse_module(f"if flag:\n{indented[0]}")
    branch = module.body[0]
    assert isinstance(branch, cst.If)
    assert isinstance(branch.body, cst.IndentedBlock)
    assert has_idle(branch.body) == (before != after)
    made = branch.with_changes(body=without_idle(branch.body))
    assert module.with_changes(body=[made]).code == f"if flag:\n{indented[1]}"
