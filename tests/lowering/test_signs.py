"""Which offsets are never negative, as far as the text tells."""

from __future__ import annotations

import libcst as cst
import pytest

from tt2gl.lowering.signs import Signs

FUNCTION = """
def kernel(n, T, BLOCK):
    i, j = tl.program_id(0), tl.load(n)
    T = T + 1
    k = i * BLOCK
    k += 16
    down = k
    down -= 1
    taken, (a, b) = i, helper(i)
    for t in range(4):
        pass
    for back in range(n - 1, -1, -1):
        pass
    for low in range(n, 8):
        pass
    for far in range(0, n, j):
        pass
    once = i if n else k
    twice = once
    twice = n
"""


@pytest.fixture(scope="module")
def signs() -> Signs:
    return Signs(cst.ensure_type(cst.parse_module(FUNCTION).body[0], cst.FunctionDef), ["BLOCK"])


@pytest.mark.parametrize(
    "text",
    ["-1", "n", "T", "j", "down", "i - 1", "i - k", "a", "low", "far", "twice", "i * n", "i // n", "1.5",
     "f(i)", "~i", "-i", "i % n", "tl.minimum(i, n)", "tl.cast(i, tl.int8)",
     "tl.load(i)", "(i).to(tl.int8)", "n if n else i", "unknown"],
)  # fmt: skip
def test_may_be_negative(signs: Signs, text: str) -> None:
    assert not signs.nonnegative(cst.parse_expression(text))


@pytest.mark.parametrize(
    "text",
    ["0", "BLOCK", "i", "k", "t", "back", "once", "taken", "i * BLOCK + 3", "i // 2", "i % BLOCK", "n & 15", "i | k",
     "i >> n", "tl.cdiv(i, BLOCK)", "tl.maximum(n, 0)", "max(n, i)", "min(i, k)", "(i * BLOCK).to(tl.int64)",
     "tl.multiple_of(k, 8)", "tl.cast(i, tl.int32)", "i if n else k"],
)  # fmt: skip
def test_is_never_negative(signs: Signs, text: str) -> None:
    assert signs.nonnegative(cst.parse_expression(text))
