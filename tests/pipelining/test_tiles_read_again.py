"""Tiles that a flag may have changed, read for their products behind the other operand's way; others stay."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.tiles_read_again import with_tiles_read_again

HEAD = "def kernel(x, n, scale, slot, FLAG: gl.constexpr, OTHER: gl.constexpr):\n"
TILE = "v = v_buf.index(slot).load(rhs)\n"
FLAG = "if FLAG:\n    v = (v * scale).to(q.dtype)\n"
WAY = "p_operand = p.to(v.dtype)\np_smem = gl.allocate_shared_memory(p_operand.dtype, [16, 16], shared, p_operand)\n"
PRODUCT = "acc = mma_v2(p_smem.load(lhs), v, acc)\n"


def written(body: str) -> str:
    """The text of a loop's body after the rule."""
    text = HEAD + "    for k in range(n):\n" + textwrap.indent(body, " " * 8)
    return textwrap.dedent(with_tiles_read_again(text, {"kernel"}).partition("range(n):\n")[2])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(TILE + WAY + PRODUCT, id="no flag"),
        pytest.param(TILE + FLAG.replace("FLAG", "n > 2") + WAY + PRODUCT, id="not known to the compiler"),
        pytest.param(TILE + FLAG + "else:\n    v = x\n" + WAY + PRODUCT, id="changed either way"),
        pytest.param(TILE + FLAG + FLAG.replace("FLAG", "OTHER") + WAY + PRODUCT, id="two flags"),
        pytest.param(TILE + FLAG + PRODUCT, id="no way behind it"),
        pytest.param(TILE + WAY + FLAG + PRODUCT, id="a way before it"),
        pytest.param(TILE + FLAG + "x += v\n" + WAY + PRODUCT, id="read before"),
        pytest.param(TILE + FLAG + WAY + PRODUCT + "x += v\n", id="read after"),
        pytest.param(TILE + FLAG + WAY + "slot = 1 - slot\n" + PRODUCT, id="another slot"),
        pytest.param(TILE + FLAG + WAY + "async_load(v_buf.index(slot), x)\n" + PRODUCT, id="another tile"),
        pytest.param("v = x\n" + FLAG + WAY + PRODUCT, id="no tile"),
        pytest.param(TILE + FLAG + WAY + "acc = mma_v2(p, v, acc)\n", id="the other in registers"),
    ],
)
def test_nothing_changes(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize("after", ["", "v = x\nx += v\n", "x = x.to(v.dtype)\n"])
def test_a_tile_is_read_again_for_its_product(after: str) -> None:
    again = PRODUCT.replace(", v,", ", v if FLAG else v_buf.index(slot).load(rhs),")
    assert written(TILE + FLAG + WAY + PRODUCT + after) == TILE + FLAG + WAY + again + after
