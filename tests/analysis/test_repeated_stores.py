"""Which stores of descriptors' tiles go through a tile that lasts."""

from __future__ import annotations

import ast

import pytest

from tt2gl.analysis.decisions import Decisions, Spot
from tt2gl.analysis.graph import Site
from tt2gl.analysis.repeated_stores import mark_repeated
from tt2gl.analysis.statics import position_of
from tt2gl.plan import ENTRY
from tt2gl.words import STORE_AGAIN


def kinds(body: str, converted: str = "") -> list[str]:
    """The kinds of the stores in a function, in their order, once marked; `converted`: a call with another layout."""
    tree = ast.parse("def kernel(c, d, n):\n" + body)
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "store" in ast.unparse(node.func)]
    stores.sort(key=position_of)
    spots = [Spot(Site(("file.py", 1), position_of(store), ENTRY, ()), None) for store in stores]
    made = Decisions(tiles=dict.fromkeys(spots, "store"))
    crossing = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node) == converted]
    mark_repeated([made], {"file.py": tree}, [("file.py", *position_of(node)[:2]) for node in crossing])
    return [made.tiles[spot] for spot in spots]


@pytest.mark.parametrize(
    "body",
    [
        " c.store([0], x)",
        " for i in tl.static_range(4):\n  c.store([i], x)",
        " while n:\n  c.store([n], x)",
        " for i in range(n):\n  while n:\n   c.store([n], x)",
        " for i in range(n):\n  c.store([i], x)\n  d.store([i], x)",
        " for i in range(n):\n  c = made(i)\n  c.store([i], x)",
        " for i in range(n):\n  made(i).store([i], x)",
    ],
    ids=["no loop", "unrolled", "no counting", "no counting inside", "two descriptors", "new in a turn", "no name"],
)
def test_others_wait_for_themselves(body: str) -> None:
    assert set(kinds(body)) == {"store"}


def test_tiles_do_not_lie_beside_what_is_converted() -> None:
    body = " for i in range(n):\n  x, _ = tl.split(y)\n  c.store([i], x)"
    assert kinds(body) == [STORE_AGAIN]
    assert kinds(body, "tl.split(y)") == ["store"]


def test_those_of_a_loop_wait_for_each_other() -> None:
    body = (
        " for i in tl.range(0, n, 2):\n"
        "  if n:\n"
        "   c.store([i], x)\n"
        "  for j in tl.static_range(2):\n"
        "   tl.store_tensor_descriptor(c, [j], x)\n"
        "  for j in range(n):\n"
        "   d.store([j], x)\n"
        " c.store([n], x)"
    )
    assert kinds(body) == [STORE_AGAIN, STORE_AGAIN, STORE_AGAIN, "store"]
