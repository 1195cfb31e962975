"""Names of values that are wider than what they are made of, and are wanted in other layouts than theirs.

    x = tl.load(x_ptr + offs).to(tl.float32)            x = gl.convert_layout(gl.load(..), y_layout).to(gl.float32)
    y = x * scale                                       y = x * scale
    tl.store(y_ptr + offs, y)                           gl.store(y_ptr + offs_y, y)

What they are made of is converted instead: a row before it is repeated, or bytes before they become floats. Triton's
pass RemoveLayoutConversions moves conversions above extensions and broadcasts, too. So it is with a name that is wanted
in its own layout besides:

    b = tl.load(b_ptrs).to(tl.float32)          b_narrow = gl.load(b_ptrs)
    active = tl.max(b)                          b = b_narrow.to(gl.float32)
    s = tl.where(b >= 0, b, 0.0) + tl.dot(..)   b_s = gl.convert_layout(b_narrow, s_layout).to(gl.float32)

The first passes half of the shared memory so, and has what is computed of it for free in the other layout. An address
has 64 bits, and is made there of offsets that have fewer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence

from tt2gl.analysis.graph import Graph, Node, Web, made_once, operands_rank
from tt2gl.analysis.terms import Cut, Root, Term, cut

Written = Callable[[Node], Term]
Recast = Mapping[int, int]
"""Reads of names that can be had in another layout by a cast there, by identity, with the bits they are cast from."""

_NOTHING: Mapping[int, int] = {}
_BYTE = 8


def forget_widened(graph: Graph, written: Written, recast: Recast = _NOTHING) -> None:
    """Give up the layouts of such names; each gets the first that it is wanted in. `written`: a store's layout."""
    readers = readers_of(graph)
    elsewhere = _cheaper_elsewhere(graph, readers, written, recast)
    forgotten: list[tuple[Web, Node]] = []
    for web in graph.distinct_webs():
        made = web.made_once()
        if made is None or not isinstance(web.natural, Root | Cut) or made.node.kind != "elementwise":
            continue
        if is_wider(made.node, elsewhere, recast) and _all_in(readers[id(web)], elsewhere):
            forgotten.append((web, made.node))
    for web, node in forgotten:
        for each in (node, *readers[id(web)]):
            each.natural = None
        web.natural = None


def recasts(graphs: Sequence[Graph]) -> Recast:
    """The reads of names that are cast to more bits under some launch, with the bits that they are cast from there.

    Under others a name may be cast from as many: its text is the same.
    """
    places: dict[object, list[tuple[Node, Node]]] = defaultdict(list)
    for node in (node for graph in graphs for node in graph.nodes):
        if (source := _cast_from(node)) is not None:
            places[node.site.function, node.site.position].append((node, source))
    found: dict[int, int] = {}
    for pairs in places.values():
        if any(source.bits < node.bits for node, source in pairs):
            bits = min(source.bits for _, source in pairs)
            found |= {id(node): bits for node, _ in pairs}
    return found


def _cast_from(node: Node) -> Node | None:
    """What the name of a tile that is read here is cast from by its only statement, in the layout that both have."""
    made = made_once(node) if len(node.shape) > 1 else None
    if made is None or not made.clonable or made.depth > node.depth or made.node.function != "to":
        return None
    source = made.node.operands[0]
    alike = source.natural is not None and source.natural == made.own_web().natural
    return source if alike and not source.staged and source.bits >= _BYTE else None


def is_wider(node: Node, through: Container[int] = (), recast: Recast = _NOTHING) -> bool:
    """Whether it takes fewer bits to have a value in another layout by what it is made of than as it is.

    `through`: reads of names that can be had in that layout by what they are made of. A mask is compared there again
    where casts give all that it is made of, which has more bits, but is converted for others as well.
    """
    return _is_better(node, _converted(node, through, recast, {}))


def _is_better(node: Node, leaves: _Leaves) -> bool:
    """Whether a value is had by converting `leaves`: as many bits are better, too, if a row's expanded, or widened.

    Triton's pass moves the conversion above that as well, and computes the value where a thread has less of it.
    """
    bits, whole = sum(leaves.values()), node.elements * node.width
    alike = [*leaves] if bits == whole and node.kind != "expand" else []
    return bits < whole or _is_mask_of_casts(node, leaves) or _are_free(alike)


_Leaves = Mapping[tuple[int, bool, str], int]


def _are_free(leaves: Sequence[tuple[int, bool, str]]) -> bool:
    """Whether what takes as many bits to convert is converted in the place of what is made of it.

    Triton's pass moves a conversion above one extension, and above none of several.
    """
    return any(how == "row" for _, _, how in leaves) or [how for _, _, how in leaves] == ["widened"]


def _is_mask_of_casts(node: Node, leaves: _Leaves) -> bool:
    return node.bits == 1 and bool(leaves) and all(is_cast for _, is_cast, _ in leaves)


def _converted(node: Node, through: Container[int], recast: Recast, known: dict[int, _Leaves]) -> _Leaves:
    """The bits of the values that are converted, each once, by identity, if cast there, and what is done then."""
    if node.natural is None:
        return {}
    if id(node) in recast and node.web is not None:
        return {(id(node.web.find()), True, ""): node.elements * recast[id(node)]}
    if id(node) not in known:
        known[id(node)] = {(id(node), False, "row" if node.kind == "expand" else ""): node.elements * node.width}
        if parts := _parts(node, through):
            made = {of: bits for part in parts for of, bits in _converted(part, through, recast, known).items()}
            if node.function == "to" and node.bits > node.operands[0].bits:
                made = {(of, is_cast, how or "widened"): bits for (of, is_cast, how), bits in made.items()}
            if _is_better(node, made):
                known[id(node)] = made
    return known[id(node)]


def _parts(node: Node, through: Container[int]) -> Sequence[Node]:
    """The values that could be converted in the place of one."""
    if node.kind == "read" and node.web is not None and id(node) in through:
        made = [definition.node for definition in node.web.find().definitions]
        # A name that is read in its own layout as well is there in that.
        return made if all(id(each) in through for each in made) else ()
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


def _cheaper_elsewhere(graph: Graph, readers: Mapping[int, list[Node]], written: Written, recast: Recast) -> set[int]:
    """The values that are wanted in other layouts alone, where what they are made of takes fewer bits to convert.

    Not what others are made of that are converted as they are, as a mask is before it becomes numbers.
    """
    kept: set[int] = set()
    while True:
        found = _wanted_elsewhere(graph, readers, written, kept)
        known: dict[int, _Leaves] = {}
        dear = {
            id(node)
            for node in graph.nodes
            if id(node) in found
            if node.bits == 1 or any(_wants_another(reader, node, written) for reader in readers[id(node)])
            if not _is_better(node, _converted(node, found, recast, known))
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
    """Whether a value is wanted in another layout than its own: in a slice of one, or in its reader's.

    What a product is added to is wanted in the product's, and a row that meets a tile in a slice of the tile's.
    """
    if reader.kind == "expand":
        return reader.natural is None
    if reader.kind == "elementwise" and (missing := operands_rank(reader) - len(value.shape)) > 0:
        return value.natural is not None and (reader.natural is None or value.natural != cut(reader.natural, missing))
    if reader.kind == "dot":
        return any(each is value for each in reader.operands[2:]) and reader.natural != value.natural
    if value.natural is None or value.elements != reader.elements:
        return False
    if reader.kind == "store":
        return written(reader) != value.natural and not _is_shorter_there(reader, value)
    return reader.kind == "elementwise" and reader.natural not in (None, value.natural)


def _is_shorter_there(store: Node, value: Node) -> bool:
    """Whether a store shortens a value to fewer bits than what that is made of has: it is converted as those."""
    stored = value.elements * store.bits
    return _BYTE <= store.bits < value.bits and stored < sum(_converted(value, (), _NOTHING, {}).values())


def _is_computed_of(reader: Node, value: Node) -> bool:
    """Whether a reader has an element of its own for each of a value, in its layout, and is computed as often."""
    alike = reader.natural == value.natural and reader.elements == value.elements
    return reader.kind == "elementwise" and alike and reader.depth >= value.depth
