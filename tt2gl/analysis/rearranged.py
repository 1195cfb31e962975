"""Layouts of what values are made of whose elements are moved: reshaped, joined, interleaved or gathered ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt2gl.analysis.cheap import in_ring, is_operand
from tt2gl.analysis.decisions import Spot
from tt2gl.analysis.graph import Node, made_once, sources
from tt2gl.analysis.reshapes import is_computed_or_given, unreshaped
from tt2gl.analysis.terms import Cut, Inferred, Operand, Pair, Root, Term, Turned, halved
from tt2gl.analysis.transpositions import stored_unturned
from tt2gl.analysis.unpacking import half, merged
from tt2gl.words import HELPED

if TYPE_CHECKING:
    from tt2gl.analysis.propagation import Propagation


class Rearranged:
    """Decides how such values take their operands, where layouts flow through the rest of the graph."""

    def __init__(self, flow: Propagation) -> None:
        self.flow, self.decisions = flow, flow.decisions

    def reorder(self, node: Node, term: Term, spot: Spot) -> None:
        """What is reshaped or permuted comes in a layout of its own; Gluon infers the result's, which is converted.

        What can be made anew is made in the layout that becomes the one wanted when it is reshaped; and so is what is
        computed and has no layout of its own: a tile that is stored then, what repeats a smaller value. What is stored
        as it is, too, is permuted as it was converted for that, where no more is to be done.
        """
        pairs = merged(node) if id(node) in self.flow.products.unpacked else None
        halves = half(term, pairs) if pairs is not None else None
        if pairs is not None and halves is not None:
            for operand in pairs.operands:
                self.flow.resolve(operand, halves, spot.clone)
            self.decisions.converts[spot] = term
            return
        for operand in node.operands:
            before = self._turned_back(node, operand, term) or stored_unturned(
                node, term, self.flow.readers, self.flow.classes
            )
            is_read = in_ring(operand) and isinstance(term, Operand)
            is_made = operand.cheap and (is_read or not in_ring(operand)) or is_computed_or_given(operand)
            if before is None and is_made and operand.natural is None:
                before = unreshaped(node, term)
            if before is not None:
                self.flow.resolve(operand, before, spot.clone)
            else:
                self.flow.settle(operand, spot.clone)
        if node.function in HELPED:
            self.decisions.indexed[spot] = node.function
        if not node.several and (node.natural != term or not isinstance(term, Inferred | Turned)):
            self.decisions.converts[spot] = term

    def concatenate(self, node: Node, term: Term, spot: Spot) -> None:
        """What comes one after the other has one layout; Gluon infers that of both together, which is converted."""
        naturals = (operand.natural for operand in node.operands)
        own = next((each for each in naturals if isinstance(each, Root | Cut)), None) or self.flow.default(
            node.operands[0]
        )
        for operand in node.operands:
            self.flow.resolve(operand, own, spot.clone)
        self.decisions.converts[spot] = term

    def _turned_back(self, node: Node, operand: Node, term: Term) -> Term | None:
        """The layout of what is transposed to a product's operand, where it was loaded for that; None elsewhere.

        So is what a ring holds, which is read in any layout, and changed element by element on its way.
        """
        if node.order != (1, 0) or operand.natural is not None:
            return None
        if isinstance(term, Root) and operand.cheap and self.flow.cores.is_accumulator(term):
            return Turned(term, node.dims_known)
        if not isinstance(term, Operand):
            return None
        loaded = id(node) in self.flow.products.unpacked or any(
            is_operand(each, self.flow.scene) for each in sources(operand)
        )
        return Turned(term, node.dims_known) if loaded or _is_of_ring(operand) else None

    def interleave(self, node: Node, term: Term, spot: Spot) -> None:
        """Interleaved values: each in the layout that the result's is twice of, else both in one of theirs."""
        own = node.natural if node.natural is not None else term
        halves = halved(own, len(node.shape) - 1) or self.flow.operand_term(node)
        for operand in node.operands:
            self.flow.resolve(operand, halves, spot.clone)
        self.decisions.converts[spot] = term

    def gather(self, node: Node, term: Term, spot: Spot) -> None:
        """What is gathered comes as its indices do, and as what it is gathered from where that has to."""
        source, indices = node.operands
        own = node.natural or term
        if node.operand_term is not None:
            self.flow.resolve(source, own, spot.clone)
        else:
            self.flow.settle(source, spot.clone)
        self.flow.resolve(indices, own, spot.clone)
        self.flow.convert(node, own, term, spot)

    def join(self, node: Node, term: Term, spot: Spot) -> None:
        """Joined values: each in the layout that the pairs are made of."""
        own = node.natural if node.natural is not None else self.flow.paired(node)
        halves = node.operands[0].natural
        if isinstance(own, Inferred):
            for operand in node.operands:
                self.flow.settle(operand, spot.clone)
            self.flow.convert(node, own, term, spot)
            return
        split_before = isinstance(halves, Cut) and halves.parent == own
        taken = own.parent if isinstance(own, Pair) and not split_before else Cut(len(node.operands[0].shape), own)
        for operand in node.operands:
            self.flow.resolve(operand, taken, spot.clone)
        self.flow.convert(node, own, term, spot)


def _is_of_ring(value: Node) -> bool:
    """Whether a value is a ring's slot, or computed of one element by element."""
    if in_ring(value):
        return True
    if (made := made_once(value)) is not None:
        return _is_of_ring(made.node)
    return value.kind == "elementwise" and any(map(_is_of_ring, value.operands))
