"""What is computed of a tile's sums alone: in a row's own layout, as Triton computes it.

    counts += tl.sum(matches, axis=1)                     # here they come as the row that is stored is held
    padded = (counts + SIZE - 1) // SIZE * SIZE
    tl.store(offsets + experts, tl.cumsum(padded) - padded, mask=experts < N)

In a slice of a tile that no access decides a thread has each sum, or many: as the row is stored, its own.
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Root, Term


def in_a_row(node: Node, natural: Term | None, readers: Readers, classes: Classes, index: int) -> Term | None:
    """The layout of what is computed: a row's own for a slice `natural`, where nothing puts it beside a tile."""
    if not isinstance(natural, Cut) or not isinstance(natural.parent, Root):
        return natural
    row = classes.of_access(node, index) if classes.is_alone(len(node.shape) + 1) else None
    if row is None or _meets_tile(node, readers, set()):
        return natural
    return Root(row.name)


def _meets_tile(value: Node, readers: Readers, seen: set[int]) -> bool:
    """Whether a value, or what is computed of it, becomes a row or a column of a tile."""
    if id(value) in seen:
        return False
    seen.add(id(value))
    known = readers.of_any(value)
    onward = ("read", "call", "argument", "elementwise", "scan")
    return any(each.kind == "expand" or each.kind in onward and _meets_tile(each, readers, seen) for each in known)
