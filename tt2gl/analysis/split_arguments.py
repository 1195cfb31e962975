"""Small tiles that a helper is given to split their pairs: they come as those lie, and what is summed lies so, too.

    def packed(x):
        scale = tl.max(tl.abs(x), axis=0) / 6
        low, high = tl.split(tl.reshape(quantized(x, scale), (16, 2)))    # each thread has its pairs from the start
        return low | (high << 4), scale

    packed(tl.load(x_ptr + tl.arange(0, 32)))

Triton's compiler loads such a tile once for the maximum and once for the pairs, where it has fewer elements than there
are threads. A helper is given it once, in one layout, and a sum that is a scalar is had of any.
"""

from __future__ import annotations

from collections.abc import Iterator

from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import is_named_reshape, unreshaped
from tt2gl.analysis.terms import Cut, Pair


def anchor_split_argument(graph: Graph, readers: Readers) -> bool:
    """Give the first such parameter that has no layout the one that its pairs are split in; whether there was one."""
    for web in graph.distinct_webs():
        made = web.made_once()
        if made is None or made.entry is None or web.natural is not None or web.cheap:
            continue
        if made.node.kind == "argument" and made.node.cheap and (parted := _parted(made.node, readers)) is not None:
            web.natural = unreshaped(*parted)
            return web.natural is not None
    return False


def _parted(value: Node, readers: Readers) -> tuple[Node, Pair] | None:
    """Where a value's pairs become a dimension, and in which layout they are split; None where more becomes of it."""
    found = {id(end): end for end in _ends(value, readers, set())}
    reshapes = [end for end in found.values() if end.kind != "reduce"]
    if len(found) == len(reshapes) or len(reshapes) != 1 or not is_named_reshape(reshapes[0]):
        return None
    if any(end.shape for end in found.values() if end.kind == "reduce"):
        return None
    splits = [each for each in _named(reshapes[0], readers) if each.kind == "split"]
    natural = splits[0].natural if splits else None
    return (reshapes[0], natural.parent) if isinstance(natural, Cut) and isinstance(natural.parent, Pair) else None


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
