"""Rule `wgmma`: products that only add up run on while the loop goes ahead.

for k in range(0, steps):                                                          # before
    acc = warpgroup_mma(a_buf.index(k % 3), b_buf.index(k % 3), acc)

for k in range(0, steps):                                                          # after
    acc = warpgroup_mma(a_buf.index(k % 3), b_buf.index(k % 3), acc, is_async=True)
    acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))

Triton's own conditions: the tiles lie in rings or outlive the loop, and the sum is read by nothing but the next product
until a product that the loop waits for at once. That wait then takes the running sums along, and no other does: they
come into the loop as what is under way. A wait at its end, for none of them, ties all their registers there. Two sums
of 128x128 spill 14 registers a thread so, for 46.

    dv = warpgroup_mma_init(dv)                                                    # beside `dp`, which is waited for
    for k in range(0, steps):
        dp = warpgroup_mma(v_smem, do_buf.index(slot).permute((1, 0)), zeros)
        dv = warpgroup_mma(p, do_buf.index(slot), dv, is_async=True)
    dv = warpgroup_mma_wait(num_outstanding=0, deps=(dv,))
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.flow import Names, reads, writes
from tt2gl.pipelining.operands import memory, place, registers_where
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.pipelining.trees import indented, lines_of, mentions, statement
from tt2gl.pipelining.walking import Lines, with_blocks


def launched_asynchronously(
    function: cst.FunctionDef, synchronous: Names, freed: Collection[str] = ()
) -> cst.FunctionDef:
    """A function whose products run on where they may. Sums named in `synchronous` never do.

    `freed`: memory that is written anew at the end of an iteration, by which products must be done with it.
    """
    if not mentions(function, "warpgroup_mma"):
        return function
    tree = ast.parse(cst.Module([function]).code).body[0]
    assert isinstance(tree, ast.FunctionDef)
    known = constants(tree), bound(tree)

    def static(test: ast.expr) -> bool:
        return is_static(test, *known)

    def loop(statement: ast.stmt, line: cst.BaseStatement, indent: int) -> Lines:
        if not any(called(node) == "warpgroup_mma" for node in ast.walk(statement) if isinstance(node, ast.Call)):
            return [line]
        inner = with_blocks(statement, line, loop, indent)
        if isinstance(statement, ast.For) and isinstance(inner, cst.For):
            # Inner loops have been written anew, so that both trees are read again.
            again = ast.parse(cst.Module([inner]).code).body[0]
            assert isinstance(again, ast.For)
            return _Loop(again, inner, synchronous, freed, static).lines()
        return [inner]

    made = with_blocks(tree, function, loop, 0)
    assert isinstance(made, cst.FunctionDef)
    return made


def runs_on(loop: cst.For, synchronous: Names, freed: Collection[str], static: Callable[[ast.expr], bool]) -> bool:
    """Whether some product of a loop runs on into the next iteration; `static`: what the compiler knows."""
    tree = ast.parse(cst.Module([loop]).code).body[0]
    assert isinstance(tree, ast.For)
    return _Loop(tree, loop, synchronous, freed, static).any_running()


@dataclass(frozen=True)
class _Product:
    """`name = warpgroup_mma(a, b, c)`, the `index`-th statement of a body."""

    index: int
    name: str
    call: ast.Call


@dataclass
class _Loop:
    """One loop: which of its products run on (`running`), and which the loop waits for at once (`waited`)."""

    loop: ast.For
    node: cst.For
    synchronous: Names
    freed: Collection[str]
    static: Callable[[ast.expr], bool]
    running: list[_Product] = field(default_factory=list)
    waited: list[_Product] = field(default_factory=list)
    threaded: list[str] = field(default_factory=list)

    def lines(self) -> Lines:
        """The loop, and the wait after it."""
        if not self.any_running():
            return [self.node]
        body: Lines = []
        index = 0
        for line, members, _ in lines_of(self.loop.body, self.node.body):
            here = [
                each for each in (*self.running, *self.waited) if index <= each.index < index + max(len(members), 1)
            ]
            body += self._line(line, here[0]) if here else [line]
            index += max(len(members), 1)
        inner = indented(self.node.body)
        names = [product.name for product in self.running]
        return [*self._begun(names), self.node.with_changes(body=inner.with_changes(body=body)), _wait(0, names)]

    def _begun(self, names: Sequence[str]) -> Lines:
        """What has sums come into the loop as under way, where the loop does not wait for them at its end."""
        return [statement(f"{name} = warpgroup_mma_init({name})") for name in names] if self.waited else []

    def any_running(self) -> bool:
        """Tell apart the products that run on and those that are waited for; whether there are any of the former."""
        for product in self._products():
            (self.running if self._may_run_on(product) else self.waited).append(product)
        return bool(self.running)

    def _products(self) -> list[_Product]:
        found, alone = [], _alone(self.loop, self.node)
        for index, each in enumerate(self.loop.body):
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                    called(call) == "warpgroup_mma" and len(call.args) == 3 and index in alone
                ):
                    if not any(keyword.arg == "is_async" for keyword in call.keywords):
                        found.append(_Product(index, name, call))
        return found

    # --------------------------------------------------------------------------------------------------- conditions

    def _may_run_on(self, product: _Product) -> bool:
        a, b, _ = product.call.args
        body = self.loop.body
        if product.name in self.synchronous or place(b, product.index, body) not in ("ring", "outside"):
            return False
        if place(a, product.index, body) == "written here" and not self._registers_where(product):
            return False
        if any(self._is_freed(operand, product.index) for operand in (a, b)):
            return False
        later = body[product.index + 1 :]
        if any(product.name in reads(each) | writes(each) for each in later):
            return False
        readers = self._readers(product)
        if not readers:
            return False
        others = [index for index in readers if not self._adds_up(index, product.name)]
        if not others:
            return True
        if not self.waited or min(others) <= self.waited[0].index:
            return False
        self.threaded.append(product.name)
        return True

    def _registers_where(self, product: _Product) -> str:
        """The test of the compilation under which the first operand of a loop's only product is in registers."""
        if place(product.call.args[0], product.index, self.loop.body) == "ring" or len(self._products()) > 1:
            return ""
        return registers_where(product.call.args[0], product.index, self.loop.body, self.static)

    def _is_freed(self, operand: ast.expr, index: int) -> bool:
        """Whether an operand may lie in memory that products must be done with in their own iteration."""
        if not self.freed or place(operand, index, self.loop.body) != "ring":
            return False
        name = memory(operand, index, self.loop.body)
        return name is None or name in self.freed

    def _readers(self, product: _Product) -> list[int]:
        """The statements that read what the product was in the iteration before."""
        found = []
        for index, each in enumerate(self.loop.body[: product.index + 1]):
            if product.name in reads(each):
                found.append(index)
            if product.name in writes(each) and not isinstance(each, (ast.If, ast.For, ast.While)):
                break
        return found

    def _adds_up(self, index: int, name: str) -> bool:
        """Whether a statement is a product that takes a sum as what it adds to, and for nothing else."""
        match self.loop.body[index]:
            case ast.Assign(value=ast.Call(args=[a, b, ast.Name(id=added)]) as call) if called(call) == "warpgroup_mma":
                return added == name and name not in reads(a) | reads(b)
        return False

    # -------------------------------------------------------------------------------------------------------- writing

    def _line(self, line: cst.BaseStatement, product: _Product) -> Lines:
        if product in self.waited and not (self.threaded and product is self.waited[0]):
            return [line]
        made: Lines = [_asynchronous(line)]
        if product in self.waited:
            note = "done here: this product, and what ran on from the iteration before"
            return [*made, _wait(0, [product.name, *self.threaded], note)]
        last = product is self.running[-1]
        count, names = len(self.running), [each.name for each in self.running]
        if self.waited:
            return made
        if test := self._registers_where(product):
            note = "runs on, unless its registers are used again: the iteration before is done"
            return [*made, _wait(f"{count - 1} if {test} else {count}", names, note)]
        if place(product.call.args[0], product.index, self.loop.body) == "registers":
            # Its registers are written anew in the next iteration, so that it must be done by then.
            note = "done here: this product's last turn, whose registers are used again"
            return [*made, _wait(count - 1, names if last else [product.name], note)]
        note = "runs on, while the iteration before is done: its tiles may be overwritten"
        return [*made, _wait(count, names, note)] if last else made


def _alone(loop: ast.For, node: cst.For) -> set[int]:
    """The statements of a body that have a line of their own."""
    found, index = set(), 0
    for _, members, _ in lines_of(loop.body, node.body):
        if len(members) == 1:
            found.add(index)
        index += max(len(members), 1)
    return found


def _wait(outstanding: int | str, names: Sequence[str], *notes: str) -> cst.SimpleStatementLine:
    deps = f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"
    return statement(f"{', '.join(names)} = warpgroup_mma_wait(num_outstanding={outstanding}, deps={deps})", *notes)


def _asynchronous(line: cst.BaseStatement) -> cst.BaseStatement:
    """A product's statement with `is_async=True`."""
    assert isinstance(line, cst.SimpleStatementLine)
    assign = line.body[0]
    assert isinstance(assign, cst.Assign)
    assert isinstance(assign.value, cst.Call)
    made = cst.parse_expression("f(is_async=True)")
    assert isinstance(made, cst.Call)
    *others, last = assign.value.args
    if not isinstance(last.comma, cst.Comma):
        last = last.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    call = assign.value.with_changes(args=[*others, last, made.args[0]])
    return line.with_changes(body=[assign.with_changes(value=call)])
