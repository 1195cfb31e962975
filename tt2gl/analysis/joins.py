"""Values that are joined, and pairs that are put side by side: layouts that follow, also from who reads them.

z = tl.join(lo, hi).reshape(1, N)      # nothing says how threads hold a row of fewer elements than there are threads
w = weights - z                        # but here it meets a tile
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Pair, Term, halved

_FOLLOWED = ("read", "call", "argument", "elementwise", "expand", "join")


def merged_pairs(node: Node) -> int:
    """How many last dimensions of two are reshaped into the one before them, side by side; 0 where it is otherwise."""
    if node.function not in ("reshape", "view") or not node.operands:
        return 0
    before, count = node.operands[0].shape, len(node.operands[0].shape) - len(node.shape)
    twos = (2,) * count
    merged = 0 < count < len(before) and before[-count:] == twos
    return count if merged and node.shape == (*before[: -count - 1], before[-count - 1] << count) else 0


def unpaired(term: Term | None, count: int) -> Term | None:
    """The layout that has been joined `count` times in one; None where it has not, or for a `count` of 0."""
    for _ in range(count):
        if not isinstance(term, Pair):
            return None
        term = term.parent
    return term if count else None


def wanted_in(value: Node, readers: Readers) -> Term | None:
    """The layout in which what is made of a value alone meets others; None where that says nothing of the value's."""
    reader = readers.only(value)
    if reader is None:
        return None
    if reader.kind == "elementwise" and reader.natural is not None:
        return reader.natural if len(reader.shape) == len(value.shape) else None
    term = wanted_in(reader, readers) if reader.kind in _FOLLOWED or merged_pairs(reader) else None
    if term is None:
        return None
    if reader.kind == "join":
        return term.parent if isinstance(term, Pair) else None
    if reader.kind == "expand":
        return Cut(reader.axis or 0, term)
    return _parted(term, merged_pairs(reader), len(reader.shape) - 1)


def _parted(term: Term, count: int, dim: int) -> Term | None:
    """The layout of what `count` last dimensions of two were merged of, into one that has `term`."""
    if not count:
        return term
    half = halved(term, dim)
    parted = _parted(half, count - 1, dim) if half is not None else None
    return Pair(parted) if parted is not None else None
