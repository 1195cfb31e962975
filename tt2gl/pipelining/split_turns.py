"""Loops each turn of which does the second half of an iteration, and the first of the one after it.

    for i in range(0, drain):
        product = mfma(q, k, zeros)                     # of iteration i + 1
        l_i = l_i * alpha + gl.sum(p, axis=1)           # of iteration i
        k_buf.index(0).store(k_next)                    # of iteration i + 2
        v = v_buf.index(0).load(v_layout)
        k_next = gl.load(k_ptr + (i + 3) * BLOCK_K)
        acc = mfma(p, v, acc)
        p = gl.exp2(product - m_new)
        v_buf.index(0).store(v_next)
        k = k_buf.index(0).load(k_layout)
        v_next = gl.load(v_ptr + (i + 2) * BLOCK_K)

So has Triton those of two products in a row with four stages on AMD: a product's tile is read from LDS while another
product is under way, and comes from global memory two halves before that. An iteration is parted in `halves`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.branches import parted
from tt2gl.pipelining.flow import NONE, Names, reads, writes
from tt2gl.pipelining.guards import Guarded
from tt2gl.pipelining.halves import Halves, Tile, halves
from tt2gl.pipelining.last import asked_for, kept_where
from tt2gl.pipelining.loop_plan import LoopPlan, Split
from tt2gl.pipelining.producer import with_variable
from tt2gl.pipelining.registers import is_decided
from tt2gl.pipelining.rings import Amount
from tt2gl.pipelining.texts import operand
from tt2gl.pipelining.trees import Renamed, bare, code, comment, edited, statement, under
from tt2gl.pipelining.walking import Lines

_TURNS = 3
"""Iterations that are under way at once: as many are done after the loop."""


@dataclass(frozen=True)
class SplitTurns:
    """A loop that is to be written so. `loads`: what brings a ring's tile to registers, `stores`: what stores it."""

    plan: LoopPlan
    names: Split
    halves: Halves
    loads: Mapping[str, _Load]
    stores: Mapping[str, cst.BaseStatement]

    @property
    def bindings(self) -> tuple[tuple[str, str], ...]:
        """What is bound before the loop: where the last iterations begin, of which there are more than the plan's."""
        plan = self.plan
        last = plan.count.last(Amount("", _TURNS))
        return tuple((name, last if name == plan.drain else source) for name, source in plan.bindings)

    def first(self) -> Lines:
        """The first half of the first iteration, and the loads of those after it."""
        count, (k, v) = self.plan.count, self.halves.tiles
        beside = [*self._loaded(k, "1", guarded=True), self._read(k), *self._loaded(v, "0", guarded=True)]
        begun = [*self._loaded(k, "0", guarded=True), self.stores[k.ring], *beside]
        begun[0] = under(begun[0], comment("the first half of an iteration stands beside the second of the one before"))
        exists = statement(f"{self.names.last.exists} = {count.exists(operand(count.lower))}")
        first, between = self._front(self.names.last.exists)
        stored = [self.stores[k.ring], *self._loaded(k, "2", guarded=True)]
        rest = [*between, self.stores[v.ring], self._read(k), *self._loaded(v, "1", guarded=True)]
        here = with_variable(self.names.after, f"gl.to_tensor({count.lower})", [*first, *stored, *rest])
        return [*begun, exists, *here]

    def turn(self) -> Lines:
        """The body of the loop."""
        plan, parts, (k, v) = self.plan, self.halves, self.halves.tiles
        first, between = (self._of_next(part) for part in (parts.first, parts.between))
        made = [*first, *parts.second, self.stores[k.ring], self._read(v), *self._loaded(k, "3")]
        made += [*parts.last, *between, self.stores[v.ring], self._read(k), *self._loaded(v, "2")]
        return with_variable(self.names.after, plan.count.further(Amount("", 1)), made)

    def end(self) -> cst.For:
        """The last iterations, whose loads are few: there need not be all of them."""
        plan, last, parts, (k, v) = self.plan, self.names.last, self.halves, self.halves.tiles
        count, s = plan.count, last.counter
        exists, follows = last.exists, self.names.follows
        tests = [statement(f"{exists} = {count.is_left(plan.drain, s)}")]
        tests.append(statement(f"{follows} = {count.is_left(plan.drain, f'({s} + 1)')}"))
        first, between = self._front(follows)
        second = [bare(each) for each in (*parts.second, *parts.last)]
        if any(count.variable in reads(ast.parse(code(each))) for each in second):
            tests.append(statement(f"{last.variable} = {count.after(plan.drain, s)}"))
        above, below = self._kept(second, exists)
        renamed = Renamed({count.variable: last.variable})
        half, other = ([edited(bare(each), renamed) for each in part] for part in (parts.second, parts.last))
        names = iter(last.products[1:])
        half, other = asked_for(half, exists, names), asked_for(other, exists, names)
        stored = _under(f"{s} < 1", [self.stores[k.ring]])
        ahead = [self._read(k), *self._loaded(v, "2", guarded=True, start=plan.drain)]
        rest = _under(f"{s} < 2", [*between, self.stores[v.ring], _under(f"{s} < 1", ahead)])
        lines = [_under(f"{s} < 2", first), *above, *half, stored, self._read(v), *other, *below, rest]
        body = [*tests, *with_variable(self.names.after, count.after(plan.drain, f"({s} + 1)"), lines)]
        span = cst.parse_expression(f"gl.static_range({_TURNS})")
        made = cst.For(cst.Name(s), span, cst.IndentedBlock(body))
        return made.with_changes(leading_lines=comment("the last iterations, whose tiles have all come"))

    def _front(self, exists: str) -> tuple[Lines, Lines]:
        """The first half of an iteration that there may not be."""
        parts = [[bare(line) for line in part] for part in (self.halves.first, self.halves.between)]
        names = iter(self.names.last.products[:1])
        first, between = (asked_for(self._of_next(part), exists, names) for part in parts)
        above, below = self._kept([*parts[0], *parts[1]], exists)
        return first, [*above, *between, *below]

    def _kept(self, lines: Lines, exists: str) -> tuple[Lines, Lines]:
        bound = NONE.union(*(writes(ast.parse(code(line))) for line in lines))
        befores = {name: before for name, before in self.names.last.befores.items() if name in bound}
        return kept_where(exists, befores, self.names.last.flags)

    def _of_next(self, lines: Lines) -> Lines:
        """Lines as the iteration after does them."""
        return [edited(line, Renamed({self.plan.count.variable: self.names.after})) for line in lines]

    def _read(self, tile: Tile) -> cst.BaseStatement:
        return statement(f"{tile.name} = {tile.source}")

    def _loaded(self, tile: Tile, number: str, *, guarded: bool = False, start: str = "") -> Lines:
        """The load of the tile of an iteration: so many after this one, or of all; `guarded`: there may be none."""
        plan, count = self.plan, self.plan.count
        if not guarded:
            at = count.further(Amount("", int(number)))
        elif start:
            at = count.after(start, number)
        else:
            at = count.lower if number == "0" else count.at(number)
        condition = count.exists(plan.ahead) if guarded else ""
        load = self.loads[tile.ring]
        lines = [*([] if number == "0" else load.steps), *load.lines]
        made = [edited(bare(line) if guarded else line, Guarded(condition, {})) for line in lines]
        return with_variable(plan.ahead, at, made)


def _under(test: str, lines: Sequence[cst.BaseStatement]) -> cst.If:
    return cst.If(cst.parse_expression(test), cst.IndentedBlock(list(lines)))


def split(plan: LoopPlan, here: Lines, ahead: Lines, kept: Lines) -> SplitTurns | None:
    """How a loop is written so; None where it cannot be.

    `here`, `ahead` and `kept`: its body with its loads an iteration ahead, what it computes, loads and stores to LDS.
    """
    asked = plan.split
    if asked is None or plan.outside or plan.lookups is not None or plan.carried or any(plan.conditions.values()):
        return None
    tiles = {ring.name: plan.tile(ring) for ring in plan.rings}
    parts = halves(here, tiles, plan.buffers, asked.tiles)
    if parts is None or any(asked.last.befores.keys() & writes(ast.parse(code(line))) for line in parts.first):
        return None
    ahead = [part for line in ahead for part in (parted(line) if is_decided(line, plan) else [line])]
    changed = NONE.union({plan.count.variable}, *(writes(ast.parse(code(line))) for line in (*here, *ahead)))
    loads = {ring.name: _load(plan.coming[ring.name], ahead, plan, changed) for ring in plan.rings}
    stores = {ring.name: [line for line in kept if f"({plan.coming[ring.name]}" in code(line)] for ring in plan.rings}
    known = {name: load for name, load in loads.items() if load is not None}
    if len(known) < len(loads) or any(len(each) != 1 for each in stores.values()):
        return None
    one, other = known.values()
    if one.stepped & other.names or other.stepped & one.names:
        return None
    return SplitTurns(plan, asked, parts, known, {name: bare(line) for name, (line,) in stores.items()})


@dataclass(frozen=True)
class _Load:
    """What brings a tile to registers; before that of every iteration but the first, what `steps` to it is added."""

    steps: Lines
    lines: Lines

    @property
    def stepped(self) -> Names:
        """The names that are stepped."""
        return NONE.union(*(writes(ast.parse(code(line))) for line in self.steps))

    @property
    def names(self) -> Names:
        """The names that it binds or reads."""
        trees = [ast.parse(code(line)) for line in (*self.steps, *self.lines)]
        return NONE.union(*map(reads, trees), *map(writes, trees))


def _load(name: str, lines: Lines, plan: LoopPlan, changed: Names) -> _Load | None:
    """What brings a tile, without the line that says which iteration's.

    None where it steps from tile to tile by what is not the same on every turn, of all that is `changed` there.
    """
    wanted, steps, made = {name}, list[cst.BaseStatement](), list[cst.BaseStatement]()
    for line in reversed(lines):
        tree = ast.parse(code(line))
        bound = writes(tree)
        if not bound & wanted or bound == {plan.ahead}:
            continue
        match tree.body:
            case [ast.AugAssign(op=ast.Add(), value=value)] if not reads(value) & changed:
                steps.insert(0, line)
                continue
        if isinstance(tree.body[0], ast.If) and not is_decided(line, plan):
            return None
        wanted |= reads(tree)
        made.insert(0, line)
    load, known = _Load(steps, made), {plan.ahead}
    for tree in (ast.parse(code(line)) for line in made):
        if (reads(tree) & changed - load.stepped - known) or writes(tree) & load.stepped:
            return None
        known |= writes(tree)
    return load
