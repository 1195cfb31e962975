"""Arguments of helpers that descriptors' tiles are, and that only products read: those take them where they lie.

q = load_tile(desc_q, [start, 0]).load(tile_layout)     # before: to registers, and each call puts it in memory again
acc = attend(acc, q, desc_k, 0, start)
acc = attend(acc, q, desc_k, start, end)

q = load_tile(desc_q, [start, 0])                       # after
acc = attend(acc, q, desc_k, 0, start)
acc = attend(acc, q, desc_k, start, end)

What is loaded by pointers is put there by its caller (`memory_arguments`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt2gl.analysis.cheap import in_ring, tile_in_ring
from tt2gl.analysis.decisions import Clone, Spot
from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.memory_arguments import calls_alike, reads, uses
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import IN_RING

if TYPE_CHECKING:
    from tt2gl.analysis.propagation import Propagation


def taken_as_given(flow: Propagation, dot: Node, place: int, operand: Node, clone: Clone) -> bool:
    """Have a product take an operand where a helper was given it, if it is such under every launch; whether it is."""
    if not _is_given(flow.cores, flow.graph, dot, place):
        return False
    graphs = [scene.graph for scene in flow.cores.scenes if scene.graph is not flow.graph]
    alike = [(graph, node) for graph in graphs for node in graph.nodes if (node.kind, node.chain) == ("dot", dot.chain)]
    if not all(_is_given(flow.cores, graph, node, place) for graph, node in alike):
        return False
    read = _unturned(operand)
    flow.resolve(read, IN_RING, clone)
    if read is not operand:
        flow.decisions.views[Spot(operand.site, clone)] = operand.order
    return True


def _is_given(cores: TensorCores, graph: Graph, dot: Node, place: int) -> bool:
    """Whether each call of a helper gives it an operand as a tile, by a name that nothing else reads in its caller.

    The helper reads its own nowhere but as operands that their instructions take from shared memory.
    """
    read = _unturned(dot.operands[place])
    if read.kind != "read" or read.web is None:
        return False
    values: list[Node] = []
    for each in calls_alike(graph, read.web.find()):
        made = each.made_once()
        if made is None or made.entry is None or made.node.kind != "argument" or made.node.value is None:
            return False
        taken = list(uses(graph, each))
        if len(taken) != len(reads(graph, each)) or not all(cores.in_memory(node, at) for node, at, _ in taken):
            return False
        values.append(made.node.value)
    tiles = [tile_in_ring(value) for value in values if value.kind == "read" and in_ring(value)]
    if len(tiles) < len(values) or not all(tile is not None and tile.tile for tile in tiles):
        return False
    names = [value.web.find() for value in values if value.web is not None]
    alone = {id(node) for name in names for node in reads(graph, name)} == {id(value) for value in values}
    made_once = all(name.made_once() is not None for name in names)
    return alone and made_once and all(cores.read_in_place(dot, place, value) for value in values)


def _unturned(operand: Node) -> Node:
    """What an operand is the transposition of; itself, where it is none."""
    return operand.operands[0] if operand.kind == "opaque" and operand.order else operand
