"""A first operand that is computed from loaded tiles is read into registers where it is made, not where it is taken.

    qg = (q * gl.exp2(g)).to(q.dtype)                                                                   # before
    h = gl.load(h_ptrs)
    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_K, BLOCK_V], h_shared, h)
    if k >= first:
        qg_smem = gl.allocate_shared_memory(qg.dtype, [BLOCK_T, BLOCK_K], qg_shared, qg)
        acc = mma_v2(qg_smem.load(lhs_layout), h_smem.load(rhs_layout), acc)

    qg = (q * gl.exp2(g)).to(q.dtype)                                                                   # after
    qg_smem = gl.allocate_shared_memory(qg.dtype, [BLOCK_T, BLOCK_K], qg_shared, qg)
    qg_lhs = qg_smem.load(lhs_layout)
    h = gl.load(h_ptrs)
    h_smem = gl.allocate_shared_memory(h.dtype, [BLOCK_K, BLOCK_V], h_shared, h)
    if k >= first:
        acc = mma_v2(qg_lhs, h_smem.load(rhs_layout), acc)

Triton's compiler moves the conversion to such an operand up through elementwise work to the loads
(RemoveLayoutConversions, `hoistConvertDotOperand`), and the one that is left afterwards stands behind that work: the
kernel above, of gated linear attention, spills 4 registers a thread so, as Triton's does, and 20 as it was.

The second operand that a product with such a first one takes from its slot is read behind that, as Triton's
reordering has it, and so above products before: with two products of one first operand, 196 registers for 255.

Not here: what is made of anything but loaded tiles, constants and scalars, element by element; what the product
follows on; what a loop below takes, for all of which it would be held; and memory that only some of the compilation's
branches need.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.pipelining.flow import inside, writes
from tt2gl.pipelining.loads import LOADS, is_marker
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import bound, called, constants, is_static, parameters, read_from
from tt2gl.trees import blocks, nodes_in

_PRODUCT = "mma_v2"

_ELEMENTWISE = {
    *("to", "cast", "where", "maximum", "minimum", "clamp", "fma", "abs", "floor", "ceil", "rsqrt", "sqrt"),
    *("exp", "exp2", "log", "log2", "sin", "cos", "erf", "sigmoid", "fdiv", "div_rn", "sqrt_rn", "umulhi"),
}
"""What is done to each element by itself, as a function or method."""


def with_early_firsts(text: str, functions: Collection[str]) -> str:
    """The text with computed first operands of these functions' products read where they are made."""
    return in_functions(text, functions, lambda places, function: _Firsts(places, function).edits())


@dataclass(frozen=True)
class _Operand:
    """What puts a value into memory that first operands are read from, and the products with them, as in the text."""

    name: str
    made: ast.Assign
    products: Sequence[ast.Call]
    branches: Sequence[tuple[ast.If, bool]]

    @property
    def source(self) -> str:
        """What makes the memory, as source."""
        return ast.unparse(self.made.value)


class _Firsts:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        nodes = nodes_in(function)
        self.fixed, self.variables, self.given = constants(function), bound(function), parameters(function)
        self.taken = names_of(nodes)
        names = [each for each in nodes if isinstance(each, ast.Name)]
        self.bindings = Counter(each.id for each in names if isinstance(each.ctx, ast.Store))
        self.uses = Counter(each.id for each in names if isinstance(each.ctx, ast.Load))
        self.products: dict[str, list[ast.Call]] = {}
        for node in nodes:
            if isinstance(node, ast.Call) and called(node) == _PRODUCT and (memory := read_from(node.args[0])):
                self.products.setdefault(memory, []).append(node)

    def edits(self) -> Iterator[Edit]:
        """The edits of the function."""
        for each in (self.function, *inside(self.function.body)):
            for block in blocks(each):
                for at, statement in enumerate(block):
                    yield from self._behind(statement, block, at)

    def _behind(self, statement: ast.stmt, block: Sequence[ast.stmt], at: int) -> Iterator[Edit]:
        """The edits that have what a statement of a block makes read right behind it, if products take it first."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=value)], value=made) if called(made) not in LOADS:
                if not self._is_computed(made, block[:at]):
                    return
                changed = (place for place in range(at + 1, len(block)) if value in writes(block[place]))
                rest = block[at + 1 : next(changed, len(block))]
                found = list(self._operands(value, rest, ()))
                if found and self._has_work_before(found, rest):
                    yield from self._early(statement, found, block)

    def _operands(
        self, value: str, block: Sequence[ast.stmt], branches: Sequence[tuple[ast.If, bool]]
    ) -> Iterator[_Operand]:
        """What puts a value into memory for products in a block, and in its branches; none in loops there."""
        near = [node for each in block if not _has_loop(each) for node in nodes_in(each)]
        for statement in block:
            match statement:
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.Call(args=[_, *form, ast.Name(id=given)]) as call
                ):
                    made = given == value and called(call) == "allocate_shared_memory" and len(form) == 2
                    products = self.products.get(name, [])
                    here = all(product in near for product in products)
                    if made and here and self._is_first(name, products) and all(map(self._is_static, form)):
                        yield _Operand(name, statement, products, branches)
                case ast.If(body=body, orelse=orelse):
                    yield from self._operands(value, body, (*branches, (statement, True)))
                    yield from self._operands(value, orelse, (*branches, (statement, False)))

    def _is_first(self, memory: str, products: Sequence[ast.Call]) -> bool:
        """Whether memory is made once, and all that takes it are first operands of products, in layouts known above."""
        layouts = [read.args[0] for product in products if isinstance(read := product.args[0], ast.Call)]
        alone = self.bindings[memory] == 1 and self.uses[memory] == len(products) > 0
        return alone and all(map(self._is_static, layouts))

    def _is_static(self, node: ast.expr) -> bool:
        return (
            is_static(node, self.fixed, self.variables)
            or isinstance(node, ast.List)
            and all(map(self._is_static, node.elts))
        )

    def _has_work_before(self, found: Sequence[_Operand], rest: Sequence[ast.stmt]) -> bool:
        """Whether there is more between a value and its products than what is to go with it.

        Branches that the compilation does not decide, or what another product is to take.
        """
        if len({each.source for each in found}) > 1:
            return False
        if any(each.branches for each in found):
            return all(each.branches for each in found) and self._is_everywhere(found)
        between = rest[rest.index(found[0].made) + 1 :]
        taker = next(at for at, each in enumerate(between) if found[0].products[0] in nodes_in(each))
        return len(found[0].products) > 1 or not all(map(_is_small, between[:taker]))

    def _is_everywhere(self, found: Sequence[_Operand]) -> bool:
        """Whether values are put into memory under a branch of the kernel's run, and in each arm of the compilation."""
        tests = {
            test: {arm for each in found for other, arm in each.branches if other is test}
            for each in found
            for test, _ in each.branches
        }
        static = {test: is_static(test.test, self.fixed, self.variables) for test in tests}
        return not all(static.values()) and all(len(arms) == 2 for test, arms in tests.items() if static[test])

    def _early(self, statement: ast.stmt, found: Sequence[_Operand], block: Sequence[ast.stmt]) -> Iterator[Edit]:
        """The edits that have operands of what a statement of a block makes in memory and read right behind it."""
        first, products = found[0], [product for each in found for product in each.products]
        read = first.products[0].args[0]
        assert isinstance(read, ast.Call)
        layout = ast.unparse(read.args[0])
        name = claimed(f"{first.name.rpartition('_smem')[0] or first.name}_lhs", self.taken)
        indent = " " * statement.col_offset
        below = statement if first.branches else first.made
        lines = [f"{first.name} = {first.source}"] if first.branches else []
        lines.append(f"{name} = {first.name}.load({layout})")
        place = self.places.lines(below)[1]
        yield Edit(place, place, "".join(f"{indent}{line}\n" for line in lines))
        for each in found if first.branches else ():
            yield Edit(*self.places.lines(each.made), "")
        for product in products:
            taken = product.args[0]
            assert isinstance(taken, ast.Call)
            if ast.unparse(taken.args[0]) == layout:
                yield Edit(*self.places.of(taken), name)
            elif read_from(taken) != first.name:
                yield Edit(*self.places.of(taken), f"{first.name}.load({ast.unparse(taken.args[0])})")
            yield from self._second(product, below, block)

    def _second(self, product: ast.Call, below: ast.stmt, block: Sequence[ast.stmt]) -> Iterator[Edit]:
        """The edits that have a product's second operand read behind its first, if that comes from a slot."""
        match product.args[1]:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=slot), attr="load"), args=[layout], keywords=[]) as read:
                made = next((each for each in block if slot in writes(each)), None)
                is_slot = isinstance(made, ast.Assign) and is_marker(made.value)
                if made is None or not is_slot or self.bindings[slot] != 1 or self.uses[slot] != 1:
                    return
                if not self._is_static(layout):
                    return
                name = claimed(f"{slot}_rhs", self.taken)
                place = self.places.lines(max(made, below, key=lambda each: each.lineno))[1]
                yield Edit(place, place, f"{' ' * below.col_offset}{name} = {ast.unparse(read)}\n")
                yield Edit(*self.places.of(read), name)

    def _is_computed(self, node: ast.expr, above: Sequence[ast.stmt]) -> bool:
        """Whether a value is computed of loaded tiles element by element, each of which stands in the same block."""
        tiles = list(self._leaves(node, above))
        return bool(tiles) and all(tiles)

    def _leaves(self, node: ast.expr, above: Sequence[ast.stmt]) -> Iterator[bool]:
        """Of each tensor that a value is computed of, whether it is loaded; False for what is done to it otherwise."""
        match node:
            case ast.Constant() | ast.Attribute():
                return
            case ast.Name(id=name):
                at = next((at for at in reversed(range(len(above))) if name in writes(above[at])), None)
                if at is None:
                    if name in self.variables and name not in self.given and name not in self.fixed:
                        yield False
                    return
                match above[at]:
                    case ast.Assign(targets=[ast.Name()], value=value):
                        yield from self._leaves(value, above[:at])
                    case _:
                        yield False
            case ast.Call() if called(node) in LOADS or is_marker(node):
                yield True
            case ast.Call(func=func, args=args) if called(node) in _ELEMENTWISE:
                receiver = func.value if isinstance(func, ast.Attribute) else None
                is_module = isinstance(receiver, ast.Name) and receiver.id not in self.variables
                for part in args if receiver is None or is_module else [receiver, *args]:
                    yield from self._leaves(part, above)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.IfExp() | ast.BoolOp():
                for each in ast.iter_child_nodes(node):
                    if isinstance(each, ast.expr):
                        yield from self._leaves(each, above)
            case _:
                yield False


def _has_loop(statement: ast.stmt) -> bool:
    return any(isinstance(each, ast.For | ast.While) for each in inside([statement]))


def _is_small(statement: ast.stmt) -> bool:
    """Whether a statement only says where a tile is, or puts one where a product takes it."""
    match statement:
        case ast.Assign(value=value):
            return is_marker(value) or called(value) in ("allocate_shared_memory", "convert_layout")
    return False
