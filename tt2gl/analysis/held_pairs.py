"""Pairs that threads have in what they loaded: they are split as they come, and what is made of the halves joined so.

    x = tl.load(x_ptr + offs)                                         # each thread has four in a row
    x = tl.permute(tl.reshape(x, (ROWS, D // 2, 2, 1)), (0, 1, 3, 2))
    a, b = tl.split(x)                                                # no conversion
    x = tl.permute(tl.join(a + b, a - b), (0, 1, 3, 2))

So are eight neighbours that are added in their order, each half of a half reshaped to pairs again:

    even, odd = tl.split(tl.reshape(x, (ROWS, D // 8, 4, 2)))
    a, c = tl.split(tl.reshape(even, (ROWS, D // 8, 2, 2)))

So the first steps of a transform take no conversion, as in Triton, and those after one that is converted for. None of
these layouts has a name.
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node, made_once
from tt2gl.analysis.joins import parted_pairs
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import RESHAPES
from tt2gl.analysis.terms import Cut, Inferred, Pair, Reshaped, Root, Term
from tt2gl.analysis.transform_steps import rearranged_on, rearranges
from tt2gl.layouts import Blocked


def as_they_come(node: Node, readers: Readers, classes: Classes) -> Inferred | None:
    """The layout of a split of pairs that threads have, of what is permuted for it, or of halves that are joined."""
    first = node.operands[0] if node.operands else None
    natural = first.natural if first is not None else None
    if first is None or natural is None:
        return None
    match node.kind:
        case "split" if isinstance(natural, Inferred) and _holds(first, len(first.shape) - 1, classes):
            return Inferred(natural.parent, f"{natural.how}, split")
        case "join" if isinstance(natural, Inferred) and all(each.natural == natural for each in node.operands):
            if readers.lead_to(node, lambda _, reader: rearranges(reader)):
                return Inferred(natural.parent, f"{natural.how}, join")
        case "opaque" if node.order and isinstance(natural, Root | Reshaped):
            if _is_split_next(node, readers) and _holds(first, node.order[-1], classes):
                return rearranged_on(node, natural)
        case "opaque" if node.function in RESHAPES and _is_split_next(node, readers):
            # Neighbours that are parted into pairs have a layout with a name (`in_pairs`).
            if isinstance(natural, Inferred) or isinstance(natural, Root) and not parted_pairs(node):
                return rearranged_on(node, natural) if _holds(node, len(node.shape) - 1, classes) else None
    return None


def loaded_in_pairs(split: Node, classes: Classes) -> Root | None:
    """The layout of what is split, of a tile of pairs each of which one thread has loaded; None for others.

    x = tl.load(x_ptr + offs[:, None] * 2 + tl.arange(0, 2)[None, :])
    a, b = tl.split(x)
    tl.store(o_ptr + ..., tl.join(a + b, a - b))                      # only this is converted, to be stored
    """
    whole = split.operands[0].natural
    return whole if isinstance(whole, Root) and is_of_pairs(whole, len(split.operands[0].shape), classes) else None


def is_of_pairs(whole: Term, rank: int, classes: Classes) -> bool:
    """Whether in the layout of a tile of `rank` dimensions, the last of two, a thread has all along that one."""
    known = [layout for each in classes.classes if Root(each.name) == whole for layout in each.layouts.values()]
    loaded = bool(known) and all(isinstance(one, Blocked) and _ends_in_pairs(one, rank) for one in known)
    return loaded or isinstance(whole, Pair)


def _ends_in_pairs(layout: Blocked, rank: int) -> bool:
    ends = layout.size_per_thread[-1], layout.threads_per_warp[-1], layout.warps_per_cta[-1]
    return len(layout.order) == rank and ends == (2, 1, 1)


def _is_split_next(value: Node, readers: Readers) -> bool:
    """Whether the last dimension of a value, of two elements, is split as it comes."""
    return value.shape[-1] == 2 and readers.lead_to(value, lambda _, reader: reader.kind == "split")


def _holds(value: Node, dim: int, classes: Classes) -> bool:
    """Whether each thread has both elements along a dimension of two, by where these were loaded."""
    node, bit = value, 0
    while True:
        term = node.natural
        if isinstance(term, Cut) and isinstance(term.parent, Pair) and term.dim == len(node.shape):
            term = term.parent.parent
        while isinstance(term, Pair):
            if dim == len(node.shape) - 1 and isinstance(node.natural, Pair):
                return True
            term = term.parent
        if isinstance(term, Root):
            return _in_a_thread(classes, term.name, dim, bit, node.shape)
        if node.kind in ("read", "call", "argument"):
            made = made_once(node) if node.kind == "read" else None
            below = made.node if made is not None else node.value
        else:
            below = next(
                (each for each in node.operands if each.elements >= node.elements or node.kind == "join"), None
            )
        if below is None:
            return False
        if node.kind == "join" and dim == len(node.shape) - 1:
            return True
        if node.kind == "opaque" and node.order:
            dim = node.order[dim]
        elif node.kind == "opaque" and node.function in RESHAPES:
            dim, bit = _reshaped(dim, bit, node.shape, below.shape)
        elif node.kind not in ("read", "call", "argument", "elementwise", "join", "split"):
            return False
        node = below


def _reshaped(dim: int, bit: int, shape: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, int]:
    """Where a bit of an index is before a reshape."""
    bit += sum(extent.bit_length() - 1 for extent in shape[dim + 1 :])
    for place in reversed(range(len(before))):
        bits = before[place].bit_length() - 1
        if bit < bits:
            return place, bit
        bit -= bits
    return 0, bit


def _in_a_thread(classes: Classes, name: str, dim: int, bit: int, shape: tuple[int, ...]) -> bool:
    """Whether what lies `1 << bit` apart along a dimension of a tile is a thread's own in the layout of that key."""
    known = [layout for each in classes.classes if each.name == name for layout in each.layouts.values()]
    return bool(known) and all(
        isinstance(one, Blocked) and dim < len(one.order) and _has_both(one, dim, 1 << bit, shape[dim]) for one in known
    )


def _has_both(layout: Blocked, dim: int, apart: int, extent: int) -> bool:
    """Whether each thread has both of two elements: among its neighbours, or where the layout is repeated."""
    size = layout.size_per_thread[dim]
    repeated = size * layout.threads_per_warp[dim] * layout.warps_per_cta[dim]
    return size % (2 * apart) == 0 or repeated <= apart < extent
