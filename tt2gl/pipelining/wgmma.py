"""Rule `wgmma`: products that only add up run on while the loop goes ahead.

for k in range(0, steps):                                                          # before
    acc = warpgroup_mma(a_buf.index(k % 3), b_buf.index(k % 3), acc)

for k in range(0, steps):                                                          # after
    acc = warpgroup_mma(a_buf.index(k % 3), b_buf.index(k % 3), acc, is_async=True)
    acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))

Triton's own conditions: the tiles lie in rings or outlive the loop, and the sum is read by nothing but the next product
until a product that the loop waits for at once. The first such wait is for what runs on, too, and so it is spelled out;
it takes those sums along that something else reads then, and no other wait does. All come into the loop as what is
under way. A wait at its end, for none of them, ties all their registers there. Two sums of 128x128 spill 14 registers
a thread so, for 46.

    dv = warpgroup_mma_init(dv)                                                    # beside `dp`, which is waited for
    for k in range(0, steps):
        dp = warpgroup_mma(v_smem, do_buf.index(slot).permute((1, 0)), zeros, is_async=True)
        dp = warpgroup_mma_wait(num_outstanding=0, deps=(dp,))
        dv = warpgroup_mma(p, do_buf.index(slot), dv, is_async=True)
    dv = warpgroup_mma_wait(num_outstanding=0, deps=(dv,))

So it is for a product under tests of the compilation, of which one way has it and all others are not there:

        if SCALED:
            acc += warpgroup_mma(a, b, zeros) * scale
        else:
            acc = warpgroup_mma(a, b, acc, is_async=True)
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.flow import Names, inside, reads, writes
from tt2gl.pipelining.operands import memory, place
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.pipelining.trees import indented, lines_of, mentions, statement
from tt2gl.pipelining.walking import Lines, with_blocks
from tt2gl.pipelining.ways import Way, in_arms, spelled, taken_so, through, told_by
from tt2gl.trees import nodes_in

_ALL, _OTHERS = "all", "others"


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
        if not any(called(node) == "warpgroup_mma" for node in nodes_in(statement) if isinstance(node, ast.Call)):
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
    """One loop: which of its products run on (`running`), and which the loop waits for at once (`waited`).

    `arms`: products that run on in branches that the compilation decides, each with the loop as it is there.
    """

    loop: ast.For
    node: cst.For
    synchronous: Names
    freed: Collection[str]
    static: Callable[[ast.expr], bool]
    running: list[_Product] = field(default_factory=list)
    waited: list[_Product] = field(default_factory=list)
    threaded: list[str] = field(default_factory=list)
    arms: dict[ast.stmt, _Loop] = field(default_factory=dict)

    def lines(self) -> Lines:
        """The loop, and the wait after it."""
        if not self.any_running():
            return [self.node]
        if self.arms:
            ends = dict.fromkeys(each.name for arm in self.arms.values() for each in arm.running)
            return [self.node.with_changes(body=self._armed(self.loop.body, self.node.body)), _wait(0, [*ends])]
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
        if not self.running and not self.waited:
            self.arms = {
                product: arm
                for product, taken in in_arms(self.loop.body, self._decides, {})
                if (arm := self._arm(taken))
            }
        return bool(self.running or self.arms)

    def _arm(self, taken: Way) -> _Loop | None:
        """The loop where tests of the compilation are `taken` so, if its one product runs on there."""
        here = ast.For(self.loop.target, self.loop.iter, taken_so(self.loop.body, taken) or [ast.Pass()], [])
        text = ast.unparse(ast.fix_missing_locations(here))
        (loop,), node = ast.parse(text).body, cst.parse_statement(text)
        assert isinstance(loop, ast.For)
        assert isinstance(node, cst.For)
        arm = _Loop(loop, node, self.synchronous, self.freed, self.static)
        many = sum(called(each) == "warpgroup_mma" for each in nodes_in(loop) if isinstance(each, ast.Call))
        arm.running = [each for each in arm._products() if many == 1 and arm._may_run_on(each)]
        return arm if arm.running else None

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
        body = self.loop.body
        if product.name in self.synchronous or not self._outstanding(product, 1):
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

    def _outstanding(self, product: _Product, count: int) -> str:
        """How many of `count` products may be under way after this one, as source; empty where it may not run on.

        All of them, where its operands lie in rings or outlive the loop; all but itself, where the first one is in
        registers, which the next iteration writes anew. By a test of the compilation that may be one or the other, for
        a product alone.
        """
        ways = [(taken, runs) for taken in self._ways(product) if (runs := self._runs(product, taken)) is not None]
        found = {runs for _, runs in ways}
        if len(found) == 1:
            return {_ALL: str(count), _OTHERS: str(count - 1)}.get(found.pop(), "")
        if _ALL not in found or len(self._products()) > 1:
            return ""
        told = told_by([taken for taken, runs in ways if runs == _ALL], [taken for taken, runs in ways if runs != _ALL])
        if not told or any(reads(ast.parse(test)) & writes(self.loop) for test in told):
            return ""
        if [*told.values()] == [False]:
            return f"{count - 1} if {next(iter(told))} else {count}"
        return f"{count} if {' and '.join(spelled(*each) for each in told.items())} else {count - 1}"

    def _decides(self, test: ast.expr) -> bool:
        """Whether the compilation decides a test alike wherever it stands in the loop."""
        same = [each for each in inside(self.loop.body) if isinstance(each, ast.If) and _same(each.test, test)]
        return self.static(test) and (len(same) == 1 or not reads(test) & writes(self.loop))

    def _ways(self, product: _Product) -> Sequence[Way]:
        """The ways through the tests of the compilation that the product's operands are bound under."""
        names = reads(product.call.args[0]) | reads(product.call.args[1])
        above = self.loop.body[: product.index]
        tests = [each for each in inside(above) if isinstance(each, ast.If) and names & writes(each)]
        return through([each.test for each in tests if self._decides(each.test)])

    def _runs(self, product: _Product, taken: Way) -> str | None:
        """What may be under way behind a product where tests are `taken` so; None where an operand is none."""
        statement = self.loop.body[product.index]
        body = taken_so(self.loop.body, taken)
        operands = reads(product.call.args[0]) | reads(product.call.args[1])
        if operands & writes(self.loop) - frozenset().union(writes(self.loop.target), *map(writes, body)):
            return None
        index = body.index(statement)
        first, second = (place(each, index, body) for each in product.call.args[:2])
        if second == "registers":
            return None
        held = {"registers": _OTHERS, "ring": _ALL, "outside": _ALL}.get(first, "")
        freed = any(self._is_freed(each, index, body) for each in product.call.args[:2])
        return held if second in ("ring", "outside") and not freed else ""

    def _is_freed(self, operand: ast.expr, index: int, body: Sequence[ast.stmt]) -> bool:
        """Whether an operand may lie in memory that products must be done with in their own iteration."""
        if not self.freed or place(operand, index, body) != "ring":
            return False
        name = memory(operand, index, body)
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

    def _armed(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> cst.IndentedBlock:
        """A block with the products that run on in its branches."""
        made: Lines = []
        for line, _, first in lines_of(statements, block):
            if arm := self.arms.get(first):
                made += arm._line(line, arm.running[0])
            elif isinstance(line, cst.If) and isinstance(first, ast.If):
                made.append(self._branches(first, line))
            else:
                made.append(line)
        return indented(block).with_changes(body=made)

    def _branches(self, first: ast.If, line: cst.If) -> cst.If:
        if not any(each in self.arms for each in inside([first])):
            return line
        made = line.with_changes(body=self._armed(first.body, line.body))
        if isinstance(line.orelse, cst.Else):
            other = line.orelse.with_changes(body=self._armed(first.orelse, line.orelse.body))
            return made.with_changes(orelse=other)
        if isinstance(line.orelse, cst.If) and isinstance(first.orelse[0], ast.If):
            return made.with_changes(orelse=self._branches(first.orelse[0], line.orelse))
        return made

    def _line(self, line: cst.BaseStatement, product: _Product) -> Lines:
        if product in self.waited and not (self.running and product is self.waited[0]):
            return [line]
        made: Lines = [_asynchronous(line)]
        if product in self.waited:
            note = "done here: this product, and what ran on from the iteration before"
            return [*made, _wait(0, [product.name, *self.threaded], note)]
        last = product is self.running[-1]
        count, names = len(self.running), [each.name for each in self.running]
        if self.waited:
            return made
        said = self._outstanding(product, count)
        if said == str(count):
            note = "runs on, while the iteration before is done: its tiles may be overwritten"
            return [*made, _wait(count, names, note)] if last else made
        if said == str(count - 1):
            # Its registers are written anew in the next iteration, so that it must be done by then.
            note = "done here: this product's last turn, whose registers are used again"
            return [*made, _wait(count - 1, names if last else [product.name], note)]
        note = "runs on, unless its registers are used again: the iteration before is done"
        return [*made, _wait(said, names, note)]


def _same(some: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(some) == ast.unparse(other)


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
