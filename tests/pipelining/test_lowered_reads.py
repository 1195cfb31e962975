"""Tiles that branches change are read above what takes them: first the reads that stay where they are."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.lowered_reads import with_lowered_reads

pytestmark = pytest.mark.once

READ = "v = v_buf.index(slot).load(v_layout)\n"
CAST = "if FP8:\n    v = v.to(gl.float16)\n"
BRANCH = "if WIDE:\n    u = v_buf.index(slot)\n    v = v_buf.index(slot).load(v_layout)\n"
PRODUCT = "acc = mma_v2(p_smem.load(p_layout), v, acc)\n"


def written(body: str) -> str:
    """The body of a kernel's loop with its reads lowered."""
    head = "def kernel(n):\n    for k in range(n):\n"
    made = with_lowered_reads(head + textwrap.indent(body, " " * 8), {"kernel"})
    assert made.startswith(head)
    return textwrap.dedent(made.removeprefix(head))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(READ + CAST + PRODUCT, id="nothing between"),
        pytest.param(READ + CAST + "p = f(q)\nacc = mma_v2(p, v, acc)\n", id="beside an operand in registers"),
        pytest.param(
            "p = q.load(x)\n" + READ + CAST + "s = f(q)\nacc = mma_v2(p, v, acc)\n", id="beside one read before"
        ),
        pytest.param(READ + CAST + "p = f(q)\nacc = mma_v2(v, s.load(x), acc)\n", id="the first operand"),
        pytest.param(READ + CAST + "p = f(q)\nacc = warpgroup_mma(s.load(x), v, acc)\n", id="another product"),
        pytest.param(READ + CAST + "slot = f(q)\n" + PRODUCT, id="of another slot by then"),
        pytest.param(READ + CAST + "v_buf.index(slot).store(f(q))\n" + PRODUCT, id="of another tile by then"),
        pytest.param(READ + CAST + "free(slot)\np = f(q)\n" + PRODUCT, id="the slot is given back"),
        pytest.param(READ + "FP8 = f(v)\n" + CAST + "p = f(q)\n" + PRODUCT, id="its type is asked for first"),
        pytest.param(
            "u = f(q)\n" + READ + "if FP8:\n    u, v = g(u, v)\np = f(q)\n" + PRODUCT, id="with what is no tile"
        ),
        pytest.param(
            READ + "if FP8:\n    v = v.to(gl.float16)\n    x = f(v)\np = f(q)\n" + PRODUCT, id="read in the branch"
        ),
        pytest.param(READ + "p = f(q)\n" + PRODUCT + PRODUCT.replace("acc", "other"), id="taken by two products"),
        pytest.param("v = f(q)\n" + CAST + "p = f(q)\n" + PRODUCT, id="no tile"),
        pytest.param(BRANCH + "acc = mma_v2(p_smem.load(p_layout), v, acc)\n", id="a branch's, nothing between"),
        pytest.param(BRANCH + "p = f(v)\n" + PRODUCT, id="a branch's, taken twice"),
        pytest.param(BRANCH + "p = f(q)\nacc = mma_v2(p, v, acc)\n", id="a branch's, beside an operand in registers"),
        pytest.param(BRANCH + "slot = f(q)\n" + PRODUCT, id="a branch's, of another slot by then"),
        pytest.param(BRANCH + "copy(v_buf.index(slot), q)\n" + PRODUCT, id="a branch's, of another tile by then"),
        pytest.param(
            "if WIDE:\n    v = v_buf.index(slot).load(v_layout)\np = f(q)\n" + PRODUCT, id="all that a branch does"
        ),
    ],
)
def test_a_read_stays(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            READ + CAST + "p = f(q)\n" + PRODUCT, "p = f(q)\n" + READ + CAST + PRODUCT, id="changed in a branch"
        ),
        pytest.param(
            "if SHARED:\n    v = k.trans(1, 0)\nelse:\n    v = v_buf.index(slot).load(v_layout)\n\n"
            "p = f(q)\np, v = g(p, v)\np_smem = put(p)\n" + PRODUCT,
            "\np = f(q)\nif SHARED:\n    v = k.trans(1, 0)\nelse:\n    v = v_buf.index(slot).load(v_layout)\n"
            "p, v = g(p, v)\np_smem = put(p)\n" + PRODUCT,
            id="read in a branch, changed by a helper",
        ),
        pytest.param(
            READ + "# the other half\nw = w_buf.index(slot).load(v_layout)\nif FP8:\n    k = f(k)\n    # both\n"
            "    v, w = v.to(gl.float16), w.to(gl.float16)\np = f(k)\n" + PRODUCT,
            "if FP8:\n    k = f(k)\np = f(k)\n" + READ + "# the other half\nw = w_buf.index(slot).load(v_layout)\n"
            "if FP8:\n    # both\n    v, w = v.to(gl.float16), w.to(gl.float16)\n" + PRODUCT,
            id="two that change together, beside another",
        ),
    ],
)
def test_a_read_is_lowered(before: str, after: str) -> None:
    assert written(before) == after


def test_a_tile_that_a_branch_alone_reads_is_read_in_the_product() -> None:
    product = PRODUCT.replace(", v,", ", v_buf.index(slot).load(v_layout),")
    kept = "if WIDE:\n    u = v_buf.index(slot)\n"
    assert written(BRANCH + "p = f(u)\n" + PRODUCT) == f"{kept}p = f(u)\n{product}"
