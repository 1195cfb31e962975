"""Rows too small for a thread to copy 4 bytes of, which Triton copies ahead all the same: as rows of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tt2gl.analysis.facts import CallChain
from tt2gl.analysis.graph import Node
from tt2gl.ir.attributes import DialectAttr
from tt2gl.layouts import Blocked, coalesced
from tt2gl.matrix_layouts import read_blocked

if TYPE_CHECKING:
    from tt2gl.analysis.memory import Scene

COPY_BITS = 32
"""The least that a thread can copy asynchronously: narrower tiles are loaded where they are read."""

MOST_WIDTH = 16
"""Elements of a thread in the widest access, of bytes."""


def is_narrow(scene: Scene, node: Node) -> bool:
    """Whether a thread loads less than the 4 bytes that the smallest asynchronous copy moves."""
    access = scene.facts.accesses.get(node.chain) if node.kind == "load" else None
    return access is not None and access.size_per_thread[access.order[0]] * node.bits < COPY_BITS


def copied_row(scene: Scene, chain: CallChain, shape: Sequence[int], bits: int) -> Blocked | None:
    """The layout that a row of elements of `bits` is copied in where Triton copies it as a row of a large tile.

    It has fewer elements than there are threads, which would have one each, too few for a copy. Its reader's layout is
    that of the tile, in which few threads have all of it (Triton's pass RemoveLayoutConversions).
    """
    ring, warps = scene.facts.lowered.rings.get(chain), scene.launch.options.num_warps
    copied = read_blocked(ring.copied) if ring is not None and not ring.registers and not ring.direct else None
    if copied is None or len(shape) != 2 or shape[0] != 1 or shape[1] >= scene.threads or not bits:
        return None
    row = coalesced((MOST_WIDTH * scene.threads, shape[1]), (1, 0), bits, warps, scene.lanes)
    return row if row == copied else None


def tile_around(scene: Scene, node: Node) -> tuple[CallChain, int | None] | None:
    """The tile that a small row is copied along, and which dimension of it the row lacks; None for one of extent 1.

    It has fewer elements than there are threads, and is read in the layout, or in a slice of it, of a tile that is
    copied ahead, too: there a thread has enough of it for a copy (Triton's pass RemoveLayoutConversions).
    """
    ring = scene.facts.lowered.rings.get(node.chain)
    if ring is None or ring.registers or ring.direct or node.elements >= scene.threads:
        return None
    parent, dim = read_blocked(ring.copied), None
    if isinstance(ring.copied, DialectAttr) and ring.copied.name == "ttg.slice":
        parent, dim = read_blocked(ring.copied.get("parent")), ring.copied.get("dim")
    if parent is None or len(parent.order) != 2 or not _is_row(node, parent, dim):
        return None
    if parent.size_per_thread[parent.order[0]] * node.bits < COPY_BITS:
        return None
    for chain, other in scene.facts.lowered.rings.items():
        is_copied = chain != node.chain and not other.direct and not other.registers
        if is_copied and read_blocked(other.copied) == parent and _loaded(scene, chain) == parent:
            return chain, dim
    return None


def _is_row(node: Node, parent: Blocked, dim: int | None) -> bool:
    """Whether what is loaded is a row along which a layout has threads' elements side by side."""
    if dim is not None:
        return len(node.shape) == 1 and parent.order[0] != dim
    return len(node.shape) == 2 and node.shape[parent.order[1]] == 1


def _loaded(scene: Scene, chain: CallChain) -> Blocked | None:
    """The layout of an access as Triton would load it."""
    access = scene.facts.accesses.get(chain)
    if access is None:
        return None
    return Blocked(access.size_per_thread, access.threads_per_warp, access.warps_per_cta, access.order)
