"""Values that are made of one that was stored before, and stored as that was.

    tl.store(x_ptrs, x)                           # converted, to be stored as `x_ptrs` is accessed
    y = tl.cumsum(x * scale[:, None], axis=1)     # computed of what was converted
    tl.store(y_ptrs, y)                           # stored alike: not converted any more

Triton's compiler computes a value again in the layout that it is wanted in, back to what is there in that already
(RemoveLayoutConversions, backward rematerialisation). Where nothing else reads the value, it has it in that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Term


def mark_stored_alike(graph: Graph, readers: Readers, root: Callable[[Node], Term]) -> None:
    """Give such values their layout; `root`: the one that an access has by itself."""
    before: list[tuple[Node, Term]] = []
    for node in graph.nodes:
        if node.kind != "store" or node.tile or not node.anchored:
            continue
        own = root(node)
        alike = [each for each, term in before if term == own and each.loop is node.loop]
        for value in _made_of_stored(node, alike, readers) if alike else ():
            value.natural = value.operand_term = own
        before.append((node, own))


def _made_of_stored(store: Node, before: Sequence[Node], readers: Readers) -> Iterator[Node]:
    """What a store's value is computed by, each step read by the next one alone, back to what was stored before."""
    steps: list[Node] = []
    value = store.operands[1] if len(store.operands) > 1 else None
    while value is not None and value.shape == store.shape:
        if value.kind == "read":
            made = value.web.find().made_once() if value.web is not None else None
            if made is None:
                return
            if any(_stores(each, value) for each in before):
                yield from steps
                return
            value = made.node if readers.only(made.node) is value else None
        else:
            steps.append(value)
            value = _computed_of(value)


def _stores(store: Node, value: Node) -> bool:
    """Whether a store writes the variable that is read here, cast or as it is."""
    written = store.operands[1] if len(store.operands) > 1 else store
    while written.kind == "elementwise" and len(written.operands) == 1:
        written = written.operands[0]
    if written.kind != "read" or written.web is None or value.web is None:
        return False
    return written.web.find() is value.web.find()


def _computed_of(value: Node) -> Node | None:
    """The one tile that a value is computed of, or scanned; None where there are several, or it is made otherwise."""
    if value.kind == "scan":
        return value.operands[0] if len(value.operands) == 1 else None
    large = [each for each in value.operands if each.shape == value.shape and not each.cheap]
    return large[0] if value.kind == "elementwise" and len(large) == 1 else None
