"""Values that are joined, and pairs that are put side by side: layouts that follow.

even, odd = tl.split(x.reshape(M, N // 2, 2))     # and here each thread has pairs in what it loaded, and parts them
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Inferred, Narrowed, Pair, Root, Term, doubled
from tt2gl.analysis.unpacking import merged


def is_awaited(joined: Node, beside_products: bool) -> bool:
    """Whether what is joined may get a layout yet, or what is made of it, which what is made anew then takes."""
    return joined.natural is None and not (joined.cheap and beside_products)


def merged_pairs(node: Node) -> int:
    """How many last dimensions of two are reshaped into the one before them, side by side; 0 where it is otherwise."""
    return _twos(node.shape, node.operands[0].shape) if node.function in ("reshape", "view") and node.operands else 0


def parted_pairs(node: Node) -> int:
    """How many last dimensions of two the last one is parted into, its neighbours in them; 0 where it is otherwise."""
    return _twos(node.operands[0].shape, node.shape) if node.function in ("reshape", "view") and node.operands else 0


def stacked(node: Node, readers: Readers) -> Term | None:
    """The layout of pairs that are put one above the other: each thread has both rows; or of them turned for that."""
    if node.order == (0, 2, 1) and isinstance(pairs := node.operands[0].natural, Pair):
        is_stacked = readers.lead_to(node, lambda _, reader: merged(reader) is not None)
        return Inferred(pairs, f"{node.function} {node.order}") if is_stacked else None
    joined = merged(node)
    if joined is None or joined is node.operands[0] or not isinstance(joined.natural, Pair):
        return None
    return doubled(joined.natural.parent, 0)


def in_pairs(node: Node, own: Term, classes: Classes) -> Term | None:
    """The layout of neighbours in the last dimension that are parted into pairs, and pairs of pairs, in their threads.

    None for what is reshaped otherwise, or where threads have no such neighbours in `own`, the layout before.
    """
    if node.function not in ("reshape", "view") or not isinstance(own, Root):
        return None
    count, last = _twos(node.operands[0].shape, node.shape), len(node.operands[0].shape) - 1
    if not count or not classes.has_neighbours(own.name, last, 1 << count):
        return None
    made: Term = Narrowed(last, 1 << count, own)
    for _ in range(count):
        made = Pair(made)
    return made


def pair_of(value: Node) -> Pair | None:
    """The layout that a value of pairs has: of half of one of pairs of pairs, the layout of a pair."""
    match value.natural:
        case Pair() as known:
            return known
        case Cut(dim=dim, parent=Pair(parent=Pair() as known)) if dim == len(value.shape):
            return known
    return None


def unpaired(term: Term | None, count: int) -> Term | None:
    """The layout that has been joined `count` times in one; None where it has not, or for a `count` of 0."""
    for _ in range(count):
        if not isinstance(term, Pair):
            return None
        term = term.parent
    return term if count else None


def _twos(whole: tuple[int, ...], parted: tuple[int, ...]) -> int:
    """How many last dimensions of two one of these extents has, for the others of the one before them; or 0."""
    count = len(parted) - len(whole)
    known = 0 < count < len(parted) and parted[-count:] == (2,) * count
    return count if known and whole == (*parted[: -count - 1], parted[-count - 1] << count) else 0
