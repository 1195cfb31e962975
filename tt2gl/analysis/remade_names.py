"""Names that a loop computes in another layout than the one that all want, of what is at hand in that one.

    base_other = gl.convert_layout(base, other_layout)           base_other = gl.convert_layout(base, other_layout)
    for j in range(n):                                           for j in range(n):
        row = gather(base_other, index, axis=0)                      row = gather(base_other, index, axis=0)
        x = exp(base - gl.convert_layout(row, own_layout))           x = exp(base_other - row)
        sum += row * gl.convert_layout(x, other_layout)              sum += row * x

A name from before the loop decides over the layout of `x` by its size, though it is in the other layout already, and
what the loop makes of it would be converted on every turn. Triton's pass RemoveLayoutConversions moves a conversion
above what it converts as well where that is made of values that are converted elsewhere, and takes those.
"""

from __future__ import annotations

from collections.abc import Mapping

from tt2gl.analysis.graph import Graph, Node, Web
from tt2gl.analysis.terms import Cut, Root
from tt2gl.analysis.widened_names import readers_of


def move_remade(graph: Graph) -> None:
    """Give such names the layout that they are wanted in, those first that others are made for."""
    readers = readers_of(graph)
    for web in reversed(list(graph.distinct_webs())):
        made, own = web.made_once(), web.natural
        if made is not None and isinstance(own, Root) and _is_computed(made.node, own):
            _move(web, made.node, own, readers)


def _move(web: Web, node: Node, own: Root, readers: Mapping[int, list[Node]]) -> None:
    """Give a name the layout that it is wanted in, if less is converted then on each turn."""
    wanted = _wanted(node, readers[id(web)], readers)
    if wanted is None or wanted == own:
        return
    webs, parts = _computed(web, node, own, readers)
    taken = [operand for part in parts for operand in part.operands if operand not in parts]
    rest = [operand for operand in taken if not _is_at_hand(operand, wanted, readers)]
    if len(rest) < len(taken) and sum(_converted(each, wanted) for each in rest) < node.elements * node.bits:
        for each in (*parts, *(read for name in webs for read in readers[id(name)])):
            each.natural = wanted
        for name in webs:
            name.natural = wanted


def _is_computed(node: Node, own: Root) -> bool:
    """Whether a value is computed element by element in a loop, in the layout `own`."""
    return node.kind == "elementwise" and bool(node.depth) and not node.several and node.natural == own


def _wanted(node: Node, reads: list[Node], readers: Mapping[int, list[Node]]) -> Root | None:
    """The one layout in which all that read a name's value want it, element by element; None where there is none."""
    found = [reader for read in reads for reader in readers[id(read)]]
    if any(read.depth < node.depth for read in reads) or any(reader.kind != "elementwise" for reader in found):
        return None
    terms = {reader.natural for reader in found if reader.elements == node.elements}
    term = terms.pop() if len(terms) == 1 and all(reader.elements == node.elements for reader in found) else None
    return term if isinstance(term, Root) else None


def _computed(web: Web, node: Node, own: Root, readers: Mapping[int, list[Node]]) -> tuple[list[Web], list[Node]]:
    """The names, and the expressions, that a name is computed by, itself first: those that nothing else takes."""
    webs, parts = [web], [node]
    for part in parts:
        for operand in part.operands:
            name = operand.web.find() if operand.web is not None else None
            made = name.made_once() if name is not None else None
            if _is_computed(operand, own):
                parts.append(operand)
            elif name is not None and made is not None and name not in webs and _is_computed(made.node, own):
                taking = [reader for read in readers[id(name)] for reader in readers[id(read)]]
                if made.depth == node.depth and all(each in parts for each in taking):
                    webs.append(name)
                    parts += [*readers[id(name)], made.node]
    return webs, parts


def _is_at_hand(value: Node, wanted: Root, readers: Mapping[int, list[Node]]) -> bool:
    """Whether a value is a name of before the loop that another reader has in the layout wanted."""
    if value.web is None or value.natural == wanted or (made := value.web.find().made_outside(value)) is None:
        return False
    others = [each for read in readers[id(value.web.find())] if read is not value for each in readers[id(read)]]
    return any(each.natural == wanted and _takes_alike(each, made.node) for each in others)


def _takes_alike(reader: Node, value: Node) -> bool:
    """Whether a reader takes a value in its own layout: element by element, or to gather from it."""
    return reader.function == "gather" or reader.kind == "elementwise" and reader.elements == value.elements


def _converted(value: Node, wanted: Root) -> int:
    """The bits of a value that are converted on each turn to have it in the layout wanted."""
    is_slice = isinstance(value.natural, Cut) and value.natural.parent == wanted
    return 0 if is_slice or value.natural in (None, wanted) else value.elements * value.bits
