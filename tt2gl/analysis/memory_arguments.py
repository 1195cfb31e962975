"""Arguments of helpers that only products read: their caller puts them into shared memory, once for all its calls.

Several products may read one, turned too, where all take it from one tile as it lies.

acc = attend(acc, q, k_ptrs, 0, full)           # before: each call puts `q` into shared memory on its entry
acc = attend(acc, q, k_ptrs, full, end)

q_smem = gl.allocate_shared_memory(...)         # after
acc = attend(acc, q_smem, k_ptrs, 0, full)
acc = attend(acc, q_smem, k_ptrs, full, end)

Triton sees both calls at once, and has one tile. A value that a second call puts there again stays in registers
through the first one's loop: 28 of them spill on sm80, in an attention of two phases with tiles of 128x64.
"""

from __future__ import annotations

from collections.abc import Iterator

from tt2gl.analysis.graph import Definition, Graph, Node, Web

_SIDES = 2

Use = tuple[Node, int, bool]
"""A product that takes a value as its operand of a number, and whether turned."""

Given = tuple[Node, Web, Definition]
"""What a parameter is given, what that is called in the caller, and where it is made."""


def caller_value(graph: Graph, web: Web, made: Definition) -> Given | None:
    """What a parameter is given, where its callers can put it into shared memory.

    All must, as the helper has one text: each gives it a name that is made in one place, and the helper reads the
    parameter nowhere but as products' operands. Where those start from zeros of extents that differ from call to call,
    and that the parameters alone say, shared memory would not say them as constants.
    """
    if any(len(dot.operands) == _SIDES and graph.by_parameters(dot) for dot, _, _ in uses(graph, web)):
        return None
    alike = calls_alike(graph, web)
    given = [_given(graph, each, definition) for each in alike for definition in each.definitions if definition.entry]
    return None if any(each is None for each in given) else _given(graph, web, made)


def _given(graph: Graph, web: Web, made: Definition) -> Given | None:
    value = made.node.value
    if made.entry is None or made.node.kind != "argument" or value is None or value.kind != "read" or value.web is None:
        return None
    given = value.web.find()
    if given.natural is None or len(given.definitions) != 1 or given.definitions[0].entry is not None:
        return None
    if len(web.definitions) != 1 or len(list(uses(graph, web))) != len(reads(graph, web)):
        return None
    return value, given, given.definitions[0]


def calls_alike(graph: Graph, web: Web) -> list[Web]:
    """What a helper's name is in each of its calls."""
    return [
        each for each in graph.webs if each.merged is None and (each.name, each.function) == (web.name, web.function)
    ]


def uses(graph: Graph, web: Web) -> Iterator[Use]:
    """The products that take a name, as it is or turned."""
    read = {id(node) for node in reads(graph, web)}
    turned = {id(node): id(node.operands[0]) for node in graph.nodes if node.kind == "opaque" and node.order}
    for dot in (node for node in graph.nodes if node.kind == "dot"):
        for place, operand in enumerate(dot.operands[:2]):
            if id(operand) in read or turned.get(id(operand)) in read:
                yield dot, place, id(operand) not in read


def reads(graph: Graph, web: Web) -> list[Node]:
    """Where a name is read."""
    return [node for node in graph.nodes if node.kind == "read" and node.web is not None and node.web.find() is web]
