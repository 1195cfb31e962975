"""Loads beside products that are waited for: first those that stay above, then those that are done meanwhile."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.meanwhile import with_loads_meanwhile

LOAD = "scale = gl.load(scale_ptrs + k)\n"
PRODUCT = "tcgen05_mma(a, b, acc_tmem, use_acc=False)\n"
COMMIT = "tcgen05_commit(mma_bar)\n"
WAIT = "mbarrier.wait(mma_bar, mma_phase)\n"


def moved(text: str) -> str:
    module = cst.parse_module(text)
    return module.with_changes(body=with_loads_meanwhile(module.body)).code


def loop(*lines: str) -> str:
    return "for k in range(0, n):\n" + textwrap.indent("".join(lines), "    ")


@pytest.mark.parametrize(
    "text",
    [
        # No loop, so that nothing is repeated.
        LOAD + PRODUCT + COMMIT + WAIT,
        # The product runs on.
        loop(LOAD, PRODUCT, COMMIT, "mma_phase ^= 1\n"),
        # The product needs what is loaded, or what stands between does.
        loop("a = gl.load(a_ptrs)\n", PRODUCT, COMMIT, WAIT),
        loop(LOAD, "use(scale)\n", PRODUCT, COMMIT, WAIT),
        # It is no load from global memory.
        loop("scale = scale_buf.index(k).load(layout)\n", PRODUCT, COMMIT, WAIT),
        loop("scale = use(k)\n", PRODUCT, COMMIT, WAIT),
    ],
)
def test_loads_that_stay(text: str) -> None:
    assert moved(text) == text


def test_what_is_loaded_right_above_a_product_is_loaded_while_it_runs() -> None:
    rows = "rows = gl.load(rows_ptrs)\n"
    assert moved(loop(rows, "# scales\n" + LOAD, PRODUCT, COMMIT, WAIT)) == loop(
        PRODUCT, COMMIT, rows, "# scales\n" + LOAD, WAIT
    )


def test_a_load_that_another_needs_stays_in_its_order() -> None:
    first = "row = gl.load(row_ptrs)\n"
    second = "scale = gl.load(scale_ptrs + row)\n"
    made = moved(loop(first, second, PRODUCT, COMMIT, WAIT))
    assert made == loop(first, PRODUCT, COMMIT, second, WAIT)


def test_loops_in_branches_and_loops() -> None:
    inner, other = loop(LOAD, PRODUCT, COMMIT, WAIT), loop(PRODUCT, COMMIT, LOAD, WAIT)
    for head in ("if n > 0:\n", "if n:\n    pass\nelse:\n", "while n:\n"):
        assert moved(head + textwrap.indent(inner, "    ")) == head + textwrap.indent(other, "    ")
