"""The last iterations of a loop, one after the other, as Triton's: products alone are asked for.

All else is computed whether there is such an iteration or not, and what it gives is kept where there is; what it loads
and stores besides is masked where there is none.
So each tile is read right before its product, and not all above the whole: attention spills by that.

p_product = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, qk_layout)
if exists:
    p_product = mfma(q, k, p_product)
p = gl.exp2(p_product)                                          # was: p = gl.exp2(mfma(q, k, gl.zeros(...)))
l_i = l_i + gl.sum(p, axis=1)
l_i = gl.where(exists, l_i, l_i_before)                         # at its end
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeGuard

import libcst as cst

from tt2gl.pipelining.branches import joined
from tt2gl.pipelining.conditions import guarded
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import NONE, Names, inside, reads, writes
from tt2gl.pipelining.guards import Guarded, is_load, is_store, masked, with_masks_there
from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.static import called, is_static
from tt2gl.pipelining.trees import code, edited, indented, statement
from tt2gl.pipelining.walking import Lines
from tt2gl.trees import nodes_in
from tt2gl.visitors import Editor, within
from tt2gl.words import AS_OPERAND

Named = tuple[str, str, str]
"""What a product and its operands are called, where they get names."""

_PRODUCTS = ("mfma", "wmma", "dot_fma")
_OURS = (AS_OPERAND, "turned_in_threads", "upcast")
_STORES = ("store", "buffer_store")
_ASSUMING = ("assume", "device_assert")
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


def products_in(node: ast.AST) -> int:
    """How many products by AMD's instructions a statement has."""
    return sum(called(each).startswith(_PRODUCTS) for each in nodes_in(node) if isinstance(each, ast.Call))


def has_few_registers(loop: ast.For) -> bool:
    """Whether the products of a loop are RDNA's, whose threads have 256 registers and no others for sums."""
    calls = [each for each in nodes_in(loop) if isinstance(each, ast.Call) and called(each).startswith(_PRODUCTS)]
    return any(".rdna" in ast.unparse(each.func) for each in calls)


def products_in_branches(loop: ast.For) -> bool:
    """Whether a loop has products in branches."""
    return any(products_in(each) for each in nodes_in(loop) if isinstance(each, ast.If))


def made_by_products(loop: ast.For) -> Iterator[str]:
    """What a loop makes of each of its products, as they stand: a variable, or nothing that has a name."""
    named = 0
    for each in inside(loop.body):
        if isinstance(each, _ASSIGNMENTS) and (count := products_in(each)):
            bound = writes(each)
            yield from [next(iter(bound)) if len(bound) == 1 else ""] * count
            named += count
    yield from [""] * (products_in(loop) - named)


def only_computes(statements: Sequence[ast.stmt], effects: Effects, known: tuple[Names, Names]) -> bool:
    """Whether statements only compute, beside markers: they may be done where there is no iteration.

    Accesses of global memory get a mask there, stores to shared memory a condition. `known`: the constants of the
    compilation, and all variables.
    """
    for each in statements:
        if isinstance(each, ast.If):
            # Without calls a test loads nothing that would have to be masked.
            plain = is_static(each.test, *known) or not any(isinstance(node, ast.Call) for node in nodes_in(each.test))
            if not plain or not only_computes([*each.body, *each.orelse], effects, known):
                return False
        else:
            calls = [node for node in nodes_in(each) if isinstance(node, ast.Call)]
            if isinstance(each, ast.Expr) and called(each.value) in _STORES and not products_in(each):
                calls = [call for call in calls if call is not each.value]
            elif not isinstance(each, _ASSIGNMENTS):
                return False
            if not all(_only_computes(call, effects) for call in calls):
                return False
    return True


def _only_computes(call: ast.Call, effects: Effects) -> bool:
    name = called(call)
    if is_marker(call):
        return True
    if name.startswith(_PRODUCTS):
        return name in _PRODUCTS and len(call.args) == 3 and not call.keywords
    if is_load(cst.parse_expression(ast.unparse(call))):
        return True
    if name in _ASSUMING or name.endswith("_load"):
        return False
    return name in _OURS or not effects.trouble(call)


def only_added_to(statements: Sequence[ast.stmt]) -> Names:
    """The variables to which products are added, and nothing else is assigned: where those are asked for, they last."""
    assigned = [each for each in inside(statements) if isinstance(each, _ASSIGNMENTS)]
    others = NONE.union(*(writes(each) for each in assigned if not _added_to(each)))
    return frozenset(filter(None, map(_added_to, assigned))) - others


def _added_to(statement: ast.stmt) -> str:
    """The variable that a statement adds one product to, and does no more; empty for others."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[_, _, ast.Name(id=added)]) as product):
            if name == added and called(product) in _PRODUCTS and products_in(statement) == 1:
                return name
    return ""


def asked_for(lines: Lines, exists: str, names: Iterator[Named]) -> Lines:
    """Lines with their products under a condition, one for those that stand side by side, as Triton combines them.

    `names`: what each product and its operands may be called.
    """
    return _beside(with_masks_there(lines), exists, names)


def _beside(lines: Lines, exists: str, names: Iterator[Named]) -> Lines:
    return _combined(_asked_for(lines, exists, names), exists)


def _combined(lines: Lines, exists: str) -> Lines:
    made: Lines = []
    for line in lines:
        last = made[-1] if made else None
        if _asks(last, exists) and _asks(line, exists):
            block = indented(last.body)
            both = block.with_changes(body=[*block.body, *indented(line.body).body])
            made[-1] = last.with_changes(body=both)
        else:
            made.append(line)
    return made


def _asks(line: cst.BaseStatement | None, exists: str) -> TypeGuard[cst.If]:
    """Whether a line is a product under the condition."""
    return isinstance(line, cst.If) and code(line.test) == exists and not any(map(_is_store, indented(line.body).body))


def _asked_for(lines: Lines, exists: str, names: Iterator[Named]) -> Lines:
    made: Lines = []
    for line in lines:
        if isinstance(line, cst.If):
            orelse = line.orelse
            if isinstance(orelse, cst.Else):
                orelse = orelse.with_changes(body=_block(orelse.body, exists, names))
            elif orelse is not None:
                (only,) = _beside([orelse], exists, names)
                assert isinstance(only, cst.If)
                orelse = only
            made.append(line.with_changes(body=_block(line.body, exists, names), orelse=orelse))
        elif _is_store(line) and not any(map(is_store, within(line, cst.Call))):
            made.append(cst.If(cst.Name(exists), cst.IndentedBlock([line])))
        else:
            line = edited(line, _Masked(exists, {}))
            products = _Products(exists, names, _sum_of(line), _name_of(line))
            line = edited(line, products)
            made += products.above if products.sum or products.name else [*products.above, line]
    return made


def _block(block: cst.BaseSuite, exists: str, names: Iterator[Named]) -> cst.IndentedBlock:
    block = indented(block)
    return block.with_changes(body=_beside(list(block.body), exists, names))


def _is_store(line: cst.BaseStatement) -> bool:
    """Whether a statement stores to memory, and does no more."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=func))]):
            return code(func).rpartition(".")[2] in _STORES
    return False


def _sum_of(line: cst.BaseStatement) -> str:
    """The variable that a statement adds its only product to, and does no more; empty for others."""
    products = [each for each in within(line, cst.Call) if code(each.func).rpartition(".")[2] in _PRODUCTS]
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(func=func, args=[_, _, cst.Arg(value=cst.Name(value=added))]),
                )
            ]
        ) if name == added and code(func).rpartition(".")[2] in _PRODUCTS and len(products) == 1:
            return name
    return ""


def _name_of(line: cst.BaseStatement) -> str:
    """The variable that is a statement's product, by itself; empty for others, and for what the product is made of."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(func=func, args=args),
                )
            ]
        ) if code(func).rpartition(".")[2] in _PRODUCTS:
            inner = [each for arg in args for each in within(arg, cst.Call)]
            if not any(code(each.func).rpartition(".")[2] in _PRODUCTS for each in inner):
                return "" if name in {code(arg.value) for arg in args} else name
    return ""


class _Masked(Guarded):
    """Masks loads, and stores to global memory too."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Mask an access."""
        if is_store(updated_node):
            return masked(updated_node, self.condition)
        return super().leave_Call(original_node, updated_node)


class _Products(Editor):
    """Gives products names; `above`: the lines that bind them.

    `sum`: the name of what the only one is added to, `name`: of what it is by itself.
    """

    def __init__(self, exists: str, names: Iterator[Named], added: str, name: str) -> None:
        super().__init__()
        self.exists, self.names, self.sum, self.name = exists, names, added, name
        self.above: Lines = []

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Name a product."""
        if code(updated_node.func).rpartition(".")[2] not in _PRODUCTS:
            return updated_node
        product, *operands = next(self.names)
        for place, arg in enumerate(updated_node.args[:2]):
            if isinstance(arg.value, cst.Name):
                operands[place] = arg.value.value
            else:
                self.above.append(statement(f"{operands[place]} = {code(arg.value)}"))
        if self.sum:
            product = self.sum
        else:
            product = self.name or product
            self.above.append(statement(f"{product} = {code(updated_node.args[2].value)}"))
        made = f"{product} = {code(updated_node.func)}({', '.join(operands)}, {product})"
        self.above.append(cst.If(cst.Name(self.exists), cst.IndentedBlock([statement(made)])))
        return cst.Name(product)


def without_idle_steps(
    lines: Lines, befores: Mapping[str, str], wanted: Collection[str]
) -> tuple[Lines, Mapping[str, str]]:
    """Lines without those that step variables which no other line reads, and which are not `wanted`; and the rest."""
    trees = [ast.parse(code(line)).body[0] for line in lines]
    steps = {id(tree): writes(tree) if isinstance(tree, ast.AugAssign) else NONE for tree in trees}
    others = NONE.union(wanted, *((reads(tree) | writes(tree)) - steps[id(tree)] for tree in trees))
    idle = befores.keys() - others
    kept = [line for line, tree in zip(lines, trees, strict=True) if not steps[id(tree)] & idle]
    return kept, {name: before for name, before in befores.items() if name not in idle}


def kept_where(exists: str, befores: Mapping[str, str], flags: Mapping[str, Sequence[str]]) -> tuple[Lines, Lines]:
    """What stands above and below an iteration that there may not be, for it to change nothing if so.

    `flags`: the tests that variables are only changed under.
    """
    above: Lines = []
    below: Lines = []
    for name, before in befores.items():
        tests = flags.get(name, ())
        above.append(guarded(statement(f"{before} = {name}"), tests))
        below.append(guarded(statement(f"{name} = gl.where({exists}, {name}, {before})"), tests))
    return joined(above), joined(below)
