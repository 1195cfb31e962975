"""Which loops of two chained products can be taken apart: attention's, with tiles by TMA and scores in between.

The first product starts from zeros, and what is made of its result is the first operand of the second, whose sum the
loop carries and scales by a number for each row. What says where tiles are is computed from numbers alone.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.accumulators import Product, products_in, starts_from_zeros
from tt2gl.pipelining.apart import Load, asks, loads_of
from tt2gl.pipelining.counting import Header, header_of
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import NONE, Liveness, Names, inside, reads, writes
from tt2gl.pipelining.loads import is_marker, needs
from tt2gl.pipelining.operands import place, viewed
from tt2gl.pipelining.rings import LoopRings, NotPipelinedError
from tt2gl.pipelining.slices import statements_for
from tt2gl.pipelining.static import bound, constants, is_static
from tt2gl.pipelining.trees import indented, lines_of
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class Chain:
    """A loop taken apart.

    `loads`: the statements that bind tiles, with their loads: the first product's, then the second's. `load_slice`:
    the statements that copies need. `scaling`: those that scale the sum, by `factor`, which `made_by` binds last;
    `dropped`: those that nothing but copies needs. `given`: the names that are read after the loop, but for the sum.
    """

    loop: ast.For
    node: cst.For
    header: Header
    first: Product
    second: Product
    loads: Mapping[ast.stmt, Sequence[Load]]
    load_slice: frozenset[ast.stmt]
    scaling: frozenset[ast.stmt]
    factor: str
    made_by: ast.stmt
    dropped: frozenset[ast.stmt]
    given: tuple[str, ...]

    def load_for(self, product: Product) -> Load:
        """The tile that a product multiplies with."""
        index = 0 if product is self.first else 1
        return [load for loads in self.loads.values() for load in loads][index]


def chain_of(
    function: ast.FunctionDef, node: cst.FunctionDef, spec: LoopRings, helpers: Mapping[str, ast.FunctionDef]
) -> Chain | None:
    """How the loop of a function that asks for it is taken apart; None where none asks, or it cannot be."""
    asking = [
        (first, line)
        for line, _, first in lines_of(function.body, indented(node.body))
        if isinstance(first, ast.For) and isinstance(line, cst.For) and asks(first)
    ]
    return _Question(function, spec, Effects(helpers), *asking[0]).answer() if len(asking) == 1 else None


@dataclass
class _Question:
    """Whether one loop can be taken apart."""

    function: ast.FunctionDef
    spec: LoopRings
    effects: Effects
    loop: ast.For
    node: cst.For

    def answer(self) -> Chain | None:
        """All conditions, one after the other."""
        products, header = self._products(), self._header()
        loads = loads_of(self.function, self.loop, self.node, self.spec)
        if products is None or header is None or loads is None or not self._tiles(loads, products):
            return None
        markers = {node: needs(node) for load in loads for node in nodes_in(load) if isinstance(node, ast.Call)}
        load_slice, _ = statements_for(self.loop, {node: said for node, said in markers.items() if is_marker(node)})
        second = products[1]
        scaling = frozenset(
            each
            for each in self.loop.body
            if each is not second.statement and second.name in reads(each) | writes(each)
        )
        own = {*loads, *(product.statement for product in products), *scaling}
        if load_slice & own or not all(map(self.effects.only_computes, load_slice)):
            return None
        factor = self._factor(scaling, second)
        if factor is None:
            return None
        rest = [each for each in self.loop.body if each not in own]
        liveness = Liveness()
        liveness.before(self.function.body, NONE)
        live = liveness.after[self.loop] - {second.name}
        wanted = live | reads(second.a) | NONE.union(*(reads(each) for each in rest if each not in load_slice))
        dropped = frozenset(each for each in load_slice if each in rest and not writes(each) & wanted)
        hidden = NONE.union(*map(writes, {*loads, *scaling})) - {second.name}
        kept = [each for each in rest if each not in dropped]
        given = tuple(sorted((NONE.union(*map(writes, kept)) | {products[0].name}) & live))
        tiles = NONE.union(*map(writes, loads))
        if hidden & live or any(self._misused(each, tiles) for each in (*kept, second.a)):
            return None
        if (hidden - tiles) & NONE.union(*map(reads, kept)):
            return None
        name, made_by = factor
        return Chain(self.loop, self.node, header, *products, loads, load_slice, scaling, name, made_by, dropped, given)

    def _products(self) -> tuple[Product, Product] | None:
        """The function's two products."""
        found = products_in(self.function.body)
        if len(found) != 2 or any(product.statement not in self.loop.body for product in found):
            return None
        first, second = found
        index = self.loop.body.index(first.statement)
        alone = first.added is None or starts_from_zeros(first, self.loop.body[:index])
        chained = second.carries and second.lhs is not None and first.name != second.name
        outside = place(first.a, index, self.loop.body) == "outside" and first.lhs is None
        return (first, second) if alone and chained and outside and not first.scales + second.scales else None

    def _header(self) -> Header | None:
        """What the loop counts."""
        leaving = ast.Break | ast.Continue | ast.Return
        if self.loop.orelse or any(isinstance(each, leaving) for each in inside(self.loop.body)):
            return None
        try:
            header = header_of(self.loop)
        except NotPipelinedError:
            return None
        changed = NONE.union(*map(writes, self.loop.body))
        static = is_static(header.step, constants(self.function), bound(self.function))
        return header if static and not changed & (reads(self.loop.iter) | {header.variable}) else None

    def _tiles(self, loads: Mapping[ast.stmt, Sequence[Load]], products: tuple[Product, Product]) -> bool:
        """Whether each product has one tile as its second operand, by a name of its own."""
        targets = [each.targets[0] for each in loads if isinstance(each, ast.Assign) and len(each.targets) == 1]
        bound_to = [target.id for target in targets if isinstance(target, ast.Name)]
        taken = [side.id for product in products if isinstance(side := viewed(product.b), ast.Name)]
        return len(loads) == 2 and bound_to == taken and len(set(taken)) == 2

    def _factor(self, scaling: frozenset[ast.stmt], product: Product) -> tuple[str, ast.stmt] | None:
        """What the sum is scaled by, a number for each row, and the statement that binds it."""
        body = self.loop.body
        others = [each for each in body if each not in scaling]
        made = NONE.union(*map(writes, others)) & NONE.union(*map(reads, scaling)) - {product.name}
        ahead = NONE.union(*map(reads, scaling)) - made - constants(self.function) - {product.name}
        local = NONE.union(*map(writes, scaling))
        if len(made) != 1 or (ahead - local) & _before(self.function, self.loop):
            return None
        (name,) = made
        first, last = min(map(body.index, scaling)), body.index(product.statement)
        binding = [index for index, each in enumerate(body) if name in writes(each) and each not in scaling]
        in_place = all(_is_of_rows(node, each, name) for each in scaling for node in nodes_in(each))
        ordered = len(binding) == 1 and binding[0] < first and max(map(body.index, scaling)) < last
        return (name, body[binding[0]]) if ordered and in_place and name not in local else None

    @staticmethod
    def _misused(node: ast.AST, tiles: Names) -> bool:
        """Whether something asks more of a tile than its type."""
        typed = [each.value for each in nodes_in(node) if isinstance(each, ast.Attribute) and each.attr == "dtype"]
        return any(isinstance(each, ast.Name) and each.id in tiles and each not in typed for each in nodes_in(node))


def _before(function: ast.FunctionDef, loop: ast.For) -> Names:
    """What a function has before a loop."""
    arguments = {each.arg for each in nodes_in(function.args) if isinstance(each, ast.arg)}
    return NONE.union(arguments, *map(writes, function.body[: function.body.index(loop)]))


def _is_of_rows(node: ast.AST, within: ast.AST, name: str) -> bool:
    """Whether a node is not that name, or is it as `name[:, None]`, converted or not."""
    if not isinstance(node, ast.Name) or node.id != name:
        return True
    rows = [each.value for each in nodes_in(within) if isinstance(each, ast.Subscript) and _over_columns(each.slice)]
    return any(node is value or isinstance(value, ast.Call) and node in value.args[:1] for value in rows)


def _over_columns(node: ast.expr) -> bool:
    return ast.unparse(node) in (":, None", "(:, None)")
