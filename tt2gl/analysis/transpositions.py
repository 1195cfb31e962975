"""Transpositions on their way to products: those that nothing else reads."""

from __future__ import annotations

from tt2gl.analysis.graph import Graph, Node
from tt2gl.analysis.readers import Readers


def transposed_for_products(graph: Graph) -> set[int]:
    """The transpositions of matrices that products alone read, by their `id`."""
    readers = Readers(graph)
    return {id(node) for node in graph.nodes if node.order == (1, 0) and readers.lead_to(node, _is_operand)}


def _is_operand(value: Node, reader: Node) -> bool:
    return reader.kind == "dot" and any(operand is value for operand in reader.operands[:2])
