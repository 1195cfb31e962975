"""Operands that are cast to more bits as they are loaded: they come to a product's registers as they were loaded.

    x = tl.load(x_ptrs).to(tl.float32)
    y = tl.dot(x, w)                        # `x` is in registers here, and in shared memory there
    z = tl.dot(v, x)

Triton casts after the tile has passed shared memory to the operand's layout, which it does in half of the bytes and of
the registers. (Its pass RemoveLayoutConversions brings the conversion of an operand above all that is computed element
by element.) On sm90 the backward pass of a linear attention spills 6 registers a thread so, for 75. A product of the
tile's transposition in registers reads what another one of the tile has in shared memory. (Triton converts what was
loaded for it, which takes it through shared memory a second time.) A tile that is cast where it is taken is put there,
too: the product of `v.to(tl.float32)` takes `v_smem.load(y_rhs_layout).to(gl.float32)`.

On AMD nothing is put anywhere, as the compiler finds memory for each conversion, which serves others before and after:

    y = mfma(gl.convert_layout(x.to(x_ptr.dtype.element_ty), y_lhs_layout).to(x.dtype), ..)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt2gl.analysis.decisions import Clone, Spot
from tt2gl.analysis.graph import Definition, Graph, Node, Web, made_once
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import Root, Stored, Term

if TYPE_CHECKING:
    from tt2gl.analysis.propagation import Propagation

_ADDED_BITS_ALONE = 16
"""The bits of floats that other floats have all values of: casting these back takes nothing."""


class WidenedOperands:
    """Brings such tiles to products' registers, where Triton does; says whether it has."""

    def __init__(self, flow: Propagation) -> None:
        self.flow = flow
        self.cores, self.graph, self.decisions = flow.cores, flow.graph, flow.decisions

    def stored(self, dot: Node, place: int, operand: Node, term: Term, clone: Clone) -> bool:
        """Through shared memory, where it is put as soon as it is loaded."""
        slot = narrow_slot(self.cores, dot, place, operand, self.graph)
        if slot is not None and (tile := _cast_name(operand)) is not None:
            return self._cast(tile, slot, term, clone)
        web = operand.web.find() if operand.web is not None else None
        made = web.made_once() if web is not None else None
        if slot is None or web is None or made is None or web.natural is None:
            return not self.cores.in_memory(dot, place) and self._turned(operand, term, clone)
        self.decisions.convert_after(made, web.name, web.natural, slot)
        self.decisions.reads[Spot(operand.site, clone)] = (web.name, slot)
        self.decisions.loads[Spot(operand.site, clone)] = term
        return True

    def _cast(self, tile: Node, slot: Stored, term: Term, clone: Clone) -> bool:
        """By the tile's own name, which the product's operand casts: that is read from there, and cast."""
        made = made_once(tile)
        if made is None or (web := named(made)) is None or web.natural is None:
            return False
        self.decisions.convert_after(made, web.name, web.natural, slot)
        self.decisions.reads[Spot(tile.site, clone)] = (web.name, slot)
        self.decisions.loads[Spot(tile.site, clone)] = term
        return True

    def _turned(self, operand: Node, term: Term, clone: Clone) -> bool:
        """Its transposition in registers, from where another product has the tile, as it was loaded."""
        slot = turned_slot(self.cores, operand, self.graph)
        made = made_once(operand.operands[0]) if slot is not None else None
        if slot is None or made is None or (web := named(made)) is None or web.natural is None:
            return False
        self.decisions.convert_after(made, web.name, web.natural, slot)
        self.decisions.reads[Spot(operand.operands[0].site, clone)] = (web.name, slot)
        self.decisions.views[Spot(operand.site, clone)] = (1, 0)
        self.decisions.loads[Spot(operand.site, clone)] = term
        return True

    def converted(self, dot: Node, place: int, operand: Node, term: Term, clone: Clone) -> bool:
        """By a conversion for each product."""
        element, spot = narrow_element(self.cores, dot, place, operand, self.graph), Spot(operand.site, clone)
        if element is None:
            return False
        self.flow.resolve(operand, term, clone)
        if spot in self.decisions.converts:
            self.decisions.shortened[spot] = element
        return True


def named(source: Definition) -> Web | None:
    """The name of a value with a layout of its own, by which it can be put into memory where it is made."""
    web = source.web.find() if source.web is not None else None
    return web if web is not None and web.natural is not None and source.entry is None else None


def narrow_slot(cores: TensorCores, dot: Node, place: int, operand: Node, graph: Graph) -> Stored | None:
    """Where the tile is put that an operand is widened from; None for other operands, and where it comes otherwise."""
    facts = {i: fact.b if place else fact.a for i, fact in cores.dots[dot.chain].facts.items()}
    layouts = {index: fact.widened for index, fact in facts.items() if fact.widened is not None}
    load = _widened(operand)
    tile = _cast_name(operand)
    web = (operand if tile is None else tile).web
    if load is None or web is None or len(layouts) < len(facts):
        return None
    shapes = {index: fact.shape for index, fact in facts.items()}
    dims = cores.dims(operand, shapes)
    name, element = f"{web.find().name}_narrow_shared", graph.element_type(load)
    if tile is not None:
        name, element = f"{web.find().name}_shared", ""
    root = Root(cores.register(dims, shapes, layouts, name))
    return Stored(root, cores.spelled(operand, graph, shapes), in_place=False, narrow=element)


def narrow_element(cores: TensorCores, dot: Node, place: int, operand: Node, graph: Graph) -> str | None:
    """The type, as source, that the tile of an operand has as it is loaded, where Triton widens it in registers.

    None for others, and where casting back would compute anything.
    """
    facts = (fact.b if place else fact.a for fact in cores.dots[dot.chain].facts.values())
    load = _widened(operand) if all(fact.widened is not None for fact in facts) else None
    if load is None or operand.web is None or load.bits < _ADDED_BITS_ALONE:
        return None
    return graph.element_type(load)


def turned_slot(cores: TensorCores, operand: Node, graph: Graph) -> Stored | None:
    """Where another product has the tile, as it was loaded, whose transposition an operand is; None for others."""
    made = made_once(operand.operands[0]) if operand.kind == "opaque" and operand.order == (1, 0) else None
    if made is None:
        return None
    others = [(each, place) for each in graph.nodes if each.kind == "dot" for place in (0, 1)]
    same = ((each, place) for each, place in others if made_once(each.operands[place]) is made)
    slots = (narrow_slot(cores, each, place, each.operands[place], graph) for each, place in same)
    return next((each for each in slots if each is not None), None)


def _widened(operand: Node) -> Node | None:
    """The load of a tile that is an operand by its only name, cast to more bits; None for other operands.

    Or the operand casts it, by the only name that it has.
    """
    if (cast := _cast_name(operand)) is not None:
        made = made_once(cast)
        return made.node if made is not None else None
    made = made_once(operand)
    if made is None or made.node.kind != "elementwise" or len(made.node.operands) != 1:
        return None
    tile = made.node.operands[0]
    if (loaded := made_once(tile)) is not None:
        tile = loaded.node
    return tile if tile.kind == "load" and not tile.staged and tile.bits < made.node.bits else None


def _cast_name(operand: Node) -> Node | None:
    """The only name of a loaded tile that an operand casts to more bits where it is taken; None for other operands."""
    if operand.kind != "elementwise" or operand.function != "to":
        return None
    (tile,) = operand.operands
    made = made_once(tile)
    is_tile = made is not None and made.node.kind == "load" and not made.node.staged
    return tile if is_tile and tile.bits < operand.bits else None
