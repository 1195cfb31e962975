"""Which loops can be taken apart into copies, products and the rest, and what each part needs of the author's text.

Tiles come by TMA to one product by `tcgen05_mma` that starts from zeros, in the loop that asks for warps of its own or
in the only one inside it. What says where tiles are is computed from numbers alone, so that one warp can do it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.accumulators import Product, product_of, products_in, starts_from_zeros
from tt2gl.pipelining.counting import Header, header_of
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import NONE, Liveness, Names, inside, reads, writes
from tt2gl.pipelining.loads import is_marker, needs
from tt2gl.pipelining.operands import viewed
from tt2gl.pipelining.rings import LoopRings, NotPipelinedError
from tt2gl.pipelining.slices import statements_before, statements_for
from tt2gl.pipelining.static import bound, constants, is_static
from tt2gl.pipelining.texts import operand
from tt2gl.pipelining.tma import offsets_of
from tt2gl.pipelining.trees import calls_in, code, indented, lines_of
from tt2gl.plan import Ring
from tt2gl.trees import blocks, nodes_in
from tt2gl.words import PARTITIONED, RING_MARK


@dataclass(frozen=True)
class Load:
    """A tile's load: its ring, and its descriptor and offsets as source."""

    ring: Ring
    descriptor: str
    offsets: str


@dataclass(frozen=True)
class Apart:
    """A loop taken apart. `outer`: the one that asks, where the one with the product is inside it.

    `load_slice`, `product_slice`: the statements that copies and products need of the author's. `variable`: what the
    loop with the product counts with, from `first`; `runs`: whether it has any turns.
    """

    outer: ast.For | None
    outer_node: cst.For | None
    inner: ast.For
    inner_node: cst.For
    product: Product
    loads: Mapping[ast.stmt, Sequence[Load]]
    load_slice: frozenset[ast.stmt]
    product_slice: frozenset[ast.stmt]
    variable: str
    first: str
    runs: str

    @property
    def tiles(self) -> list[Load]:
        """All loads, in their order."""
        return [load for loads in self.loads.values() for load in loads]

    @property
    def loop(self) -> ast.For:
        """The loop that asks for warps of their own."""
        return self.outer or self.inner


def apart_of(
    function: ast.FunctionDef, node: cst.FunctionDef, spec: LoopRings, helpers: Mapping[str, ast.FunctionDef]
) -> Apart | None:
    """How the loop of a function that asks for it is taken apart; None where none asks, or it cannot be."""
    asking = [
        (first, line)
        for line, _, first in lines_of(function.body, indented(node.body))
        if isinstance(first, ast.For) and isinstance(line, cst.For) and asks(first)
    ]
    if len(asking) != 1:
        return None
    loop, loop_node = asking[0]
    inside_it = [
        (first, line)
        for line, _, first in lines_of(loop.body, loop_node.body)
        if isinstance(first, ast.For) and isinstance(line, cst.For) and _marked(first)
    ]
    if not inside_it:
        return _Question(function, spec, Effects(helpers), None, None, loop, loop_node).answer()
    if len(inside_it) > 1:
        return None
    return _Question(function, spec, Effects(helpers), loop, loop_node, *inside_it[0]).answer()


def asks(loop: ast.For) -> bool:
    """Whether a loop asks for warps of their own."""
    return isinstance(loop.iter, ast.Call) and any(each.arg == PARTITIONED for each in loop.iter.keywords)


def loads_of(
    function: ast.FunctionDef, loop: ast.For, node: cst.For, spec: LoopRings
) -> dict[ast.stmt, list[Load]] | None:
    """The loads of tiles, all of one depth, by the statements that bind them or multiply them."""
    found: dict[ast.stmt, list[Load]] = {}
    for _, members, _ in lines_of(loop.body, node.body):
        for each, small in members:
            named = isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and viewed(each.value)
            if named and is_marker(named) or product_of(each) is not None:
                for marker in calls_in(small, RING_MARK):
                    assert isinstance(marker.func, cst.Name)
                    ring = spec.ring(marker.func.value.removeprefix(RING_MARK))
                    load = Load(ring, code(marker.args[0].value), offsets_of(marker) if ring.tile else "")
                    found.setdefault(each, []).append(load)
    loads = [load for each in found.values() for load in each]
    markers = sum(is_marker(each) for each in nodes_in(function))
    plain = len(loads) == markers == len({load.ring.name for load in loads})
    tiles = all(load.ring.tile and not load.ring.direct for load in loads)
    return found if plain and tiles and len({spec.depth(load.ring) for load in loads}) == 1 else None


def _marked(node: ast.AST) -> bool:
    return any(is_marker(each) for each in nodes_in(node))


@dataclass
class _Question:
    """Whether one loop can be taken apart."""

    function: ast.FunctionDef
    spec: LoopRings
    effects: Effects
    outer: ast.For | None
    outer_node: cst.For | None
    inner: ast.For
    inner_node: cst.For

    def answer(self) -> Apart | None:
        """All conditions, one after the other."""
        product, header = self._product(), self._header()
        loads = loads_of(self.function, self.inner, self.inner_node, self.spec)
        if product is None or loads is None or header is None:
            return None
        tiles = NONE.union(*(writes(each) for each in loads if each is not product.statement))
        operands = [viewed(side) for side in (product.a, product.b)]
        if not all(is_marker(side) or isinstance(side, ast.Name) and side.id in tiles for side in operands):
            return None
        markers = {node: needs(node) for load in loads for node in nodes_in(load) if isinstance(node, ast.Call)}
        own, top = statements_for(self.inner, {node: said for node, said in markers.items() if is_marker(node)})
        bounds = reads(self.inner.iter)
        around, bounded = self._around(top | bounds), self._around(bounds)
        if around is None or bounded is None:
            return None
        load_slice = own | around[0]
        used = NONE.union(top, around[1], *map(reads, own))
        rest = set(self.inner.body) - {*loads, product.statement}
        if not rest <= own or used & {product.name, *tiles} or not self._plain(load_slice):
            return None
        if not self._done_with(product.name):
            return None
        lower, upper = ast.unparse(header.lower), operand(ast.unparse(header.upper))
        return Apart(
            self.outer,
            self.outer_node,
            self.inner,
            self.inner_node,
            product,
            loads,
            load_slice,
            bounded[0],
            "step" if header.variable == "_" else header.variable,
            lower,
            f"{upper} > 0" if lower == "0" else f"{operand(lower)} < {upper}",
        )

    def _product(self) -> Product | None:
        """The function's one product."""
        found = products_in(self.function.body)
        if len(found) != 1 or found[0].statement not in self.inner.body:
            return None
        product = found[0]
        block = self.outer.body if self.outer is not None else self.function.body
        from_zeros = starts_from_zeros(product, block[: block.index(self.inner)])
        return product if product.carries and from_zeros and product.lhs is None and not product.scales else None

    def _header(self) -> Header | None:
        """What the loop with the product counts; its body is of simple statements."""
        loops = [self.inner] if self.outer is None else [self.outer, self.inner]
        if any(isinstance(each, ast.Break | ast.Continue | ast.Return) for each in inside(loops[0].body)):
            return None
        if any(list(blocks(each)) for each in self.inner.body) or any(loop.orelse for loop in loops):
            return None
        try:
            header = header_of(self.inner)
        except NotPipelinedError:
            return None
        changed = NONE.union(*map(writes, self.inner.body))
        static = is_static(header.step, constants(self.function), bound(self.function))
        return header if static and not changed & (reads(self.inner.iter) | {header.variable}) else None

    def _around(self, needed: Names) -> tuple[frozenset[ast.stmt], Names] | None:
        """The statements of the loop around that bind what its turn needs, and what they read; None if turns differ."""
        if self.outer is None:
            return frozenset(), NONE
        taken, top = statements_before(self.outer.body[: self.outer.body.index(self.inner)], needed)
        carried = top & NONE.union(*map(writes, self.outer.body))
        return None if carried else (taken, NONE.union(*map(reads, taken)))

    def _plain(self, taken: frozenset[ast.stmt]) -> bool:
        """Whether statements only compute numbers."""
        keywords = [node.arg for each in taken for node in nodes_in(each) if isinstance(node, ast.keyword)]
        return "layout" not in keywords and all(map(self.effects.only_computes, taken))

    def _done_with(self, total: str) -> bool:
        """Whether nothing that the loops bind is read after them, but the sum."""
        liveness = Liveness()
        liveness.before(self.function.body, NONE)
        inner = NONE.union(*map(writes, self.inner.body)) - {total}
        if inner & liveness.after[self.inner]:
            return False
        return self.outer is None or not writes(self.outer) & liveness.after[self.outer]
