"""Values that are made of one that was stored before, and stored as that was, or short rows that are reduced whole.

    tl.store(x_ptrs, x)                           # converted, to be stored as `x_ptrs` is accessed
    y = tl.cumsum(x * scale[:, None], axis=1)     # computed of what was converted
    tl.store(y_ptrs, y)                           # stored alike: not converted any more

    tl.store(row_ptrs, row)                       # a slice of a tile, converted
    largest = tl.max(tl.where(inside, row, 0))    # of what was converted, which each warp has whole

Triton's compiler computes a value again in the layout that it is wanted in, back to what is there in that already
(RemoveLayoutConversions, backward rematerialisation). Where nothing else reads the value, it has it in that alone.
A row's slice of a tile lies in several warps, which would reduce it through shared memory, between two barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tt2gl.analysis.graph import Graph, Node, sources
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Term


def mark_stored_alike(graph: Graph, readers: Readers, root: Callable[[Node], Term], lanes: int) -> None:
    """Give such values their layout; `root`: the one that an access has by itself; `lanes`: of a warp."""
    before: list[tuple[Node, Term]] = []
    for node in graph.nodes:
        if _is_whole(node) and _is_short(node.operands[0], lanes):
            _mark_reduced(node, before, readers)
        if node.kind != "store" or node.tile or not (node.anchored or _is_short(node, lanes)):
            continue
        own = root(node)
        alike = [each for each, term in before if term == own and each.loop is node.loop and each.anchored]
        steps = _made_of_stored(node.operands[1:2], node.shape, alike, readers) if node.anchored and alike else ()
        for value in steps:
            value.natural = value.operand_term = own
        before.append((node, own))


def _mark_reduced(node: Node, before: Sequence[tuple[Node, Term]], readers: Readers) -> None:
    """Give a row that is reduced whole the layout of the store before of what it is computed of, if there is one."""
    row = node.operands[0]
    for store, own in before:
        if store.loop is node.loop and store.shape == row.shape and _is_reduced_tile(store):
            for value in _made_of_stored([row], row.shape, [store], None):
                value.natural = own


def _is_whole(node: Node) -> bool:
    """Whether a node reduces all of a row, with no word of its dimension."""
    return node.kind == "reduce" and node.axis is None and len(node.operands) == 1


def _is_short(row: Node, lanes: int) -> bool:
    """Whether a row has no more elements than a warp has lanes."""
    return len(row.shape) == 1 and row.elements <= lanes


def _is_reduced_tile(store: Node) -> bool:
    """Whether a row that is stored was reduced from a tile along one dimension."""
    made_of = sources(store.operands[1]) if len(store.operands) > 1 else ()
    return any(each.kind == "reduce" and each.shape == store.shape and each.axis is not None for each in made_of)


def _made_of_stored(
    values: Sequence[Node], shape: tuple[int, ...], before: Sequence[Node], readers: Readers | None
) -> Iterator[Node]:
    """What a value is computed by back to what was stored before, each step read by the next alone, if `readers`."""
    steps: list[Node] = []
    value = values[0] if values else None
    while value is not None and value.shape == shape:
        if value.kind == "read":
            made = value.web.find().made_once() if value.web is not None else None
            if made is None:
                return
            if any(_stores(each, value) for each in before):
                yield from steps
                return
            value = made.node if readers is None or readers.only(made.node) is value else None
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
