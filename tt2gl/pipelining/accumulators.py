"""Decides for products by `tcgen05_mma` which sums stay in tensor memory, and which products run on.

A sum that a loop carries stays in tensor memory throughout: it is put there before the loop, and taken out after it
and, where the loop reads it before the product that adds to it, in each iteration. A product runs on where Triton's
would: its operands lie in rings, in tensor memory or outlive the loop, and its sum is not read until it is known done;
or an operand is computed, and all products are waited for before the next iteration stores it, or reads a sum.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field

from tt2gl.pipelining.arms import Arms, IsSettled, with_arms
from tt2gl.pipelining.computed_operands import Computed, computed_operand, read_by_others
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.operands import memory, place
from tt2gl.pipelining.static import called
from tt2gl.trees import blocks
from tt2gl.words import TCGEN05_MARK

Loop = ast.For | ast.While


@dataclass(frozen=True)
class Product:
    """`name = _tt2gl_tcgen05(a, b, added, dims, dtype, memory, registers[, lhs dims, lhs memory])`.

    `added` is None where it starts from zeros. `dims`, `dtype`, `memory` and `registers` are source: the extents of its
    sum, its layout in tensor memory and in registers. `lhs`: extents and layout of a first operand that is put into
    tensor memory. `scales`: those of both operands, which have them, and the formats (by keyword in the call).
    """

    statement: ast.stmt
    name: str
    a: ast.expr
    b: ast.expr
    added: ast.expr | None
    tile: tuple[str, str, str]
    registers: str
    lhs: tuple[str, str] | None
    scales: tuple[ast.expr, ...] = ()

    @property
    def carries(self) -> bool:
        """Whether it adds to the name that its result gets."""
        return isinstance(self.added, ast.Name) and self.added.id == self.name


def product_of(statement: ast.stmt) -> Product | None:
    """The product that a statement is."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[a, b, added, *said]) as call) if (
            called(call) == TCGEN05_MARK
        ):
            dims, dtype, memory, registers, *lhs = (ast.unparse(each) for each in said)
            none = isinstance(added, ast.Constant)
            own = (lhs[0], lhs[1]) if lhs else None
            scales = tuple(keyword.value for keyword in call.keywords)
            tile = dims, dtype, memory
            return Product(statement, name, a, b, None if none else added, tile, registers, own, scales)
    return None


def products_in(statements: Sequence[ast.stmt]) -> list[Product]:
    """The products of a block, nested ones too."""
    found = (product_of(each) for each in inside(statements))
    return [product for product in found if product is not None]


@dataclass
class LoopDecision:
    """What is decided of one loop.

    `staying`: the sums that the loop keeps in tensor memory. `loads`: the statement before which a sum is taken out.
    `running`: the products that are not waited for at once. `last`: the one of them that commits for all; None where
    products that are waited for come in between. `open_ended`: whether some are under way when the loop ends.
    `operands`: the memory that a first operand in tensor memory takes its dtype from, by the product. `computed`: the
    memory of operands that an iteration computes, by the statements that store them. `due`: the statement above which
    the products of the iteration before are waited for; None where they are behind `last`. `arms`: what was taken to
    stand in the loop itself.
    """

    arms: Arms
    staying: dict[str, Product] = field(default_factory=dict)
    loads: dict[ast.stmt, str] = field(default_factory=dict)
    running: list[Product] = field(default_factory=list)
    last: Product | None = None
    open_ended: bool = False
    operands: dict[ast.stmt, str] = field(default_factory=dict)
    computed: dict[ast.stmt, Computed] = field(default_factory=dict)
    due: ast.stmt | None = None


def decided(
    loop: Loop, staying: Collection[str], freed: Collection[str] = (), is_settled: IsSettled = lambda _: False
) -> LoopDecision:
    """Decide one loop; sums of `staying` already are in tensor memory around it.

    `freed`: memory that products must be done with at the end of the iteration that reads it. `is_settled`: whether a
    test is a constant of the compilation.
    """
    arms = with_arms(loop.body, is_settled, _sums)
    loop = copy(loop)
    loop.body = arms.body
    made = LoopDecision(arms=arms)
    every = products_in(loop.body)
    top = [product for product in every if product.statement in loop.body]
    for name in dict.fromkeys(product.name for product in every if product.carries):
        if name not in staying:
            _settle(loop, name, [product for product in every if product.name == name], made)
    for product in top:
        base = memory(product.b, loop.body.index(product.statement), loop.body)
        if product.lhs is not None and base is not None:
            made.operands[product.statement] = base
    nested = len(every) > len(top)
    if isinstance(loop, ast.While) or nested:
        return made
    if not _run_until_due(loop, top, {*staying, *made.staying}, made, freed):
        _run(loop, top, {*staying, *made.staying}, made, freed)
    return made


def _sums(statements: Sequence[ast.stmt]) -> set[str]:
    """The names of what products add to."""
    return {product.name for product in products_in(statements) if product.carries}


def _settle(loop: Loop, name: str, products: Sequence[Product], made: LoopDecision) -> None:
    """Keep a sum in tensor memory where the loop allows it."""
    if len({(product.tile, product.registers) for product in products}) > 1:
        return
    if not all(product.carries and name not in reads(product.a) | reads(product.b) for product in products):
        return
    own = {product.statement for product in products}
    others = [each for each in _leaves(loop.body, own) if name in reads(each) | writes(each)]
    if not others:
        made.staying[name] = products[0]
        return
    touching = [index for index, each in enumerate(loop.body) if name in reads(each) | writes(each)]
    if len(products) > 1 or loop.body[touching[-1]] not in own:
        return
    first = loop.body[touching[0]]
    if name in reads(first):
        made.staying[name] = products[0]
        made.loads[first] = name


def _leaves(statements: Sequence[ast.stmt], skipped: Collection[ast.stmt]) -> list[ast.AST]:
    """The statements that hold no others, and the heads of those that do."""
    found: list[ast.AST] = []
    for each in inside(statements):
        if not list(blocks(each)):
            found += [] if each in skipped else [each]
        else:
            found += [part for name in ("test", "iter", "target") if (part := getattr(each, name, None)) is not None]
    return found


def _run(
    loop: ast.For, top: Sequence[Product], staying: Collection[str], made: LoopDecision, freed: Collection[str]
) -> None:
    """Find the products that run on, past the next one that is waited for or into the next iteration."""
    free = [product for product in top if _may_run(loop, product, staying, made)]
    waited = [product for product in top if product not in free]
    ending = [product for product in free if _reads(loop, product, freed)]
    if waited:
        # One before a product that is waited for is done with it.
        last = max(loop.body.index(product.statement) for product in waited)
        ending = [product for product in ending if loop.body.index(product.statement) > last]
    free, waited = [product for product in free if product not in ending], waited + ending
    if not waited:
        apart = [product for product in free if product.name in made.loads.values() or product.lhs is not None]
        if apart:
            free, waited = [each for each in free if each not in apart], apart
    place_of = {id(product): loop.body.index(product.statement) for product in top}
    if waited:
        first = min(place_of[id(product)] for product in waited)
        loaded = {name: loop.body.index(statement) for statement, name in made.loads.items()}
        made.running = [
            product
            for product in free
            if loaded.get(product.name, len(loop.body)) > first
            and (product.lhs is None or place_of[id(product)] > first)
        ]
        after = max(place_of[id(product)] for product in top if product not in made.running)
        made.open_ended = any(place_of[id(product)] > after for product in made.running)
    elif free:
        made.running, made.last, made.open_ended = free, free[-1], True


def _run_until_due(
    loop: ast.For, top: Sequence[Product], staying: Collection[str], made: LoopDecision, freed: Collection[str]
) -> bool:
    """Let all products run on until the next iteration takes out their sums, or stores an operand that it computes."""
    found: dict[ast.stmt, Computed] = {}
    for product in top:
        if product.scales or product.lhs is not None or product.name not in staying or not product.carries:
            return False
        for operand, other in ((product.a, product.b), (product.b, product.a)):
            if place(operand, loop.body.index(product.statement), loop.body, in_memory=True) in ("ring", "outside"):
                continue
            computed = computed_operand(loop, product.statement, operand, other)
            if computed is None:
                return False
            found[computed[0]] = computed[1]
    own = [product.statement for product in top]
    if not found or any(read_by_others(loop, each.name, own) for each in found.values()):
        return False
    if any(_reads(loop, product, freed) for product in top):
        return False
    loads = [each for each, name in made.loads.items() if any(product.name == name for product in top)]
    made.computed, made.due = found, min([*found, *loads], key=loop.body.index)
    made.running, made.last, made.open_ended = list(top), top[-1], True
    return True


def _reads(loop: ast.For, product: Product, memories: Collection[str]) -> bool:
    """Whether an operand lies in one of these, or may."""
    index = loop.body.index(product.statement)
    in_rings = [side for side in (product.a, product.b) if place(side, index, loop.body) == "ring"]
    return bool(memories) and any(memory(side, index, loop.body) in {None, *memories} for side in in_rings)


def _may_run(loop: ast.For, product: Product, staying: Collection[str], made: LoopDecision) -> bool:
    """Whether its sum stays in tensor memory, and nothing that it reads is overwritten before it is done."""
    if product.scales:
        return False
    index = loop.body.index(product.statement)
    if product.name not in staying or not product.carries:
        return False
    if place(product.b, index, loop.body, in_memory=True) not in ("ring", "outside"):
        return False
    if product.lhs is not None:
        return product.statement in made.operands
    return place(product.a, index, loop.body, in_memory=True) in ("ring", "outside")


def starts_from_zeros(product: Product, before: Sequence[ast.stmt]) -> bool:
    """Whether what a product adds to was made of zeros by a statement of its block, and is read by nothing since."""
    if not isinstance(product.added, ast.Name):
        return product.added is None
    name = product.added.id
    for each in reversed(before):
        match each:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call) if target == name:
                return called(call) == "zeros"
            case _ if name in reads(each) | writes(each):
                return False
    return False
