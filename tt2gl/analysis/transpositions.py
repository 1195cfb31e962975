"""Transpositions on their way to products: those that nothing else reads."""

from __future__ import annotations

from collections import defaultdict

from tt2gl.analysis.graph import Graph, Node


class _Readers:
    """Who reads each value, itself or by a name of its own."""

    def __init__(self, graph: Graph) -> None:
        self._at: dict[int, list[Node]] = defaultdict(list)
        self._shared: set[int] = set()
        reads: dict[int, list[Node]] = defaultdict(list)
        for node in graph.nodes:
            for value in (*node.operands, *([node.value] if node.value is not None else [])):
                self._at[id(value)].append(node)
            if node.kind == "read" and node.web is not None:
                reads[id(node.web.find())].append(node)
        for web in graph.webs:
            for definition in web.definitions if web.merged is None else ():
                self._at[id(definition.node)] += reads[id(web)]
                if web.made_once() is None:
                    self._shared.add(id(definition.node))

    def lead_to_products(self, value: Node) -> bool:
        """Whether products alone read a value: as an operand, or what is computed of it alone element by element."""
        readers = [] if id(value) in self._shared else self._at[id(value)]
        return bool(readers) and all(
            _is_operand(value, each) or _is_of(value, each) and self.lead_to_products(each) for each in readers
        )


def transposed_for_products(graph: Graph) -> set[int]:
    """The transpositions of matrices that products alone read, by their `id`."""
    readers = _Readers(graph)
    return {id(node) for node in graph.nodes if node.order == (1, 0) and readers.lead_to_products(node)}


def _is_operand(value: Node, reader: Node) -> bool:
    return reader.kind == "dot" and any(operand is value for operand in reader.operands[:2])


def _is_of(value: Node, reader: Node) -> bool:
    """Whether a reader is another name of a value, or has an element of its own for each."""
    if reader.kind in ("read", "call", "argument"):
        return True
    return reader.kind == "elementwise" and all(operand is value for operand in reader.operands)
