"""Operands that are cast to more bits as they are loaded: they come to a product's registers as they were loaded.

    x = tl.load(x_ptrs).to(tl.float32)
    y = tl.dot(x, w)                        # `x` is in registers here, and in shared memory there
    z = tl.dot(v, x)

Triton casts after the tile has passed shared memory to the operand's layout, which it does in half of the bytes and of
the registers. (Its pass RemoveLayoutConversions brings the conversion of an operand above all that is computed element
by element.) On sm90 the backward pass of a linear attention spills 6 registers a thread so, for 75. A product of the
tile's transposition reads what another one of the tile has in shared memory. (Triton converts what was loaded for it,
which takes it through shared memory a second time.)
"""

from __future__ import annotations

from tt2gl.analysis.graph import Graph, Node, made_once
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import Root, Stored


def narrow_slot(cores: TensorCores, dot: Node, place: int, operand: Node, graph: Graph) -> Stored | None:
    """Where the tile is put that an operand is widened from; None for other operands, and where it comes otherwise."""
    facts = {i: fact.b if place else fact.a for i, fact in cores.dots[dot.chain].facts.items()}
    layouts = {index: fact.widened for index, fact in facts.items() if fact.widened is not None}
    load = _widened(operand)
    if load is None or operand.web is None or len(layouts) < len(facts):
        return None
    shapes = {index: fact.shape for index, fact in facts.items()}
    dims = cores.dims(operand, shapes)
    root = Root(cores.register(dims, shapes, layouts, f"{operand.web.find().name}_narrow_shared"))
    element = graph.element_type(load)
    return Stored(root, cores.spelled(operand, graph, shapes), in_place=False, narrow=element)


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
    """The load of a tile that is an operand by its only name, cast to more bits; None for other operands."""
    made = made_once(operand)
    if made is None or made.node.kind != "elementwise" or len(made.node.operands) != 1:
        return None
    tile = made.node.operands[0]
    if (loaded := made_once(tile)) is not None:
        tile = loaded.node
    return tile if tile.kind == "load" and not tile.staged and tile.bits < made.node.bits else None
