"""Rule `hoist`, its edits: statements that a loop no longer makes stand before it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.plan import Hoist, Position
from tt2gl.rewrite.hoists import before_loop

Rewritten = Callable[..., str]
Place = Callable[..., Position]

HEADER = "import triton\nimport triton.language as tl\n\n\n"

TEXT = """@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    for i in range(n):
        f(tl.arange(0, BLOCK))
    for j in range(n):
        g(j)
"""


def test_a_loop_without_hoists_is_left_alone(rewritten: Rewritten) -> None:
    made = rewritten(TEXT, plan={"hoists": {(7, 4): (Hoist("cols_range", "gl.arange(0, BLOCK, layout=layout)"),)}})
    assert made.endswith("    for j in range(n):\n        g(j)\n")


@pytest.mark.parametrize("loop", ["for i in range(n):\n    pass\n", "while n > 0:\n    pass\n"])
def test_statements_stand_before_the_loop_in_their_order(loop: str) -> None:
    node = cst.parse_statement(loop)
    steps = [Hoist("a", "f(0)"), Hoist("b", "f(1)")]
    made = (
        before_loop(node, steps) if isinstance(node, cst.For) else before_loop(cst.ensure_type(node, cst.While), steps)
    )
    assert cst.Module([]).with_changes(body=list(made)).code == f"a = f(0)\nb = f(1)\n{loop}"


def test_the_loop_keeps_its_comment_and_the_blank_line_goes_above_all() -> None:
    module = cst.parse_module("x = 1\n\n# over all rows\nfor i in x:\n    pass\n")
    loop = module.body[1]
    assert isinstance(loop, cst.For)
    body = [module.body[0], *before_loop(loop, [Hoist("a", "f(0)")])]
    expected = "x = 1\n\na = f(0)\n# over all rows\nfor i in x:\n    pass\n"
    assert module.with_changes(body=body).code == expected


def test_a_range_is_replaced_by_the_name_of_the_hoisted_one(rewritten: Rewritten) -> None:
    made = rewritten(
        TEXT,
        plan={"hoists": {(7, 4): (Hoist("cols_range", "gl.arange(0, BLOCK, layout=layout)"),)}},
        replaced={"tl.arange(0, BLOCK)": "cols_range"},
    )
    expected = """
        cols_range = gl.arange(0, BLOCK, layout=layout)
        for i in range(n):
            f(cols_range)
    """
    assert textwrap.indent(textwrap.dedent(expected).strip(), "    ") in made


MASKS = """
@triton.jit
def kernel(x_ptr, m, n):
    a = 1

    # the rows
    x = tl.load(x_ptr + m, mask=n > m[:, None])  # all of them
    # who counts
    keep = m[:, None] < n
    tl.store(x_ptr + m, x, mask=keep & (n < m[:, None]))
"""


def test_what_is_made_early_stands_above_a_statement_and_its_comments(rewritten: Rewritten, position: Place) -> None:
    load = position(HEADER + MASKS.lstrip("\n"), "x = tl.load(x_ptr + m, mask=n > m[:, None])")
    steps = (Hoist("keep", "m_o[:, None] < n"), Hoist("x_mask", "n < m_o[:, None]"))
    made = rewritten(
        MASKS, plan={"early": {load: steps}}, replaced={"m[:, None] < n": "keep", "n < m[:, None]": "x_mask"}
    )
    expected = """
        a = 1

        keep = m_o[:, None] < n
        x_mask = n < m_o[:, None]
        # the rows
        x = gl.load(x_ptr + m, mask=n > m[:, None])  # all of them
        # who counts
        gl.store(x_ptr + m, x, mask=keep & x_mask)
    """
    assert made.endswith(textwrap.indent(textwrap.dedent(expected).strip(), "    ") + "\n")
