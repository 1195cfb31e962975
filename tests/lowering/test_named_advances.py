"""Block pointers that are moved where they are used: what gets a name, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.block_pointers import lowered
from tt2gl.lowering.named_advances import named_advances
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

MADE = "tiles = tl.make_block_ptr(x, (n, 16), (16, 1), (0, 0), (16, 16), (1, 0))\n"


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel(x, n):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    return named_advances(read_source(Path("kernel.py"), text))


def test_a_load_and_a_store_go_through_variables() -> None:
    done = lower("""\
        tiles_moved = 1
        for k in range(n):
            a = tl.load(tiles.advance([k, 0]), boundary_check=(0, 1)) + tl.load(tl.advance(others, (0, k)))
            # back again
            tl.store(pointer=tiles.advance([k, 1]), value=a)
        """)
    assert done.functions == ("kernel",)
    assert done.text.endswith("""\
    for k in range(n):
        tiles_moved_2 = tiles.advance([k, 0])
        others_moved = tl.advance(others, (0, k))
        a = tl.load(tiles_moved_2, boundary_check=(0, 1)) + tl.load(others_moved)
        # back again
        tiles_moved_3 = tiles.advance([k, 1])
        tl.store(pointer=tiles_moved_3, value=a)
""")


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("tiles = tiles.advance([1, 0])", id="by a statement"),
        pytest.param("a = tl.load(tiles.advance([1, 0])) if n > 0 else 0.0", id="in an arm"),
        pytest.param("a = tl.sum(tiles.advance([1, 0]))", id="no load"),
        pytest.param("tl.store(x, n); a = tl.load(tiles.advance([1, 0]))", id="beside another"),
    ],
)
def test_what_stays(statement: str) -> None:
    assert lower(statement + "\n").functions == ()


def test_what_is_named_is_lowered() -> None:
    named = lower(MADE + "a = tl.load(tiles.advance([16, 0]), boundary_check=(0,))\ntl.store(tiles, a)\n")
    done = lowered(read_source(Path("kernel.py"), named.text))
    assert not done.kept
    assert "make_block_ptr" not in done.text
