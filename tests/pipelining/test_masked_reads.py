"""Rings' tiles that have something where they are masked out: read as they are wanted, where the mask is known so."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.masked_reads import with_masked_reads

HEAD = "def kernel(lse_ptr, x, n, steps, BLOCK: gl.constexpr):\n"
READ = (
    'lse = gl.convert_layout(gl.where(MASK, _tt2gl_ring_lse(lse_ptr + rows, mask=MASK).load(row_layout), float("inf")),'
    " gl.SliceLayout(1, qk_layout))\n"
)
ROWS = "rows = start + gl.arange(0, BLOCK, layout=row_layout)\n"
OTHERS = "rows_qk = start + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, qk_layout))\n"


def moved(body: str, call: str = "") -> str:
    """The text of a kernel's body after the rule."""
    made = with_masked_reads(HEAD + textwrap.indent(body, "    ") + call, {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD).removesuffix(call))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(ROWS + "start += 1\n" + READ.replace("MASK", "rows < n"), id="made of what has changed"),
        pytest.param("rows = use(row_layout)\n" + READ.replace("MASK", "rows < n"), id="made by a function"),
        pytest.param(ROWS.replace("row_l", "l") + READ.replace("MASK", "rows < n"), id="a range of another layout"),
        pytest.param(
            ROWS + f"for k in range(n):\n    start += 1\n    {READ.replace('MASK', 'rows < n')}", id="changed in a loop"
        ),
        pytest.param(
            "rows = gl.convert_layout(at, row_layout)\n" + READ.replace("MASK", "rows < n"), id="converted itself"
        ),
        pytest.param(
            f"keep = use(rows)\n{ROWS}{OTHERS}" + READ.replace("MASK", "(rows < n) & keep"), id="a tensor besides"
        ),
        pytest.param(ROWS + OTHERS + READ.replace("MASK", "rows < n").replace('float("inf")', "x"), id="any value"),
    ],
)
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


@pytest.mark.parametrize("mask", ["rows < n", "(rows < n) & (rows >= first)", "keep"])
def test_a_tile_is_read_in_the_layout_that_it_is_wanted_in(mask: str) -> None:
    before = "first = n - BLOCK\nfor start in range(0, steps):\n"
    both = ROWS + OTHERS + "keep = rows < first\nkeep_qk = rows_qk < first\n"
    body = before + textwrap.indent(both + READ.replace("MASK", mask), "    ")
    wanted = mask.replace("rows", "rows_qk").replace("keep", "keep_qk")
    tile = f"_tt2gl_ring_lse(lse_ptr + rows, mask={mask}).load(gl.SliceLayout(1, qk_layout))"
    made = f'lse = gl.where({wanted}, {tile}, float("inf"))\n'
    assert moved(body) == before + textwrap.indent(both + made, "    ")


@pytest.mark.parametrize(
    "between",
    [
        "",
        OTHERS.replace("start", "2 * start"),
        OTHERS.replace("1, qk", "0, qk"),
        OTHERS + "rows_qk += 1\n",
    ],
    ids=["no other", "other rows", "another layout", "stepped"],
)
def test_what_is_known_in_no_other_layout_is_computed_there(between: str) -> None:
    before = "for start in range(0, steps):\n"
    keep = "keep = rows < n\n"
    body = before + textwrap.indent(ROWS + between + keep + READ.replace("MASK", "keep & (n > 0)"), "    ")
    made = body[: body.index("    lse = ")]
    anew = "(start + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, qk_layout)) < n) & (n > 0)"
    tile = "_tt2gl_ring_lse(lse_ptr + rows, mask=keep & (n > 0)).load(gl.SliceLayout(1, qk_layout))"
    assert moved(body) == made + f'    lse = gl.where({anew}, {tile}, float("inf"))\n'


def test_it_is_computed_under_a_branch_too() -> None:
    before = "for start in range(0, steps):\n" + textwrap.indent(ROWS, "    ") + "    if FLAG:\n"
    body = before + textwrap.indent(READ.replace("MASK", "rows < n"), "        ")
    assert "start + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, qk_layout)) < n, " in moved(body)


def test_what_a_helper_is_given_may_be_a_tensor() -> None:
    body = ROWS.replace("start", "n") + OTHERS.replace("start", "n") + READ.replace("MASK", "(rows < n) & x")
    call = "\n\nkernel(p, y, 8, 2, 64)\n"
    assert moved(body, call) == body
    assert moved(body) != body
