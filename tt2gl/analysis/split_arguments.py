"""Small tiles that a helper is given to split their pairs: they come as those lie, and what is summed lies so, too.

    def packed(x):
        scale = tl.max(tl.abs(x), axis=0) / 6
        low, high = tl.split(tl.reshape(quantized(x, scale), (16, 2)))    # each thread has its pairs from the start
        return low | (high << 4), scale

    packed(tl.load(x_ptr + tl.arange(0, 32)))

Triton's compiler loads such a tile once for the maximum and once for the pairs, where it has fewer elements than there
are threads. A helper is given it once, in one layout, and a sum that is a scalar is had of any. So it is with the first
step of a transform, `tl.split(tl.trans(tl.reshape(x, (N // 2, 2, 1)), 0, 2, 1))`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import is_named_reshape, keeps_order
from tt2gl.analysis.terms import Cut, Pair, Reshaped


def anchor_split_argument(graph: Graph, readers: Readers) -> bool:
    """Give the first such parameter that has no layout the one that its pairs are split in; whether there was one."""
    for web in graph.distinct_webs():
        made = web.made_once()
        if made is None or made.entry is None or web.natural is not None or web.cheap:
            continue
        if made.node.kind == "argument" and made.node.cheap and (natural := _as_parted(made.node, readers)) is not None:
            web.natural = natural
            return True
    return False


def _as_parted(value: Node, readers: Readers) -> Reshaped | None:
    """The layout of a value whose pairs become a dimension, as they are split; None where more becomes of it."""
    ends = {id(end): end for end in _ends(value, readers, set())}.values()
    reshapes = [end for end in ends if end.kind != "reduce"]
    if len(reshapes) != 1 or not is_named_reshape(reshapes[0]) or any(e.shape for e in ends if e.kind == "reduce"):
        return None
    parted = reshapes[0]
    for reader in _named(parted, readers):
        if keeps_order(reader):
            parted = reader
    natural = next((each.natural for each in _named(parted, readers) if each.kind == "split"), None)
    if not isinstance(natural, Cut) or not isinstance(natural.parent, Pair):
        return None
    return Reshaped(natural.parent, parted.dims_known, reshapes[0].operands[0].dims_known)


def _ends(value: Node, readers: Readers, seen: set[int]) -> Iterator[Node]:
    """What reads a value, or what is computed of it element by element, and is neither."""
    for reader in readers.of(value):
        if id(reader) in seen:
            continue
        seen.add(id(reader))
        if reader.kind in ("read", "elementwise", "argument", "call") and reader.shape == value.shape:
            yield from _ends(reader, readers, seen)
        else:
            yield reader


def _named(value: Node, readers: Readers) -> list[Node]:
    """What reads a value, itself or by its names."""
    found = list(readers.of(value))
    return [each for reader in found for each in (readers.of(reader) if reader.kind == "read" else [reader])]
