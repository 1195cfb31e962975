"""Who reads values, and what becomes of them in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tt2gl.analysis.graph import Graph, Node


class Readers:
    """Who reads each value, itself or by a name of its own."""

    def __init__(self, graph: Graph) -> None:
        self._at: dict[int, list[Node]] = defaultdict(list)
        self._shared: set[int] = set()
        self._alike: dict[tuple[object, ...], list[Node]] = defaultdict(list)
        reads: dict[int, list[Node]] = defaultdict(list)
        for node in graph.nodes:
            self._alike[_place(node)].append(node)
            for value in (*node.operands, *([node.value] if node.value is not None else [])):
                self._at[id(value)].append(node)
            if node.kind == "read" and node.web is not None:
                reads[id(node.web.find())].append(node)
        for web in graph.webs:
            for definition in web.definitions if web.merged is None else ():
                self._at[id(definition.node)] += reads[id(web)]
                if web.made_once() is None:
                    self._shared.add(id(definition.node))

    def of(self, value: Node) -> list[Node]:
        """All that read a value, or a name of its own."""
        return [] if id(value) in self._shared else self._at[id(value)]

    def of_any(self, value: Node) -> list[Node]:
        """All that read a value, or a name that may hold it."""
        return self._at[id(value)]

    def alike(self, value: Node) -> list[Node]:
        """What all calls of a function make at a value's place, itself among them."""
        return self._alike[_place(value)]

    def only(self, value: Node) -> Node | None:
        """What alone reads a value, or a name that has no other; None where several do, or nothing."""
        readers = self.of(value)
        return readers[0] if len(readers) == 1 else None

    def lead_to(self, value: Node, ends: Callable[[Node, Node], bool]) -> bool:
        """Whether all that read a value, or what is computed of it alone element by element, do so as `ends` says."""
        readers = self.of(value)
        return bool(readers) and all(
            ends(value, each) or _is_of(value, each) and self.lead_to(each, ends) for each in readers
        )


def _is_of(value: Node, reader: Node) -> bool:
    """Whether a reader is another name of a value, or has an element of its own for each."""
    if reader.kind in ("read", "call", "argument"):
        return True
    return reader.kind == "elementwise" and all(operand is value for operand in reader.operands)


def _place(value: Node) -> tuple[object, ...]:
    return value.kind, value.site.function, value.site.position
