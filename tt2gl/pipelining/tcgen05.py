"""Rule `tcgen05`: products on Blackwell get accumulators in tensor memory, and an mbarrier that says they are done.

for k in range(0, steps):                                                                           # before
    acc = _tt2gl_tcgen05(a, b, acc, [BLOCK_M, BLOCK_N], gl.float32, acc_tmem_layout, acc_layout)

acc_tmem = allocate_tensor_memory(gl.float32, [BLOCK_M, BLOCK_N], acc_tmem_layout)                   # after
mma_bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
mbarrier.init(mma_bar, count=1)
mma_phase = 0
acc_tmem.store(acc)
for k in range(0, steps):
    tcgen05_mma(a, b, acc_tmem)
    mbarrier.wait(mma_bar, mma_phase ^ 1)
    tcgen05_commit(mma_bar)
    mma_phase ^= 1
if steps > 0:
    mbarrier.wait(mma_bar, mma_phase ^ 1)
acc = acc_tmem.load(acc_layout)
mbarrier.invalidate(mma_bar)

One mbarrier serves a function: its products are done in their order. `mma_phase` is the phase that the next commit
completes, so that the one before is waited for by the other parity. As Triton does, a kernel waits for what a loop
left running only where the loop had an iteration: by the branch, ptxas computes what is stored after it later (104
registers a thread to 90, of 64 sums a thread).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.accumulators import (
    LoopDecision,
    Product,
    decided,
    product_of,
    products_in,
    starts_from_zeros,
)
from tt2gl.pipelining.conditions import guarded
from tt2gl.pipelining.counting import entered, upwards
from tt2gl.pipelining.early_parts import with_early_parts
from tt2gl.pipelining.flow import NONE, Names, reads, writes
from tt2gl.pipelining.late import with_late_loads
from tt2gl.pipelining.meanwhile import with_loads_meanwhile
from tt2gl.pipelining.naming import Fresh
from tt2gl.pipelining.optional_sums import may_be_absent, tests_of
from tt2gl.pipelining.rings import NotPipelinedError
from tt2gl.pipelining.static import bound, called, constants, is_static, parameters
from tt2gl.pipelining.sums import with_plain_sums
from tt2gl.pipelining.trees import alone, indented, leading, lines_of, mentions, statement, together, under
from tt2gl.pipelining.walking import Lines
from tt2gl.words import TCGEN05_MARK


def with_tensor_memory(function: cst.FunctionDef, fresh: Fresh, freed: Collection[str] = ()) -> cst.FunctionDef:
    """A function with its products by `tcgen05_mma` spelled out; names that it gets are `fresh`.

    `freed`: memory that is written anew at the end of an iteration, by which products must be done with it.
    """
    if not mentions(function, TCGEN05_MARK):
        return function
    function = with_plain_sums(function)
    tree = ast.parse(cst.Module([function]).code).body[0]
    assert isinstance(tree, ast.FunctionDef)
    block = indented(function.body)
    writer = _Function(fresh, tree, freed, upwards(tree), constants(tree))
    lines = writer.lines(tree.body, block)
    memories = frozenset(writer.memories.values())
    body = with_loads_meanwhile(with_late_loads(with_early_parts(lines, memories, fresh), memories))
    return function.with_changes(body=block.with_changes(body=body))


@dataclass
class _Function:
    """One function: its mbarrier, its tensor memory by what it is for, and what is still to be allocated.

    `above`: the names that it knows where that is allocated.
    """

    fresh: Fresh
    tree: ast.FunctionDef
    freed: Collection[str] = ()
    upwards: Collection[str] = ()
    constexprs: Collection[str] = ()
    barrier: str = ""
    phase: str = ""
    memories: dict[tuple[str, tuple[str, str, str]], str] = field(default_factory=dict)
    pending: Lines = field(default_factory=list)
    above: Names = NONE

    def lines(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        """The whole body: allocations stand before the outermost statement that needs them."""
        made: Lines = []
        end = 0
        self.barrier, self.phase = self.fresh("mma_bar"), self.fresh("mma_phase")
        seen: list[ast.stmt] = []
        for line, members, first in lines_of(statements, block):
            own = [each for each, _ in members] or [first]
            if not products_in(own):
                made.append(line)
                seen += own
                continue
            self.above = parameters(self.tree).union(*map(writes, seen))
            written = self._block(own, cst.IndentedBlock([line]), (), None, seen)
            made += together([*(self._barrier() if not end else ()), *self.pending], written)
            self.pending, end = [], len(made)
            seen += own
        return [*made[:end], statement(f"mbarrier.invalidate({self.barrier})"), *made[end:]]

    def _barrier(self) -> Lines:
        return [
            statement(
                f"{self.barrier} = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())",
                "flips when the products before a commit are done",
            ),
            statement(f"mbarrier.init({self.barrier}, count=1)"),
            statement(f"{self.phase} = 0"),
        ]

    def _memory(self, product: Product, tests: Sequence[str] = ()) -> str:
        """The tensor memory of a sum: one for all sums of a name and kind, under `tests` where all of them are.

        Not under those of what is only made below: memory that no product takes is none to Triton's compiler.
        """
        key = product.name, product.tile
        if key not in self.memories:
            self.memories[key] = self.fresh(f"{product.name}_tmem")
            dims, dtype, layout = product.tile
            source = f"{self.memories[key]} = allocate_tensor_memory({dtype}, {dims}, {layout})"
            common = tests_of(product.name, self.tree.body, self._is_known_above) if tests else ()
            self.pending.append(guarded(statement(source), [test for test in tests if test in common]))
        return self.memories[key]

    def _is_settled(self, test: ast.expr) -> bool:
        return is_static(test, frozenset(self.constexprs), bound(self.tree))

    def _is_known_above(self, test: ast.expr) -> bool:
        return self._is_settled(test) and reads(test) & bound(self.tree) <= self.above

    # --------------------------------------------------------------------------------------------------------- walking

    def _block(
        self,
        statements: Sequence[ast.stmt],
        block: cst.BaseSuite,
        staying: Collection[str],
        decision: LoopDecision | None,
        before: Sequence[ast.stmt] = (),
    ) -> Lines:
        """The lines of a block; `decision` is of the loop whose body it is, `before` what stands above it."""
        made: Lines = []
        done = list(before)
        for line, members, first in lines_of(statements, block):
            if decision is not None:
                for each in [one for one, _ in members] or [first]:
                    if each is decision.due:
                        made.append(self._next("the products of the iteration before are done"))
                    if (name := decision.loads.get(each)) is not None:
                        made.append(self._load(decision.staying[name]))
            if isinstance(line, cst.SimpleStatementLine):
                made += self._line(_stored(line, members, decision), members, staying, decision, done)
            elif products_in([first]):
                made += self._compound(first, line, staying, decision, done)
            else:
                made.append(line)
            done += [one for one, _ in members] or [first]
        return made

    def _line(
        self,
        line: cst.SimpleStatementLine,
        members: Sequence[tuple[ast.stmt, cst.BaseSmallStatement]],
        staying: Collection[str],
        decision: LoopDecision | None,
        done: Sequence[ast.stmt],
    ) -> Lines:
        if not any(product_of(each) for each, _ in members):
            return [line]
        made: Lines = []
        for each, small in members:
            product = product_of(each)
            made += [alone(line, small)] if product is None else self._product(product, staying, decision, done)
        made[0] = under(made[0], [*line.leading_lines, *leading(made[0])])
        spoken = made[-1]
        assert isinstance(spoken, cst.SimpleStatementLine)
        made[-1] = spoken.with_changes(trailing_whitespace=line.trailing_whitespace)
        return made

    def _compound(
        self,
        first: ast.stmt,
        line: cst.BaseStatement,
        staying: Collection[str],
        decision: LoopDecision | None,
        done: Sequence[ast.stmt],
    ) -> Lines:
        if isinstance(first, ast.If) and isinstance(line, cst.If):
            return [self._branches(first, line, staying, decision)]
        if isinstance(first, ast.For | ast.While) and isinstance(line, cst.For | cst.While):
            return self._loop(first, line, staying, done)
        raise NotPipelinedError(f"line {first.lineno} cannot hold a product")

    def _branches(self, first: ast.If, line: cst.If, staying: Collection[str], decision: LoopDecision | None) -> cst.If:
        """A branch with its arms written; `decision`: of the loop, for the arm that is taken to stand in it."""
        taken = decision.arms.taken.get(first) if decision is not None else None
        of_body, of_other = (decision if arm is taken else None for arm in (first.body, first.orelse))
        orelse = line.orelse
        if isinstance(orelse, cst.If):
            assert isinstance(first.orelse[0], ast.If)
            orelse = self._branches(first.orelse[0], orelse, staying, of_other)
        elif isinstance(orelse, cst.Else):
            other = self._block(first.orelse, orelse.body, staying, of_other)
            orelse = orelse.with_changes(body=indented(orelse.body).with_changes(body=other))
        body = self._block(first.body, line.body, staying, of_body)
        return line.with_changes(body=indented(line.body).with_changes(body=body), orelse=orelse)

    def _loop(
        self,
        first: ast.For | ast.While,
        line: cst.For | cst.While,
        staying: Collection[str],
        done: Sequence[ast.stmt],
    ) -> Lines:
        decision = decided(first, staying, self.freed, self._is_settled)
        made: Lines = []
        self._operands(decision, made)
        made += [statement(computed.made) for computed in decision.computed.values()]
        optional = [name for name in decision.staying if decision.arms.guarded or may_be_absent(name, done)]
        tests = {name: tests_of(name, first.body, self._is_settled) for name in optional}
        for name, product in decision.staying.items():
            under_tests = tests.get(name, ())
            made.append(guarded(statement(f"{self._memory(product, under_tests)}.store({name})"), under_tests))
        body = self._block(first.body, line.body, {*staying, *decision.staying}, decision)
        made = together(made, [line.with_changes(body=indented(line.body).with_changes(body=body))])
        if decision.last is not None:
            made.append(self._behind(first))
        elif decision.open_ended:
            made += self._done("what still runs on is done here")
        return [*made, *(guarded(self._load(each), tests.get(name, ())) for name, each in decision.staying.items())]

    def _behind(self, loop: ast.For | ast.While) -> cst.BaseStatement:
        """The wait for what a loop left running."""
        wait = self._next()
        condition = entered(loop, self.upwards, self.constexprs)
        if condition is None:
            return wait
        return cst.If(cst.parse_expression(condition), cst.IndentedBlock([wait]))

    def _operands(self, decision: LoopDecision, made: Lines) -> None:
        """Allocate the tensor memory of first operands before the loop that multiplies them."""
        for product in decision.running:
            if product.lhs is not None:
                dims, layout = product.lhs
                base = decision.operands[product.statement]
                name = self.fresh(f"{product.name}_lhs_tmem")
                self.memories[_lhs(product)] = name
                made.append(statement(f"{name} = allocate_tensor_memory({base}.dtype, {dims}, {layout})"))

    # --------------------------------------------------------------------------------------------------------- writing

    def _product(
        self, product: Product, staying: Collection[str], decision: LoopDecision | None, done: Sequence[ast.stmt]
    ) -> Lines:
        """A product: what it adds to is put where it adds, and taken out again where it does not stay there."""
        memory = self._memory(product, tests_of(product.name, self.tree.body, self._is_settled))
        running = decision is not None and product in decision.running
        stays = product.carries and product.name in staying
        made: Lines = []
        anew = not stays and starts_from_zeros(product, done)
        visited = decision is not None and product.name in decision.loads.values()
        a = ast.unparse(product.a)
        if product.lhs is not None:
            a = self._named(product, a, made)
        if visited or not (stays or anew):
            assert product.added is not None
            made.append(statement(f"{memory}.store({ast.unparse(product.added)})"))
        if product.lhs is not None:
            a = self._first_operand(product, a, made)
        flag = ", use_acc=False" if anew else ""
        b = ast.unparse(product.b)
        if product.scales:
            scaled = ", ".join([*self._scales(product, made), *map(ast.unparse, product.scales[2:])])
            made.append(statement(f"tcgen05_mma_scaled({a}, {b}, {memory}, {scaled}{flag})"))
        else:
            made.append(statement(f"tcgen05_mma({a}, {b}, {memory}{flag})"))
        if not running:
            made += self._done()
        elif decision is not None and product == decision.last:
            note = "the products of the iteration before are done: their tiles may be overwritten"
            made += [] if decision.due is not None else [self._next(note)]
            made += [statement(f"tcgen05_commit({self.barrier})"), statement(f"{self.phase} ^= 1")]
        return made if stays else [*made, self._load(product)]

    def _named(self, product: Product, a: str, made: Lines) -> str:
        """A name for a first operand that is not allocated yet: it is computed before what the product adds to."""
        if isinstance(product.a, ast.Name) or _lhs(product) in self.memories:
            return a
        held = self.fresh(f"{product.name}_lhs")
        made.append(statement(f"{held} = {a}"))
        return held

    def _first_operand(self, product: Product, a: str, made: Lines) -> str:
        """Put a first operand into tensor memory: into its own, where its product runs on."""
        known = self.memories.get(_lhs(product))
        if known is not None:
            made.append(statement(f"{known}.store({a})"))
            return known
        assert product.lhs is not None
        dims, layout = product.lhs
        name = self.fresh(f"{product.name}_lhs_tmem")
        made.append(statement(f"{name} = allocate_tensor_memory({a}.dtype, {dims}, {layout}, {a})"))
        return name

    def _scales(self, product: Product, made: Lines) -> list[str]:
        """Put the scales of both operands into tensor memory; their names there."""
        names: list[str] = []
        for side, scale in zip(("lhs", "rhs"), product.scales, strict=False):
            value = ast.unparse(scale)
            if not isinstance(scale, ast.Name):
                held = self.fresh(f"{product.name}_{side}_scale")
                made += self._through_memory(scale, held) or [statement(f"{held} = {value}")]
                value = held
            names.append(self.fresh(f"{value}_tmem"))
            held_in = f"allocate_tensor_memory({value}.dtype, {value}.shape, TensorMemoryScalesLayout(), {value})"
            made.append(statement(f"{names[-1]} = {held_in}"))
        return names

    def _through_memory(self, scale: ast.expr, held: str) -> Lines:
        """What converts scales by way of shared memory, as Triton's does; nothing for what is no conversion of a name.

        They are read in words there; as bytes, and put together, they take more registers.
        """
        match scale:
            case ast.Call(args=[ast.Name(id=name), layout], keywords=[]) if called(scale) == "convert_layout":
                memory = self.fresh(f"{name}_smem")
                shared = f"{name}.dtype, {name}.shape, gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8)"
                return [
                    statement(f"{memory} = gl.allocate_shared_memory({shared}, {name})"),
                    statement(f"{held} = {memory}.load({ast.unparse(layout)})"),
                ]
        return []

    def _next(self, *notes: str) -> cst.BaseStatement:
        """The wait for the commit before the next one."""
        return statement(f"mbarrier.wait({self.barrier}, {self.phase} ^ 1)", *notes)

    def _done(self, *notes: str) -> Lines:
        return [
            statement(f"tcgen05_commit({self.barrier})", *notes),
            statement(f"mbarrier.wait({self.barrier}, {self.phase})"),
            statement(f"{self.phase} ^= 1"),
        ]

    def _load(self, product: Product) -> cst.BaseStatement:
        return statement(f"{product.name} = {self._memory(product)}.load({product.registers})")


def _stored(
    line: cst.SimpleStatementLine,
    members: Sequence[tuple[ast.stmt, cst.BaseSmallStatement]],
    decision: LoopDecision | None,
) -> cst.SimpleStatementLine:
    """A line that allocates what an iteration computes, as one that stores it into memory made before the loop."""
    if decision is None or len(members) != 1 or (computed := decision.computed.get(members[0][0])) is None:
        return line
    return statement(f"{computed.name}.store({computed.value})").with_changes(leading_lines=line.leading_lines)


def _lhs(product: Product) -> tuple[str, tuple[str, str, str]]:
    """What the tensor memory of a first operand is known by."""
    return f"{product.name} at line {product.statement.lineno}", product.tile
