"""Names of values that are wider than what they are made of, and are wanted in other layouts than theirs.

    x = tl.load(x_ptr + offs).to(tl.float32)            x = gl.convert_layout(gl.load(..), y_layout).to(gl.float32)
    y = x * scale                                       y = x * scale
    tl.store(y_ptr + offs, y)                           gl.store(y_ptr + offs_y, y)

What they are made of is converted instead: a row before it is repeated, or bytes before they become floats. Triton's
pass RemoveLayoutConversions moves conversions above extensions and broadcasts, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence

from tt2gl.analysis.graph import Graph, Node, Web
from tt2gl.analysis.terms import Root, Term

Written = Callable[[Node], Term]


def forget_widened(graph: Graph, written: Written) -> None:
    """Give up the layouts of such names; each gets the first that it is wanted in. `written`: a store's layout."""
    readers = readers_of(graph)
    elsewhere = _cheaper_elsewhere(graph, readers, written)
    forgotten: list[tuple[Web, Node]] = []
    for web in graph.distinct_webs():
        made = web.made_once()
        if made is None or not isinstance(web.natural, Root) or made.node.kind != "elementwise":
            continue
        wider = converted_bits(made.node, elsewhere) < made.node.elements * made.node.bits
        if wider and _all_in(readers[id(web)], elsewhere):
            forgotten.append((web, made.node))
    for web, node in forgotten:
        for each in (node, *readers[id(web)]):
            each.natural = None
        web.natural = None


def converted_bits(node: Node, through: Container[int] = ()) -> int:
    """The bits that are converted to have a value in another layout than its own, in the cheapest way.

    `through`: reads of names that can be had in that layout by what they are made of.
    """
    return _converted_bits(node, through, {})


def _converted_bits(node: Node, through: Container[int], known: dict[int, int]) -> int:
    if node.natural is None:
        return 0
    if id(node) not in known:
        known[id(node)] = node.elements * node.bits
        if parts := _parts(node, through):
            made = sum(_converted_bits(part, through, known) for part in parts)
            known[id(node)] = min(known[id(node)], made)
    return known[id(node)]


def _parts(node: Node, through: Container[int]) -> Sequence[Node]:
    """The values that could be converted in the place of one."""
    if node.kind == "read" and node.web is not None and id(node) in through:
        return [definition.node for definition in node.web.find().definitions]
    return node.operands if node.kind == "elementwise" and not node.several else ()


def readers_of(graph: Graph) -> Mapping[int, list[Node]]:
    """Who reads each value, and each name."""
    readers: dict[int, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in (*node.operands, *node.scales):
            readers[id(value)].append(node)
        if node.value is not None:
            readers[id(node.value)].append(node)
        if node.web is not None:
            readers[id(node.web.find())].append(node)
    return readers


def _cheaper_elsewhere(graph: Graph, readers: Mapping[int, list[Node]], written: Written) -> set[int]:
    """The values that are wanted in other layouts alone, where what they are made of takes fewer bits to convert."""
    kept: set[int] = set()
    while True:
        found = _wanted_elsewhere(graph, readers, written, kept)
        dear = {
            id(node)
            for node in graph.nodes
            if id(node) in found and any(_wants_another(reader, node, written) for reader in readers[id(node)])
            if converted_bits(node, found) >= node.elements * node.bits
        }
        if not dear:
            return found
        kept |= dear


def _wanted_elsewhere(
    graph: Graph, readers: Mapping[int, list[Node]], written: Written, kept: Container[int]
) -> set[int]:
    """The values that are wanted in other layouts than theirs alone, they themselves or what is computed of them.

    `kept`: those that are converted as they are.
    """
    names: dict[int, list[Web]] = defaultdict(list)
    for web in graph.distinct_webs():
        for definition in web.definitions:
            names[id(definition.node)].append(web)
    found: set[int] = set()

    def is_elsewhere(value: Node, reader: Node) -> bool:
        return _wants_another(reader, value, written) or _is_computed_of(reader, value) and id(reader) in found

    # Who reads a value stands behind it.
    for node in reversed(graph.nodes):
        direct = all(is_elsewhere(node, reader) for reader in readers[id(node)])
        named = all(web.made_once() and _all_in(readers[id(web)], found) for web in names[id(node)])
        if direct and named and (readers[id(node)] or names[id(node)]) and id(node) not in kept:
            found.add(id(node))
    return found


def _all_in(nodes: Sequence[Node], found: Container[int]) -> bool:
    return bool(nodes) and all(id(node) in found for node in nodes)


def _wants_another(reader: Node, value: Node, written: Written) -> bool:
    """Whether a value is wanted in another layout than its own: in a slice of one, or in its reader's."""
    if reader.kind == "expand":
        return reader.natural is None
    if value.natural is None or value.elements != reader.elements:
        return False
    if reader.kind == "store":
        return reader.anchored and written(reader) != value.natural
    return reader.kind == "elementwise" and reader.natural not in (None, value.natural)


def _is_computed_of(reader: Node, value: Node) -> bool:
    """Whether a reader has an element of its own for each of a value, in its layout, and is computed as often."""
    alike = reader.natural == value.natural and reader.elements == value.elements
    return reader.kind == "elementwise" and alike and reader.depth >= value.depth
