"""Values that are reshaped: each thread keeps its elements, and that is a layout with a name of its own.

It follows from the layout before by its bases, as Triton infers a linear layout (`inferReshapeOpEncoding`). Where the
extents become what they were once before, so does the layout.

    y = x.reshape(shape)                                   # shape = [2 ** i, 2, N // 2 ** (i + 1)]: a step of a sort
    left = tl.sum(y * (1 - mask), 1)[:, None, :]

Of extents that have no names, the compiler infers the layout. What else such a value meets and is cheap, here `mask`,
comes in a layout that is inferred, too (`gl.AutoLayout()`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tt2gl.analysis.extents import evaluated
from tt2gl.analysis.graph import Graph, Node, made_once
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Cut, Inferred, Operand, Pair, Reshaped, Root, Term, Turned, Widened, expanded
from tt2gl.launches import Launch

RESHAPES = ("reshape", "view", "ravel")


def is_named_reshape(node: Node) -> bool:
    """Whether a value of known extents is reshaped to known ones, so that a layout can be told by them."""
    if node.kind != "opaque" or node.function not in RESHAPES:
        return False
    return None not in (*node.dims, *node.operands[0].dims)


def is_reshaped_next(value: Node, reader: Node) -> bool:
    """Whether a value that was permuted, say, is reshaped as it comes: its layout needs no name."""
    return reader.kind == "opaque" and reader.function in RESHAPES and reader.operands[0] is value


def is_computed(value: Node) -> bool:
    """Whether a value is computed element by element, itself or by its only name: no product as it comes."""
    if (made := made_once(value)) is not None:
        value = made.node
    return value.kind == "elementwise"


def is_computed_or_given(value: Node) -> bool:
    """Whether a value is computed so, in a helper that gives it, too: nothing that was rearranged itself."""
    while True:
        made = made_once(value)
        before = value.value if value.kind in ("call", "argument") else made.node if made is not None else None
        if before is None:
            return value.kind == "elementwise"
        value = before


def is_computed_with(value: Node, reader: Node) -> bool:
    """Whether a reader computes of a value, and of others, element by element: it keeps the layout."""
    return reader.kind == "elementwise" and any(each is not value for each in reader.operands)


def is_of_several(node: Node) -> bool:
    """Whether a reduction takes a value whose layout has no name, and others, which may not come in that."""
    return len(node.operands) > 1 and isinstance(node.operands[0].natural, Inferred)


def is_idle(node: Node) -> bool:
    """Whether a value is reshaped to the extents that it has."""
    return is_named_reshape(node) and node.shape == node.operands[0].shape


def reshaped(node: Node, own: Root | Reshaped | Pair | Turned | Widened, launch: Launch) -> Term | None:
    """The layout of a value of known extents that is reshaped, and has the layout `own` before."""
    before = node.operands[0]
    if not isinstance(own, Reshaped):
        return Reshaped(own, before.dims_known, node.dims_known)
    if not _are(own.into, before, launch):  # one of each row: its layout has fewer bases than that of the rows
        return None
    return own.parent if _are(own.dims, node, launch) else Reshaped(own.parent, own.dims, node.dims_known)


def is_reshaped_back(node: Node, own: Term, launch: Launch) -> bool:
    """Whether a value that was reshaped, and has the layout `own`, is reshaped to the extents that it had before."""
    return isinstance(own, Reshaped) and _are(own.into, node.operands[0], launch) and _are(own.dims, node, launch)


def _are(extents: tuple[str, ...], node: Node, launch: Launch) -> bool:
    """Whether extents are those of a value, in its words or by what they come to: `N // 2 * 2` is an even `N`."""
    return extents == node.dims or tuple(evaluated(text, launch) for text in extents) == node.shape


def inferred_reshape(node: Node, own: Term) -> Inferred:
    """The layout of a value that is reshaped to extents without names, and has the layout `own` before."""
    return Inferred(own, f"reshape {node.shape}", node.operands[0].shape)


def follows(operand: Node, known: Term | None, layout: Inferred) -> bool:
    """Whether an operand has the layout, which has no name, or can be made anew in it, for a value that is reshaped."""
    return known == layout or known is None and operand.cheap and bool(layout.of_shape)


def reduced(node: Node, operand: Term | None) -> Term | None:
    """The layout of a reduction's result, which has no name where its operand's has none; None for a scalar."""
    if operand is None or node.axis is None or not node.shape:
        return None
    if isinstance(operand, Inferred):
        return replace(operand, how=f"{operand.how}, {node.kind} {node.axis} {node.keep_dims}")
    return operand if node.keep_dims else Cut(node.axis, operand)


def keeps_order(node: Node) -> bool:
    """Whether a value is permuted so that dimensions of several elements stay in their order: as if reshaped."""
    if node.kind != "opaque" or not node.order:
        return False
    kept = [dim for dim in node.order if node.operands[0].shape[dim] > 1]
    return kept == sorted(kept)


def unreshaped(node: Node, term: Term) -> Term | None:
    """The layout of what is reshaped, for the value to be in `term`; None where that has no name."""
    permuted = isinstance(term, Pair) and keeps_order(node)
    if not permuted and not is_named_reshape(node):
        return None
    if not isinstance(term, Root | Cut | Pair | Widened | Operand | Reshaped):
        return None
    if is_idle(node):
        return term
    before = node.operands[0].dims_known
    if isinstance(term, Reshaped) and term.dims == before:
        return term.parent
    if isinstance(term, Reshaped) and isinstance(term.parent, Pair) and term.into == node.dims_known:
        return Reshaped(term.parent, term.dims, before)
    if isinstance(term, Root | Reshaped) and (axis := _axis_of_one(node, node.operands[0])) is not None:
        return Cut(axis, term)
    return Reshaped(term, node.dims_known, before)


def in_other_rank(node: Node, own: Term | None, readers: Readers) -> Term | None:
    """The layout of a value that is reshaped to lose a dimension of one, and will be given it again, or to get it back.

    None for others: what is stored without the dimension, say, is converted for that once, as small as it is.
    """
    if (whole := expanded(own, _axis_of_one(node, node.operands[0]))) is not None:
        return whole
    lost = _axis_of_one(node.operands[0], node) if isinstance(own, Reshaped) else None
    return Cut(lost, own) if lost is not None and own is not None and readers.lead_to(node, _is_given_axis) else None


def _is_given_axis(value: Node, reader: Node) -> bool:
    """Whether a value is reshaped to have a dimension of one more."""
    is_reshaped = reader.kind == "opaque" and reader.function in RESHAPES
    return is_reshaped and any(shape == value.shape for _, shape in _without_ones(reader))


def _axis_of_one(whole: Node, less: Node) -> int | None:
    """The dimension of one, written so, that a value has besides those of another; None where they differ in more."""
    return next((axis for axis, shape in _without_ones(whole) if whole.dims[axis] == "1" and shape == less.shape), None)


def _without_ones(node: Node) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each dimension of one that a value has, and its extents without that."""
    for axis, extent in enumerate(node.shape):
        if extent == 1:
            yield axis, (*node.shape[:axis], *node.shape[axis + 1 :])


def is_large_enough(layout: Term, node: Node, launch: Launch) -> bool:
    """Whether a layout has all elements of a value: told by its bases, it has those of the value that was reshaped.

    So what a row of scales is reshaped to, one beside each group of elements, is no layout of these.
    """
    # What is `1 << 0` of one operand is 1 of another.
    return not isinstance(layout, Reshaped) or _are(layout.into, node, launch)


def unnamed(graph: Graph) -> set[int]:
    """The values, by identity, whose layouts need no names: those transposed or split next, steps to another layout.

    So are those that descriptors alone store, whose tiles come in any.
    """
    readers = Readers(graph)
    found = {id(node) for node in graph.nodes if is_named_reshape(node) and readers.lead_to(node, _is_stored_tile)}
    for node in graph.nodes:
        if node.kind == "split" or node.kind == "opaque" and node.order:
            operand = node.operands[0]
            made = made_once(operand)
            found.add(id(made.node if made is not None else operand))
    return found


def _is_stored_tile(value: Node, reader: Node) -> bool:
    return reader.kind == "store" and bool(reader.tile) and reader.operands[-1] is value
