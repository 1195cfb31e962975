"""Rows of as many elements as threads that are repeated in a small tile: each warp loads what it has of that.

    acc = w0[:, None] * x0[None, :]                       # 4 by 128 elements, of 128 threads each of which has 4
    acc += w1[:, None] * x1[None, :]
    tl.store(out_ptrs, acc)

Triton's compiler loads such rows by one element a thread, computes in a layout whose slices those are, and converts the
sum to store it. In the store's layout each row would be converted, through shared memory; loaded as it is repeated
there, by each warp, none is. One row alone is converted, which is as much as its tile is in Triton.
"""

from __future__ import annotations

from collections import defaultdict

from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.readers import Readers

_EACH = 4
"""So many elements of the tile a thread may have, and no more of a row then."""


def repeated_rows(graph: Graph, threads: int) -> set[int]:
    """Such loads, by identity: where several are made, or one on each turn of a loop."""
    readers = Readers(graph)
    found: dict[tuple[int, ...], list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.kind == "load" and not node.staged and node.shape == (threads,):
            tiles = _tiles(node, readers, threads)
            if len(tiles) == 1:
                found[tiles.pop()].append(node)
    return {id(node) for rows in found.values() if len(rows) > 1 or rows[0].depth for node in rows}


def _tiles(row: Node, readers: Readers, threads: int) -> set[tuple[int, ...]]:
    """The extents of the small tiles that a row is repeated in; none where anything else becomes of it."""
    tiles: set[tuple[int, ...]] = set()

    def is_repeated(_: Node, reader: Node) -> bool:
        if reader.kind != "expand":
            return False
        made = readers.of(reader)
        tiles.update(each.shape for each in made)
        return bool(made) and all(
            each.kind == "elementwise" and row.elements < each.elements <= _EACH * threads for each in made
        )

    return tiles if readers.lead_to(row, is_repeated) else set()
