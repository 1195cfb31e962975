"""Transpositions that a product casts: they come to its registers through shared memory, and are cast there.

    b_h += tl.dot(tl.trans(k), x)
    b_y += tl.dot(tl.trans(k).to(y.dtype), y)

    y_lhs = k_smem.load(lhs_layout)                     # of `k_smem`, that holds `tl.trans(k)`
    b_y = warpgroup_mma(y_lhs.to(y.dtype), y, b_y)

Triton brings the conversion of an operand above its casts, where it is one with those of other products that take the
same. What is computed of tiles of rings would else be computed once more, in the registers of the operand: a product
of decayed keys took 211 registers a thread so, for 142.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt2gl.analysis.decisions import Clone, Spot
from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import Root, Stored, Term

if TYPE_CHECKING:
    from tt2gl.analysis.propagation import Propagation


def through_memory(flow: Propagation, dot: Node, place: int, operand: Node, term: Term, clone: Clone) -> bool:
    """Bring such an operand to the registers `term` of its product, where Triton does; whether it is one."""
    value = cast_transposition(operand)
    if value is None or value is operand or (slot := cast_slot(flow.cores, dot, place, value, flow.graph)) is None:
        return False
    flow.settle(value, clone)
    spot = Spot(value.site, clone)
    # It is stored as it comes.
    flow.decisions.converts.pop(spot, None)
    flow.decisions.stores[spot], flow.decisions.loads[spot] = slot, term
    return True


def cast_transposition(operand: Node) -> Node | None:
    """The transposition of what has no layout of its own, a ring's tile say, that is cast to an operand."""
    while operand.kind == "elementwise" and len(operand.operands) == 1 and operand.natural is None:
        operand = operand.operands[0]
    return operand if operand.kind == "opaque" and operand.order == (1, 0) and operand.natural is None else None


def cast_slot(cores: TensorCores, dot: Node, place: int, value: Node, graph: Graph) -> Stored | None:
    """Where the value is put that an operand is cast from, if it is under every launch; None for others."""
    facts = {index: fact.b if place else fact.a for index, fact in cores.dots[dot.chain].facts.items()}
    layouts = {index: fact.recast for index, fact in facts.items() if fact.recast is not None}
    if not facts or len(layouts) < len(facts):
        return None
    shapes = {index: fact.shape for index, fact in facts.items()}
    name = f"{cores.dots[dot.chain].name}_{('lhs', 'rhs')[place]}_shared"
    root = Root(cores.register(cores.dims(value, shapes), shapes, layouts, name))
    return Stored(root, cores.spelled(value, graph, shapes), in_place=False)
