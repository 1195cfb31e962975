"""What is cheap: computed again, once for each layout that a reader wants, instead of converted.

That is nothing that loads a full tile, reduces, or leaves through a helper: as Triton's backward rematerialisation
(RemoveLayoutConversions) takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from tt2gl.analysis.graph import Node, Web, counts_from_zero, made_once, sources, uncast
from tt2gl.analysis.memory import Scene
from tt2gl.analysis.reshapes import RESHAPES, is_idle, is_named_reshape

_CDNA_LANES = 64
_OFFSET_BITS = 64
_DEAR = ("store", "atomic", "reduce", "scan", "join", "split", "opaque", "call")


def mark_cheap(scene: Scene, is_anchor: Callable[[Node], bool], is_held: Callable[[Node], object]) -> None:
    """Find what may be computed twice in a launch's graph.

    `is_anchor`: whether an access has a layout of its own; `is_held`: whether a value is held for a product.
    """
    marks = _Marks(scene, is_anchor, is_held)
    for node in scene.graph.nodes:
        is_access = node.kind in ("load", "store", "atomic") and (not node.staged or node.replaced)
        node.anchored = is_anchor(node) and is_access and not is_operand(node, scene)
    changed = True
    while changed:
        changed = False
        for node in scene.graph.nodes:
            if node.cheap and not marks.is_cheap(node):
                node.cheap, changed = False, True
        for web in scene.graph.distinct_webs():
            if web.cheap and not _is_cheap_web(web):
                web.cheap, changed = False, True


class _Marks:
    """Whether a value is still taken for cheap, by what its operands are taken for."""

    def __init__(self, scene: Scene, is_anchor: Callable[[Node], bool], is_held: Callable[[Node], object]) -> None:
        self.scene, self._is_anchor, self._is_held = scene, is_anchor, is_held

    def is_cheap(self, node: Node) -> bool:
        if in_ring(node):
            return True
        if node.function == "interleave":
            # It moves nothing: as cheap as what it is made of, unless that is a tile that was loaded whole.
            return all(operand.cheap and not self._is_whole_tile(operand) for operand in node.operands)
        if is_named_reshape(node) and not self._is_held(node):
            return all(operand.cheap and not in_ring(operand) for operand in node.operands)
        if node.kind == "expand" and self._is_loaded_row(node.operands[0]):
            # It is converted to be one of a tile's, whichever that is.
            return True
        if node.kind == "elementwise" and self._is_widened_row(node):
            return True
        if node.kind in _DEAR or node.anchored or node.several or is_operand(node, self.scene) or self._is_held(node):
            return False
        if node.web is not None and not node.web.find().cheap:
            return node.kind == "read" and _is_given_range(node.web.find())
        return all(operand.cheap for operand in node.operands)

    def _is_loaded_row(self, row: Node) -> bool:
        """Whether a row is computed of rows alone, of which one is loaded in a layout of rows."""
        made_of = [*sources(row)]
        dear = (each.kind in _DEAR or len(each.shape) > 1 or bool(self._is_held(each)) for each in made_of)
        return len(row.shape) == 1 and any(each.anchored for each in made_of) and not any(dear)

    def _is_widened_row(self, row: Node) -> bool:
        """Whether a row of 64-bit offsets is computed of one in fewer bits, which is converted in its place."""
        loads = [each.bits for each in sources(row) if each.anchored] if row.bits == _OFFSET_BITS else []
        return bool(loads) and max(loads) < _OFFSET_BITS and self._is_loaded_row(row)

    def _is_whole_tile(self, node: Node) -> bool:
        tile = tile_in_ring(node)
        return tile is not None and self._is_anchor(tile)


def _is_cheap_web(web: Web) -> bool:
    """Whether a variable may be computed twice: not where a loop accumulates what it loads."""
    carried = len({definition.depth for definition in web.definitions}) > 1
    return all(d.clonable and d.node.cheap and not (carried and _loads(d.node)) for d in web.definitions)


def _is_given_range(web: Web) -> bool:
    """Whether a helper is given a range from zero, which is made anew in each layout that it is wanted in."""
    made = web.made_once()
    return made is not None and made.entry is not None and counts_from_zero(made.node)


def is_operand(node: Node, scene: Scene) -> bool:
    """Whether a load is in the layout of a product's operand as it comes: it has that of its reader."""
    if node.kind != "load" or node.staged:
        return False
    return node.chain in scene.facts.lowered.operands or scene.lanes == _CDNA_LANES and _scales_alone(node, scene)


def _scales_alone(load: Node, scene: Scene) -> bool:
    """Whether a name is given a load, and all that reads it multiplies a product's elements by those scales.

    A conversion of them would pass shared memory, and all waves wait there: Triton has them where waves need them.
    """
    scales = {id(scale) for node in scene.graph.nodes if node.kind == "upcast" for scale in node.operands[1:]}
    reads = [node for node in scene.graph.nodes if (made := made_once(node)) is not None and made.node is load]
    return bool(reads) and all(id(read) in scales for read in reads)


def in_ring(node: Node, above: frozenset[int] = frozenset(), *, squeezed: bool = False) -> bool:
    """Whether a value is a ring's slot, or a view of one: it can be read in any layout, or taken as it is.

    A view may be of another order and, where it is of a descriptor's tile, `squeezed`; an idle cast is one.
    """
    if id(node) in above:
        return False
    beyond, squeezed = above | {id(node)}, squeezed or node.squeezed
    if node.kind == "read" and node.web is not None:
        made = node.web.find().definitions
        return bool(made) and all(in_ring(definition.node, beyond, squeezed=squeezed) for definition in made)
    if node.kind in ("opaque", "elementwise"):
        return (bool(node.order) or node.squeezed) and in_ring(node.operands[0], beyond, squeezed=squeezed)
    return node.staged and not node.replaced and (bool(node.tile) or not squeezed)


def tile_in_ring(node: Node) -> Node | None:
    """The load whose tile lies in the ring that a value is read from; None for what is not in one."""
    if node.kind == "read" and node.web is not None and in_ring(node):
        return tile_in_ring(node.web.find().definitions[0].node)
    return node if node.staged else None


def last_tile(node: Node, scene: Scene, is_anchor: Callable[[Node], bool]) -> Node | None:
    """Of the tiles of rings that a value is computed of, element by element, the last loaded; None for other values."""
    if node.kind not in ("read", "elementwise", "load"):
        return None
    tiles = {id(each) for each in sources(node) if each.staged and each.shape == node.shape and is_anchor(each)}
    return next((each for each in reversed(scene.graph.nodes) if id(each) in tiles), None)


def last_row(node: Node, scene: Scene) -> Node | None:
    """Of the rows that a value without a layout is computed of, and that are loaded in any, the last; None without."""
    loads = (each for each in sources(node) if each.kind == "load" and not each.staged and not each.anchored)
    rows = {id(each) for each in loads if each.shape == node.shape}
    return next((each for each in reversed(scene.graph.nodes) if id(each) in rows), None)


def row_of_step(tile: Node, scene: Scene) -> Node | None:
    """The row without a layout, loaded in any, that a tile is reshaped from to extents without names, as steps do."""
    made = made_once(tile)
    if made is not None:
        return row_of_step(made.node, scene)
    if tile.kind == "elementwise":
        return next((row for each in tile.operands if (row := row_of_step(each, scene)) is not None), None)
    is_step = tile.kind == "opaque" and tile.function in RESHAPES and None in tile.dims
    row = last_row(tile.operands[0], scene) if is_step else None
    return row if row is not None and row.natural is None else None


def _loads(node: Node) -> bool:
    """Whether an expression reads global memory, itself or through the names it reads."""
    return any(source.kind == "load" for source in sources(node))


def is_loaded_ahead(web: Web) -> bool:
    """Whether a name is given in a loop what is loaded there, a row or a column of a tile, and has a value before."""
    first = min(definition.depth for definition in web.definitions)
    inside = [definition.node for definition in web.definitions if definition.depth > first]
    return any(node.kind == "expand" and node.operands[0].anchored for node in inside)


def is_loaded(operand: Node) -> bool:
    """Whether a value is what a load gives, itself or by its only names, or made what it is: cast or reshaped.

    So is what a helper returns as it has loaded it.
    """
    operand, _ = uncast(operand)
    if is_idle(operand):
        return is_loaded(operand.operands[0])
    if operand.kind == "call" and operand.value is not None:
        return is_loaded(operand.value)
    made = made_once(operand)
    return is_loaded(made.node) if made is not None else operand.kind == "load"
