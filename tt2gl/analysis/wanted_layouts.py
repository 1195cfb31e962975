"""In which layout the readers of what is joined or split want it, where nothing else says how threads hold it.

z = tl.join(lo, hi).reshape(1, N)      # nothing says how threads hold a row of fewer elements than there are threads
w = weights - z                        # but here it meets a tile
h01, h23 = tl.split(tl.load(h_ptr + tl.arange(0, 4 * M)).reshape(M, 2, 2))      # nor how they hold such a row
h0, h1 = tl.split(h01)
y = x0 * h0[:, None] + x1 * h1[:, None]                                         # but these are slices of a tile
"""

from __future__ import annotations

from collections.abc import Iterator

from tt2gl.analysis.graph import Node
from tt2gl.analysis.joins import merged_pairs
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Narrowed, Pair, Root, Term, halved

_FOLLOWED = ("read", "call", "argument", "elementwise", "expand", "join", "split")


class WantedLayouts:
    """Asks the readers of one graph, each once a question."""

    def __init__(self, readers: Readers, classes: Classes) -> None:
        self._readers, self._classes = readers, classes
        self._seen: set[int] = set()

    def of_join(self, join: Node) -> Term | None:
        """The layout of two values joined that what is made of them is wanted in: both are in one thread.

        They are a pair, or neighbours in the last dimension of the tile that they are made for.
        """
        wanted = self._asked(join)
        if isinstance(wanted, Pair):
            return wanted
        if not isinstance(wanted, Narrowed) or not isinstance(wanted.parent, Root):
            return None
        last = len(join.shape) - 1
        has_both = wanted.dim == last and self._classes.has_neighbours(wanted.parent.name, last, 2 * wanted.factor)
        return wanted if has_both else None

    def of_split(self, split: Node) -> Pair | None:
        """The layout of what is split that one half has, or that its halves are wanted in, or the halves of these."""
        halves = (each.natural for each in self._readers.of(split.operands[0]) if each.kind == "split")
        known = next((each.parent for each in halves if isinstance(each, Cut)), None)
        if isinstance(known, Pair):
            return known
        wanted = self._asked(split.operands[0])
        return wanted if isinstance(wanted, Pair) else None

    def _asked(self, value: Node) -> Term | None:
        self._seen.clear()
        return self._wanted(value)

    def _wanted(self, value: Node) -> Term | None:
        """The layout in which what is made of a value meets others; None where that says nothing of the value's."""
        return next((term for reader in self._unseen(value) if (term := self._by(reader, value)) is not None), None)

    def _unseen(self, value: Node) -> Iterator[Node]:
        for reader in self._readers.of(value):
            if id(reader) not in self._seen:
                self._seen.add(id(reader))
                yield reader

    def _by(self, reader: Node, value: Node) -> Term | None:
        """The layout of a value for what one reader makes of it."""
        if reader.kind == "elementwise" and reader.natural is not None:
            return reader.natural if len(reader.shape) == len(value.shape) else None
        if reader.kind == "store":
            stored = (
                self._classes.by_chain.get(reader.chain) if reader.anchored and reader.operands[-1] is value else None
            )
            return Root(stored.name) if stored is not None else None
        term = self._wanted(reader) if reader.kind in _FOLLOWED or merged_pairs(reader) else None
        if term is None:
            return None
        match reader.kind:
            case "join":
                return term.parent if isinstance(term, Pair) else None
            case "split":
                return Pair(term, reader.dims_known)
            case "expand":
                return Cut(reader.axis or 0, term)
        return self._parted(term, merged_pairs(reader), len(reader.shape) - 1)

    def _parted(self, term: Term, count: int, dim: int) -> Term | None:
        """The layout of what `count` last dimensions of two were merged of, into one that has `term`."""
        if not count:
            return term
        half = halved(term, dim)
        if half is None and isinstance(term, Root) and self._classes.has_neighbours(term.name, dim, 1 << count):
            half = Narrowed(dim, 2, term)
        parted = self._parted(half, count - 1, dim) if half is not None else None
        return Pair(parted) if parted is not None else None
