"""A tile that one arm of the compilation reads from its slot is read in the products that take it."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.chosen_reads import with_chosen_reads

HEAD = """\
def kernel(n, q, k, p, acc, v_buf, slot, SHARED: gl.constexpr, WIDE: gl.constexpr):
    for i in range(n):
"""
ARMS = "if SHARED:\n    v = tl.trans(k)\nelse:\n    v = v_buf.index(slot).load(rhs)\n"
SLOT = ARMS.replace(".load(rhs)", "")
TYPE = "p = q.to(v.dtype)\n"
PRODUCT = "acc = mma_v2(p_smem.load(lhs), v, acc)\n"
CHOSEN = "acc = mma_v2(p_smem.load(lhs), v if SHARED else v.load(rhs), acc)\n"


def _written(body: str) -> str:
    made = with_chosen_reads(HEAD + textwrap.indent(body, " " * 8), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


def test_the_product_reads_it() -> None:
    assert _written(ARMS + TYPE + PRODUCT) == SLOT + TYPE + CHOSEN


def test_the_product_reads_its_first_operand_before_it() -> None:
    assert _written(ARMS + PRODUCT) == SLOT + CHOSEN


def test_products_in_branches_read_it_each() -> None:
    """Cast there, maybe; and where the arms are the other way round, so is the choice."""
    arms = "if SHARED:\n    v = v_buf.index(slot).load(rhs)\nelse:\n    v = f(k)\n"
    wide = "if WIDE:\n    acc = mma_v2(p_smem.load(lhs), v.to(gl.float32), acc)\nelse:\n    "
    assert _written(arms + TYPE + wide + PRODUCT) == (
        arms.replace(".load(rhs)", "")
        + TYPE
        + wide.replace("v.to", "(v.load(rhs) if SHARED else v).to")
        + PRODUCT.replace(", v,", ", v.load(rhs) if SHARED else v,")
    )


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(ARMS + TYPE + "acc = mma_v2(p, v, acc)\n", id="beside an operand in registers"),
        pytest.param(ARMS + TYPE + "acc = mma_v2(v, p_smem.load(lhs), acc)\n", id="a first operand"),
        pytest.param(ARMS + TYPE + PRODUCT + "acc += v\n", id="read by others"),
        pytest.param(ARMS + TYPE + "slot = f(q)\n" + PRODUCT, id="of another slot by then"),
        pytest.param(ARMS + TYPE + "v_buf.index(slot).store(p)\n" + PRODUCT, id="of another tile by then"),
        pytest.param(ARMS + TYPE + "free(slot)\n" + PRODUCT, id="the slot is given back"),
        pytest.param(ARMS.replace("SHARED", "n > i") + TYPE + PRODUCT, id="a branch of the kernel's run"),
        pytest.param(ARMS + "SHARED = f(q)\n" + TYPE + PRODUCT, id="a test that changes"),
        pytest.param("v = f(k)\nif SHARED:\n    v = v_buf.index(slot).load(rhs)\n" + TYPE + PRODUCT, id="one arm"),
        pytest.param("acc += v\n" + ARMS + TYPE + PRODUCT, id="carried to the next turn"),
    ],
)
def test_others_stay(body: str) -> None:
    assert _written(body) == body
