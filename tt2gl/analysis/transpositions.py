"""Transpositions on their way to products, sums or reshapes, and how they lie in shared memory."""

from __future__ import annotations

from dataclasses import replace

from tt2gl.analysis.facts import DotOperandFact
from tt2gl.analysis.graph import Graph, Node, made_once
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import is_reshaped_next
from tt2gl.analysis.terms import Root, Term, Turned
from tt2gl.ir.attributes import Attribute, DialectAttr


def transposed_for_products(graph: Graph) -> set[int]:
    """The transpositions of matrices that products alone read, by their `id`."""
    readers = Readers(graph)
    return {id(node) for node in graph.nodes if node.order == (1, 0) and readers.lead_to(node, _is_operand)}


def _is_operand(value: Node, reader: Node) -> bool:
    return reader.kind == "dot" and any(operand is value for operand in reader.operands[:2])


def is_narrowed(node: Node, readers: Readers) -> bool:
    """Whether what is turned of a name is only stored, in fewer bits than it has."""
    stored = readers.lead_to(node, lambda value, reader: reader.kind == "store" and reader.bits < value.bits)
    return stored and node.operands[0].kind == "read"


def stored_unturned(node: Node, wanted: Term, readers: Readers, classes: Classes) -> Root | None:
    """The layout that what is permuted is converted to for its own store, and that becomes the one wanted of `node`.

    tl.store(x_ptr + offsets, x)
    tl.store(y_ptr + turned_offsets, tl.trans(x))    # of the `x` that was converted above, as Triton's compiler has it
    """
    operand = node.operands[0]
    made = made_once(operand)
    if not node.order or made is None or not isinstance(wanted, Root) or operand.natural is None:
        return None
    known = [
        classes.by_chain[reader.chain].name
        for each in readers.of(made.node)
        for reader in readers.of(each)
        if reader.kind == "store" and reader.chain in classes.by_chain
    ]
    found = (Root(name) for name in known if classes.is_permuted(name, wanted.name, node.order))
    return next((each for each in found if each != operand.natural), None)


def as_turned(node: Node, readers: Readers) -> Term | None:
    """The layout of a matrix that is turned to be reshaped, or back: threads keep what they have.

    x = tl.reshape(tl.trans(x), (COLS * ROWS // 32, 32))
    x = x / tl.max(tl.abs(x), 1)[:, None]
    y = tl.trans(tl.reshape(x, (COLS, ROWS)))       # as `x` was loaded
    """
    operand = node.operands[0]
    own = operand.natural
    if isinstance(own, Turned) and isinstance(own.parent, Root):
        return own.parent
    if isinstance(own, Root) and None not in operand.dims and readers.lead_to(node, is_reshaped_next):
        return Turned(own, operand.dims_known)
    return None


def anchor_turned_sum(graph: Graph) -> bool:
    """Leave the first tile that is turned to be reduced in its threads, in the layout that its own becomes.

    They have the same elements in either; without a layout the tile would get one of its own, and be converted.
    """
    for node in graph.nodes:
        if node.kind == "reduce" and node.shape and node.natural is None and node.operands[0].natural is None:
            turned = _turned_before(node.operands[0])
            if turned is not None and isinstance(own := turned.operands[0].natural, Root):
                turned.natural = Turned(own, ())
                return True
    return False


def _turned_before(value: Node) -> Node | None:
    """The transposition that a value is computed of, element by element, if there is one without a layout."""
    if value.order == (1, 0):
        return value if value.natural is None else None
    if (made := made_once(value)) is not None:
        return _turned_before(made.node)
    if value.kind != "elementwise":
        return None
    whole = (operand for operand in value.operands if operand.elements == value.elements)
    return next((found for each in whole if (found := _turned_before(each)) is not None), None)


def as_it_comes(operand: DotOperandFact, *, turned_before: bool = True, kept: bool = False) -> DotOperandFact:
    """An operand that is read turned from shared memory as one that is put there turned: its bytes lie as they did.

    That is so if `turned_before`; if `kept`, one that is read before the loop is as those that are read in it.
    """
    if kept:
        operand = replace(operand, reloaded=operand.reloaded or operand.kept)
    if not turned_before or operand.transposed is None or operand.transposed.name != "ttg.swizzled_shared":
        return operand
    return replace(operand, reloaded=other_way(operand.transposed), transposed=None)


def other_way(layout: DialectAttr) -> DialectAttr:
    """A shared layout as it is on the other side of a transposition of the memory in it."""
    changed: dict[str, Attribute] = {}
    for name, value in layout.parameters:
        if name == "transposed":
            changed[name] = not value
        elif name == "order":
            changed[name] = tuple(reversed(value))
    return replace(layout, parameters=tuple((name, changed.get(name, value)) for name, value in layout.parameters))
