"""Values that are joined, and pairs that are put side by side: layouts that follow, also from who reads them.

z = tl.join(lo, hi).reshape(1, N)      # nothing says how threads hold a row of fewer elements than there are threads
w = weights - z                        # but here it meets a tile
even, odd = tl.split(x.reshape(M, N // 2, 2))     # and here each thread has pairs in what it loaded, and parts them
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Narrowed, Pair, Root, Term, halved

_FOLLOWED = ("read", "call", "argument", "elementwise", "expand", "join")


def merged_pairs(node: Node) -> int:
    """How many last dimensions of two are reshaped into the one before them, side by side; 0 where it is otherwise."""
    return _twos(node.shape, node.operands[0].shape) if node.function in ("reshape", "view") and node.operands else 0


def parted_pairs(node: Node) -> int:
    """How many last dimensions of two the last one is parted into, its neighbours in them; 0 where it is otherwise."""
    return _twos(node.operands[0].shape, node.shape) if node.function in ("reshape", "view") and node.operands else 0


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


def halves_wanted(split: Node, readers: Readers) -> Pair | None:
    """The layout of pairs for what is split to have its halves as what is made of them is wanted; None where none says.

    The halves of halves are, if these are what is wanted.
    """
    for half in readers.of(split.operands[0]):
        if half.kind == "split" and half.site == split.site:
            found = (_half_wanted(half, reader, readers) for reader in readers.of(half))
            if (term := next((each for each in found if each is not None), None)) is not None:
                return Pair(term, half.dims_known)
    return None


def _half_wanted(value: Node, reader: Node, readers: Readers) -> Term | None:
    """The layout that one reader wants a value in, or what is made of it alone."""
    match reader.kind:
        case "elementwise" if reader.natural is not None:
            return reader.natural if len(reader.shape) == len(value.shape) else None
        case "split":
            return halves_wanted(reader, readers)
        case "expand" | "read" | "elementwise" | "call" | "argument":
            found = (_half_wanted(reader, each, readers) for each in readers.of(reader))
            term = next((each for each in found if each is not None), None)
            return Cut(reader.axis or 0, term) if term is not None and reader.kind == "expand" else term
    return None


def _parted(term: Term, count: int, dim: int) -> Term | None:
    """The layout of what `count` last dimensions of two were merged of, into one that has `term`."""
    if not count:
        return term
    half = halved(term, dim)
    parted = _parted(half, count - 1, dim) if half is not None else None
    return Pair(parted) if parted is not None else None
