"""What is computed of a tile's sums alone: in a row's own layout, as Triton computes it.

    counts += tl.sum(matches, axis=1)                     # here they come as the row that is stored is held
    padded = (counts + SIZE - 1) // SIZE * SIZE
    tl.store(offsets + experts, tl.cumsum(padded) - padded, mask=experts < N)

In a slice of a tile that no access decides a thread has each sum, or many: as the row is stored, its own. Sums that are
but stored can be so from the slice, and are not converted at all; what they meet would be loaded by each thread, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from tt2gl.analysis.graph import Node, made_once
from tt2gl.analysis.memory import Classes, LayoutClass
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Root, Term

_ONWARD = ("read", "call", "argument", "elementwise", "scan")


def in_a_row(node: Node, natural: Term | None, readers: Readers, classes: Classes, index: int) -> Term | None:
    """The layout of what is computed: a row's own for a slice `natural`, where nothing puts it beside a tile."""
    if not isinstance(natural, Cut) or not isinstance(natural.parent, Root):
        return natural
    row = classes.of_access(node, index) if classes.is_alone(len(node.shape) + 1) else None
    if row is None:
        return natural
    uses = list(_uses(node, readers, set()))
    kinds = {each.kind for each in uses}
    loads = any(_is_loaded(each, row, classes) for use in (node, *uses) for each in use.operands)
    return Root(row.name) if "expand" not in kinds and ("scan" in kinds or loads or classes.is_own(row)) else natural


def _uses(value: Node, readers: Readers, seen: set[int]) -> Iterator[Node]:
    """What reads a value, and what is computed of it."""
    for each in readers.of_any(value):
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            if each.kind in _ONWARD:
                yield from _uses(each, readers, seen)


def _is_loaded(value: Node, row: LayoutClass, classes: Classes) -> bool:
    """Whether a value was loaded as that row, or is computed of such, element by element."""
    known, waiting = set[int](), [value]
    while waiting:
        each = waiting.pop()
        made = made_once(each)
        each = made.node if made is not None else each
        if each.kind == "load" and classes.by_chain.get(each.chain) is row:
            return True
        if each.kind == "elementwise" and id(each) not in known:
            known.add(id(each))
            waiting += each.operands
    return False
