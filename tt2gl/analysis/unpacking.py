"""Operands of products that are made of narrower values, as Triton leaves them: those are what is converted.

    lo, hi = packed & 0xF, packed >> 4                       # bytes of two elements each, in a layout for memory
    w = tl.join(lo, hi).reshape(BLOCK_N, BLOCK_K)
    acc = tl.dot(a, w.to(tl.float16).trans(1, 0), acc)

`packed` goes to the layout whose threads then have the operand's elements; all that follows is theirs alone. Converted
where the product takes it, the tile would go through shared memory with four times the bytes. So does a tile that is
cast before it is turned, `tl.trans(bytes.to(tl.float16))`, with twice the bytes. Elements may also stand one above the
other, `tl.join(lo, hi).permute(0, 2, 1).reshape(BLOCK_K, BLOCK_N)`. (Triton's pass
RemoveLayoutConversions, which computes what leads to a conversion in the layout behind it.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from tt2gl.analysis.graph import Node, Web
from tt2gl.analysis.terms import Operand, Term, Turned, packed


@dataclass
class Unpacking:
    """What one operand is unpacked by: it is the second of its product, or the first, with `width` elements a thread.

    `shared`: names, by identity, that others read too, and that are taken as they are. `nodes`, `webs`: the expressions
    and names that it is unpacked by. `merges`: those that put elements side by side. `leaves`: what all is made of.
    """

    second: bool
    width: int
    shared: Set[int] = frozenset()
    nodes: dict[int, Node] = field(default_factory=dict)
    webs: dict[int, Web] = field(default_factory=dict)
    merges: list[Node] = field(default_factory=list)
    leaves: dict[int, Node] = field(default_factory=dict)

    def take(self, node: Node, width: int, *, turned: bool) -> None:
        """Take a value apart. `width`: how many of its elements a thread has side by side; `turned`: before trans."""
        if id(node) in self.nodes:
            return
        behind = self._behind(node)
        pairs = merged(node)
        if pairs is not None and width > 1 and (turned == self.second) == (pairs is node.operands[0]):
            self.merges.append(node)
            width //= 2
            behind = pairs.operands
        if behind is None:
            self.leaves[id(node)] = node
            return
        self.nodes[id(node)] = node
        if node.web is not None:
            self.webs[id(node.web.find())] = node.web.find()
        for each in behind:
            if each.shape:
                self.take(each, width, turned=turned ^ (node.order == (1, 0)))

    def _behind(self, node: Node) -> Sequence[Node] | None:
        """What a value is computed from, element by element; None of what is converted."""
        if node.several:
            return None
        if node.kind == "read" and node.web is not None:
            made = node.web.find().made_once()
            return None if made is None or id(node.web.find()) in self.shared else (made.node,)
        if node.kind in ("call", "argument"):
            return (node.value,) if node.value is not None else None
        same = all(len(each.shape) in (0, len(node.shape)) for each in node.operands)
        return node.operands if node.kind == "elementwise" and same or node.order == (1, 0) else None

    @property
    def bits(self) -> int:
        """How many bits there are to convert, each name's once."""
        once = {id(leaf.web.find()) if leaf.web is not None else id(leaf): leaf for leaf in self.leaves.values()}
        return sum(leaf.elements * leaf.bits for leaf in once.values() if leaf.natural is not None)

    @property
    def is_turned(self) -> bool:
        """Whether what is read becomes the operand by a transposition."""
        return any(node.order == (1, 0) for node in self.nodes.values())

    def taken_once(self, readers: Mapping[int, Sequence[Node]]) -> set[int]:
        """The names of leaves, by identity, that nothing else reads."""
        webs = {id(leaf.web.find()) for leaf in self.leaves.values() if leaf.web is not None}
        return {web for web in webs if all(id(each) in self.leaves for each in readers.get(web, ()))}

    def forget(self) -> None:
        """Have no layout of its own for all that is unpacked: it takes the one that it is wanted in."""
        for node in self.nodes.values():
            node.natural = None
        for web in self.webs.values():
            web.natural = None


def unpacking(operand: Node, second: bool, width: int, readers: Mapping[int, Sequence[Node]]) -> Unpacking | None:
    """How an operand is unpacked; None where, nothing being put side by side, no fewer bits would be converted by that.

    `readers`: of each name.
    """
    shared: frozenset[int] = frozenset()
    while True:
        found = Unpacking(second, width, shared)
        found.take(operand, width, turned=False)
        more = {web for web in found.webs if any(id(each) not in found.nodes for each in readers.get(web, ()))}
        if not more:
            # Of what stands side by side, Triton says whether it is unpacked so.
            return found if found.merges or found.bits < operand.elements * operand.bits else None
        shared |= more


def merged(node: Node) -> Node | None:
    """The join of what a value is made of: two others of one shape, element by element side by side.

    So they are in its last dimension, or, where pairs are turned before they are reshaped, in its first.
    """
    if node.function not in ("reshape", "view") or len(node.shape) != 2 or not node.operands:
        return None
    pairs = node.operands[0]
    if pairs.order == (0, 2, 1) and pairs.operands[0].kind == "join":
        rows, _, columns = pairs.shape
        return pairs.operands[0] if node.shape == (2 * rows, columns) else None
    return pairs if pairs.kind == "join" and node.shape == (pairs.shape[0], 2 * pairs.shape[1]) else None


def half(term: Term, pairs: Node) -> Term | None:
    """The layout of the two values that are joined and merged into what is wanted in this; None if not an operand's."""
    rows, columns = pairs.operands[0].dims_known
    match term:
        case Turned(parent=Operand() as parent):
            return replace(term, parent=packed(parent), dims=(columns, rows))
        case Operand():
            return packed(term)
    return None
