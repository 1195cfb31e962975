"""On AMD a row that waits for iterations ahead is loaded for its own above their tiles: first what must stay below."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.own_loads import with_own_loads_first

HEAD = """from triton.experimental import gluon

@gluon.jit
def read(p):
    return gl.load(p)

def kernel(g_ptr, k_ptr, v_ptr, x, n, rows, BLOCK: gl.constexpr):
"""
TILE = "k = _tt2gl_ring_k(k_ptr + i * BLOCK, mask=i < n).load(layout)"
ROW = "g = gl.amd.cdna3.buffer_load(g_ptr, i * BLOCK + rows)"
PRODUCT = "x = gl.amd.cdna3.mfma(k, v, x * g)"


def moved(*lines: str) -> str:
    """The lines of a loop's body after the rule."""
    head = HEAD + "    for i in range(n):\n"
    made = with_own_loads_first(head + textwrap.indent("\n".join(lines), " " * 8) + "\n", {"kernel": ["g", "last"]})
    return textwrap.dedent(made.removeprefix(head)).strip()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([ROW, PRODUCT], id="no tiles"),
        pytest.param([ROW, TILE, PRODUCT], id="above already"),
        pytest.param([TILE, ROW.replace("rows", "k"), PRODUCT], id="where a tile says"),
        pytest.param([TILE, "rows += BLOCK", ROW, PRODUCT], id="of what is changed in between"),
        pytest.param([TILE, "y = g", ROW, PRODUCT], id="the one before is read in between"),
        pytest.param([TILE, "gl.store(g_ptr, x)", ROW, PRODUCT], id="after a store"),
        pytest.param([TILE, "gl.amd.cdna3.buffer_store(x, g_ptr, rows)", ROW, PRODUCT], id="after a buffer store"),
        pytest.param([TILE, "gl.barrier_of_ours(x)", "other(x)", ROW, PRODUCT], id="after what may write"),
        pytest.param([TILE, "g = gl.convert_layout(gl.load(g_ptr), layout)", PRODUCT], id="converted as it comes"),
        pytest.param([TILE, "g = read(g_ptr)", PRODUCT], id="in a helper"),
        pytest.param([TILE, "g = _tt2gl_ring_g(g_ptr + i)", PRODUCT], id="through a ring"),
        pytest.param([TILE, "g = v_smem.load(layout)", PRODUCT], id="of shared memory"),
        pytest.param([TILE, "last = i + 1", "x = gl.amd.cdna3.mfma(k, v, x * last)"], id="a number"),
        pytest.param([TILE, ROW.replace("g =", "scale ="), PRODUCT], id="another row"),
        pytest.param([TILE, "if i > 3:", f"    {ROW}", PRODUCT], id="under a condition"),
    ],
)
def test_lines_that_stay(lines: list[str]) -> None:
    assert moved(*lines) == "\n".join(lines)


def test_a_row_is_loaded_above_the_tiles_with_what_it_needs() -> None:
    row = ROW.replace("i * BLOCK", "last")
    lines = ["gl.store(g_ptr, x)", "# a tile", TILE, "last = i * BLOCK", "other = i * 2", "# a row", row, PRODUCT]
    first = ["gl.store(g_ptr, x)", "last = i * BLOCK", "# a row", row, "# a tile", TILE, "other = i * 2", PRODUCT]
    assert moved(*lines) == "\n".join(first)
