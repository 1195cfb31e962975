"""One loop with markers, written anew: rings, prologue, steady state and drain."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from tt2gl.pipelining.branches import joined
from tt2gl.pipelining.branches_below import Unwritten, with_branch_below
from tt2gl.pipelining.conditions import guarded, settled
from tt2gl.pipelining.consumer import Consumer
from tt2gl.pipelining.counting import with_bounds
from tt2gl.pipelining.flow import reads, takes_attribute
from tt2gl.pipelining.last import asked_for, kept_where, without_idle_steps
from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.loop_plan import LoopPlan
from tt2gl.pipelining.producer import Producer
from tt2gl.pipelining.registers import TilesRead, between, placed, rotated, stores
from tt2gl.pipelining.rings import NotPipelinedError, rings_note
from tt2gl.pipelining.scalars import layout_of
from tt2gl.pipelining.split_turns import SplitTurns, split
from tt2gl.pipelining.static import called
from tt2gl.pipelining.tma import allocation
from tt2gl.pipelining.trees import (
    Renamed,
    alone,
    bare,
    code,
    comment,
    comments,
    edited,
    indented,
    leading,
    lines_of,
    mentions,
    statement,
    under,
)
from tt2gl.pipelining.walking import Compound, Lines
from tt2gl.pipelining.wgmma import runs_on
from tt2gl.trees import nodes_in

_THROUGH_MEMORY = {"allocate_shared_memory", "convert_layout", "max", "min", "sum", "reduce", "associative_scan"}
"""What passes shared memory, or may."""
_IN_REGISTERS = {"range", "tuple", "turned_in_threads"}


@dataclass(frozen=True)
class LoopWriter:
    """Writes one loop; `rebuild` does the statements nested in it that are not its own. `indent`: of the loop.

    `unwritten` says of an address whether the loop leaves the memory there as it is.
    """

    plan: LoopPlan
    rebuild: Compound
    indent: int
    unwritten: Unwritten

    def lines(self, loop: ast.For, node: cst.For) -> Lines:
        """What stands in the loop's place."""
        if self._waits(loop, node):
            return replace(self, plan=replace(self.plan, awaited=True)).lines(loop, node)
        plan = self.plan
        if plan.turns is not None:
            return [plan.turns.counted(self._counted(node, *self._steady(loop, node))[0])]
        lead = list(node.leading_lines)
        blank = [line for line in lead if line.comment is None][
            : lead.index(comments(lead)[0]) if comments(lead) else None
        ]
        split = None if plan.split is None else self._split(loop, node)
        made: Lines = [] if plan.outside else self.rings()
        made += self._bound(plan.bindings if split is None else split.bindings)
        made += self._constants(loop.body, node.body)
        made += self._prologue(loop, node) if split is None else split.first()
        made[0] = under(made[0], [*blank, *leading(made[0])])
        if split is not None:
            turn = self._loop(node, split.turn())
            return [
                *made,
                under(turn, [cst.EmptyLine(indent=False), *lead[len(blank) :]]),
                split.end(),
                *self._kept(loop),
            ]
        steady, at_use = self._counted(node, *self._steady(loop, node))
        started = self._started(at_use=at_use)
        made += started
        lines = lead[len(blank) :] if started else [cst.EmptyLine(indent=False), *lead[len(blank) :]]
        made.append(steady.with_changes(leading_lines=lines))
        if plan.drain:
            made.append(self._unrolled(loop, node) if plan.last else self._drained(loop, node))
        if plan.copied and not plan.drain:
            made += self._landed()
        return made if plan.outside else [*made, *self._kept(loop), *self.ended()]

    def _split(self, loop: ast.For, node: cst.For) -> SplitTurns | None:
        here = Consumer(self.plan, self.rebuild, self.indent + 4).lines(loop, node)
        ahead = Producer(self.plan, "steady", self.indent + 4).lines(loop.body, node.body)
        return split(self.plan, here, ahead, stores(self.plan, loop.body, node.body))

    def _waits(self, loop: ast.For, node: cst.For) -> bool:
        """Whether the loop waits for all products by wgmma at once, which read every tile where it lies."""
        plan = self.plan
        nested = any(isinstance(each, ast.For | ast.While) for each in nodes_in(loop) if each is not loop)
        in_place = plan.plain and plan.turns is None and all(ring.in_memory for ring in plan.rings)
        if plan.awaited or nested or not in_place:
            return False
        here, ahead = self._steady(loop, node)
        made = self._loop(node, [*here, *ahead])
        return mentions(made, "warpgroup_mma") and not self._runs_on(made)

    def _runs_on(self, made: cst.For) -> bool:
        plan = self.plan
        return runs_on(made, plan.spec.synchronous, plan.freed, lambda test: ast.unparse(test) in plan.decided)

    def _counted(self, node: cst.For, here: Lines, ahead: Lines) -> tuple[cst.For, bool]:
        """The loop with its slots counted, and whether that is where they are used: else it is at the body's end."""
        counters = self.plan.slots.values()
        made = self._loop(node, [*here, *ahead, *self._advanced()])
        if not self._counts_at_use(made):
            return made, False
        read = [line for each in counters for line in each.read_next()]
        filled = [line for each in counters for line in each.filled_next()]
        return self._loop(node, [*read, *here, *filled, *ahead]), True

    def _counts_at_use(self, made: cst.For) -> bool:
        """Whether slots are counted where they are used, as by Triton's pipeliner.

        They are where a product runs on into the next iteration: attention backward on an H200 went from 0.966 of
        Triton's speed to 1.01, and attention by block pointers from 0.968 to 1.01, as predicates of its mask no longer
        went through registers. And they are beside the one product of registers of a loop: for sm80 ptxas then takes
        210 registers for 240 (a matmul of any strides) and spills 90 for 144 (scaled 4-bit floats), where Triton's
        kernels have 211 and 132. Of several such products, or with rows that are looked up, it takes more. So they are
        beside the one product by wgmma, if it starts from zeros: of 8-bit floats, scaled in each iteration, ptxas then
        takes 172 registers for 182, as of Triton's, and loads scales in its order. Where such a product adds to a sum,
        it takes 72 for 64 (states of chunks). And they are where those that are filled have a counter of their own.
        """
        plan = self.plan
        if plan.outside or plan.early or plan.barriers:
            return False
        if any(each.twice for each in plan.slots.values()):
            return True
        if self._runs_on(made):
            return True
        calls = [each for each in nodes_in(ast.parse(code(made))) if isinstance(each, ast.Call)]
        if [called(each) for each in calls].count("mma_v2") == 1:
            return plan.lookups is None
        products = [each for each in calls if called(each) == "warpgroup_mma"]
        return plan.lookups is None and len(products) == 1 and _from_zeros(products[0])

    def _loop(self, node: cst.For, body: Lines) -> cst.For:
        block = indented(node.body).with_changes(body=body)
        plan, target = self.plan, cst.Name(self.plan.count.variable)
        end = plan.drain or plan.count.upper
        return node.with_changes(target=target, iter=with_bounds(node.iter, plan.count, end), body=block)

    def _steady(self, loop: ast.For, node: cst.For) -> tuple[Lines, Lines]:
        """The body of the loop while loads run ahead of it, in two parts, of which the latter ends it."""
        plan = self.plan
        body = self._ahead() if plan.turns is None else []
        consumer = Consumer(plan, self.rebuild, self.indent + 4)
        here = consumer.lines(loop, node)
        producer = Producer(plan, "steady", self.indent + 4)
        ahead = [*producer.lines(loop.body, node.body), *producer.coming(loop.body, node.body)]
        if plan.early:
            kept = stores(plan, loop.body, node.body)
            if self._carries_slots:
                kept = [*(line for each in self.plan.slots.values() for line in each.advanced()), *kept]
            if kept:
                ahead[0] = _noted(ahead[0], "tiles of an iteration ahead come to registers")
                kept[0] = _noted(kept[0], "and take the places of those that have been read")
            if plan.direct:
                return [*body, *consumer.wait(), *ahead, *here], kept
            return [*body, *between(plan, ahead, here)], kept
        here, ahead = with_branch_below(here, ahead, plan, self.unwritten)
        return [*body, *here], ahead

    def _drained(self, loop: ast.For, node: cst.For) -> cst.For:
        """The last iterations, which load nothing."""
        count = self.plan.count
        consumer = Consumer(self.plan, self.rebuild, self.indent + 4)
        body = [bare(line) for line in consumer.lines(loop, node)]
        if self.plan.direct:
            body = [*consumer.wait(last=True), *body]
        bounds = [self.plan.drain, count.upper, *([count.step] if count.step != "1" else [])]
        span = cst.parse_expression(f"range({', '.join(bounds)})")
        block = cst.IndentedBlock([*body, *rotated(self.plan), *self._advanced()])
        made = cst.For(cst.Name(count.variable), span, block)
        return made.with_changes(leading_lines=comment("the last iterations, whose tiles have all come"))

    def _unrolled(self, loop: ast.For, node: cst.For) -> cst.BaseStatement:
        """The last iterations one after the other, tiles read whether there is such an iteration or not, as Triton's.

        So there is more to do between their reads and their products. As the compiler chooses for the whole kernel how
        many registers it leaves to a wave, the loop before is better for it, too.
        """
        plan, count, last = self.plan, self.plan.count, self.plan.last
        assert last is not None
        consumer = Consumer(plan, self.rebuild, self.indent + 8)
        tiles = TilesRead({} if last.exists else {plan.tile(ring): last.tiles[ring.name] for ring in plan.rings})
        here = [edited(bare(line), tiles) for line in settled(consumer.lines(loop, node), last.tests)]
        here, befores = without_idle_steps(here, last.befores, last.wanted if last.tests else last.befores)
        if any(count.variable in reads(ast.parse(code(line))) for line in here):
            here = [edited(line, Renamed({count.variable: last.variable})) for line in here]
            here.insert(0, statement(f"{last.variable} = {count.after(plan.drain, last.counter)}"))
        test = count.is_left(plan.drain, last.counter)
        if last.exists:
            above, below = kept_where(last.exists, befores, last.flags)
            asked = asked_for([edited(line, Renamed(last.renamed)) for line in here], last.exists, iter(last.products))
            here = [statement(f"{last.exists} = {test}"), *above, *asked, *below]
        else:
            here = [cst.If(cst.parse_expression(test), cst.IndentedBlock(here))]
        read = [statement(f"{name} = {source}") for name, source in tiles.found.items()]
        block = cst.IndentedBlock([*read, *here, *rotated(plan), *self._advanced()])
        span = cst.parse_expression(f"gl.static_range({plan.spec.ahead.source})")
        made = guarded(cst.For(cst.Name(last.counter), span, block), last.tests)
        return under(made, comment("the last iterations, whose tiles have all come"))

    @property
    def _carries_slots(self) -> bool:
        """Whether the loops carry where the tiles are, and count the slots that are filled."""
        return self.plan.last is not None and bool(self.plan.last.slots)

    def _advanced(self) -> Lines:
        if self._carries_slots:
            return []
        return [line for each in self.plan.slots.values() for line in each.advanced()]

    def rings(self) -> Lines:
        """What makes the rings, and the counters of slots where those go on from turn to turn of a loop around."""
        made = [*self._condition(), *self._rings()]
        if self.plan.outside and self.plan.turns is None:
            made += [line for each in self.plan.slots.values() for line in each.started(None)]
        return made

    def begun(self, loop: ast.For, node: cst.For) -> Lines:
        """What stands before the loop around, where loads run on from turn to turn of it."""
        plan = self.plan
        assert plan.turns is not None
        block = cst.IndentedBlock(Producer(plan, "prologue", self.indent).lines(loop.body, node.body))
        span = cst.parse_expression(f"gl.static_range({plan.spec.ahead.source})")
        prologue = cst.For(cst.Name(plan.stage), span, block)
        return [
            *self._bound(plan.bindings),
            *plan.turns.first(),
            prologue,
            *self._started(at_use=False),
            *plan.turns.started(),
        ]

    def _bound(self, bindings: Sequence[tuple[str, str]]) -> Lines:
        flagged = self.plan.flagged
        lines = [(statement(f"{name} = {source}"), flagged.get(name, ())) for name, source in bindings]
        return joined([guarded(line, tests) for line, tests in lines])

    def ended(self) -> Lines:
        """What ends the life of the rings: copies that ran on to the last turn's end, and their mbarriers."""
        plan = self.plan
        copies = self._landed() if plan.turns is not None and plan.copied else []
        return [*copies, *(line for each in plan.barriers for line in each.gone(plan.each))]

    def _kept(self, loop: ast.For) -> Lines:
        """What keeps the memory of rings from what the last iterations put into memory, as Triton's pipeliner does.

        They are parted, so that a tile is read for good before others are computed, and its memory free. Chunks of
        gated attention on gfx942 took 170 registers for Triton's 146 by that.
        """
        plan = self.plan
        if not plan.drain or not plan.early or not any(map(_takes_memory, nodes_in(loop))):
            return []
        shared = [ring for ring in plan.rings if not ring.held and not plan.conditions.get(ring.name)]
        kept: Lines = [statement(f"{plan.buffers[ring.name]}._keep_alive()") for ring in shared]
        if kept:
            why = "kept to here: what the last iterations put into a ring's memory would wait for all warps once more"
            kept[0] = under(kept[0], comment(why))
        return kept

    def _landed(self) -> Lines:
        """The wait for all copies."""
        return [guarded(statement("async_copy.wait_group(0)"), self.plan.flags)]

    def _condition(self) -> Lines:
        """Refuses steps back, and depths with which nothing runs ahead: a tile would be read before it is there."""
        ahead, count = self.plan.spec.ahead, self.plan.count
        made: Lines = []
        if ahead.known is None:
            made.append(statement(f'gl.static_assert({ahead.base} > {-ahead.offset}, "no load would run ahead")'))
        elif ahead.known < 1:
            raise NotPipelinedError("no load would run ahead")
        if count.sign_open:
            made.append(statement(f'gl.static_assert({count.step} > 0, "the loop is taken to count upwards")'))
        return made

    def _rings(self) -> Lines:
        spec, made = self.plan.spec, []
        shared = [ring for ring in self.plan.rings if not ring.held]
        for ring in shared:
            shape = ", ".join([spec.depth(ring).source, *ring.dims])
            source = f"gl.allocate_shared_memory({ring.dtype}, [{shape}], {ring.layout})"
            if ring.tile:
                source = allocation(self.plan.descriptors[ring.name], spec.depth(ring))
            line = statement(f"{self.plan.buffers[ring.name]} = {source}")
            made.append(guarded(line, self.plan.conditions.get(ring.name, ())))
        made = [*map(layout_of, self.plan.layouts.values()), *joined(made)]
        if made:
            note = rings_note([spec.depth(ring) for ring in shared], spec.ahead)
            made[0] = made[0].with_changes(leading_lines=[cst.EmptyLine(comment=cst.Comment(f"# {note}"))])
        waiting = [statement(f"{self.plan.buffers[ring.name]} = ()") for ring in self.plan.rings if ring.held]
        if waiting:
            run = "one iteration" if spec.ahead.known == 1 else f"{spec.ahead.source} iterations"
            note = f"# tiles that wait in registers; loads run {run} ahead"
            waiting[0] = waiting[0].with_changes(leading_lines=[cst.EmptyLine(comment=cst.Comment(note))])
        looked_up = self.plan.lookups.slots.values() if self.plan.lookups is not None else ()
        found = [line for each in looked_up for line in each.made()]
        if found:
            found[0] = under(found[0], comment("what says where tiles are"))
        return [*made, *waiting, *found, *(line for each in self.plan.barriers for line in each.made(self.plan.each))]

    def _started(self, *, at_use: bool) -> Lines:
        """The counters of slots before the first iteration."""
        plan = self.plan
        if plan.outside and plan.turns is None:
            return []
        if self._carries_slots:
            # The slot that was filled last; the next is counted where it is filled.
            filled = plan.spec.ahead.plus(-1).source
            made: Lines = [statement(f"{each.here} = {filled}") for each in plan.slots.values()]
            made += placed(plan)
        else:
            made = [line for each in plan.slots.values() for line in each.started(plan.spec.ahead, at_use=at_use)]
        if made:
            made[0] = under(made[0], [cst.EmptyLine(indent=False)])
        return made

    def _ahead(self) -> Lines:
        """Whether there are the iterations that the body's end starts loads for.

        At the top of the body, so that the compiler works out addresses before it waits for tiles.
        """
        plan, ahead = self.plan, self.plan.spec.ahead
        made: Lines = [] if plan.drain else [statement(f"{plan.more} = {plan.count.continues(ahead)}")]
        if plan.lookups is not None:
            made.append(statement(f"{plan.lookups.more} = {plan.count.continues(ahead.plus(1))}"))
        return made

    def _constants(self, statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Lines:
        return [
            alone(line, small)
            for line, members, _ in lines_of(statements, block)
            for each, small in members
            if each in self.plan.parts.constants and isinstance(line, cst.SimpleStatementLine)
        ]

    def _prologue(self, loop: ast.For, node: cst.For) -> Lines:
        plan, count, ahead = self.plan, self.plan.count, self.plan.spec.ahead
        lines: Lines = []
        if plan.stage == plan.first:
            span = f"0, {count.at(ahead.factor)}, {count.step}" if count.step != "1" else ahead.source
        else:
            span = ahead.source
            first = count.at(plan.stage)
            if takes_attribute(loop.body, count.variable) and not count.wide:
                first = f"gl.to_tensor({first})"
            lines.append(statement(f"{plan.first} = {first}"))
        producer = Producer(plan, "prologue", self.indent + 4)
        lines += producer.lines(loop.body, node.body)
        resumed: Lines = []
        if plan.outside:
            resumed = [line for each in plan.slots.values() for line in each.resumed()]
            lines += [line for each in plan.slots.values() for line in each.filled()]
        if resumed:
            resumed[0] = under(resumed[0], comment("the rings go on where they were left"))
        block = cst.IndentedBlock(lines)
        stages = cst.For(cst.Name(plan.stage), cst.parse_expression(f"gl.static_range({span})"), block)
        waiting: Lines = [statement(f"{name} = ()") for name in plan.carried.values()]
        if waiting:
            waiting[0] = under(waiting[0], comment("what waits in registers for the iteration that it is of"))
        return [*resumed, *waiting, stages, *producer.coming(loop.body, node.body)]


def _noted(line: cst.BaseStatement, note: str) -> cst.BaseStatement:
    """A statement under a comment of ours, and its own."""
    return under(line, [*comment(note), *leading(line)])


def _takes_memory(node: ast.AST) -> bool:
    """Whether something may pass shared memory of its own: what is put there, converted, reduced, given to a helper."""
    if not isinstance(node, ast.Call) or is_marker(node) or called(node) in _IN_REGISTERS:
        return False
    return isinstance(node.func, ast.Name) or called(node) in _THROUGH_MEMORY


def _from_zeros(product: ast.Call) -> bool:
    """Whether a product by wgmma is added to nothing."""
    sums = [each for each in product.args[2:3] if isinstance(each, ast.Call)]
    return any(called(each) == "zeros" for each in sums)
