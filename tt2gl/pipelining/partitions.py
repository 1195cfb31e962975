"""Rule `partitions`: warps of their own for the copies, the products and the rest of a loop, where Triton has them so.

for tile in range(first, tiles, programs, warp_specialize=True):                   # before
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, acc_layout)
    for k in range(steps):
        a = _tt2gl_ring_a(a_desc, [row, k * BLOCK_K])
        b = _tt2gl_ring_b(b_desc, [k * BLOCK_K, column])
        acc = _tt2gl_tcgen05(a, b, acc, [BLOCK_M, BLOCK_N], gl.float32, acc_tmem_layout, acc_layout)
    store_tile(c_desc, [row, column], acc)

gl.warp_specialize(                                                                # after
    [
        (matmul_epilogue_partition, (c_desc, acc_tmem, acc_bars, free_acc_bars, ...)),
        (matmul_mma_partition, (a_buf, b_buf, bars, free_bars, acc_tmem, acc_bars, free_acc_bars, ...)),
        (matmul_load_partition, (a_desc, b_desc, a_buf, b_buf, bars, free_bars, ...)),
    ],
    [1, 1],
    [24, 24],
)

Each partition is a function that goes through the loop by itself. A slot of a ring, and each of the two accumulators,
has two mbarriers: one says that it is there, one that it is free. A fresh mbarrier counts as having completed phase 1.
A loop that is not of this kind stays one for all warps.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.apart import Apart, apart_of
from tt2gl.pipelining.chained import chain_of
from tt2gl.pipelining.chains import ChainWriter
from tt2gl.pipelining.counting import without_option
from tt2gl.pipelining.naming import Fresh, fresh_names
from tt2gl.pipelining.parts import (
    WORKER_REGISTERS,
    SlotBarriers,
    arguments_of,
    call_of,
    names_before,
    next_slot,
    partition,
)
from tt2gl.pipelining.rings import LoopRings
from tt2gl.pipelining.slots import Slots
from tt2gl.pipelining.static import constants
from tt2gl.pipelining.texts import call
from tt2gl.pipelining.tma import Barriers, allocation
from tt2gl.pipelining.trees import (
    Replaced,
    bare,
    code,
    comment,
    comments,
    edited,
    indented,
    leading,
    lines_of,
    parsed,
    statement,
    under,
)
from tt2gl.pipelining.walking import Lines
from tt2gl.syntax import is_name
from tt2gl.visitors import Editor
from tt2gl.words import PARTITIONED, RING_MARK, STORES_DONE, TMA_LOAD


def partitioned(text: str, specs: Sequence[LoopRings]) -> tuple[str, frozenset[LoopRings]]:
    """The text with loops that ask for it taken apart, and of which functions; no loop asks any more."""
    tree, module = ast.parse(text), cst.parse_module(text)
    wanted = {(spec.function, spec.line): spec for spec in specs}
    helpers = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    made: Lines = []
    parted = set[LoopRings]()
    for line, _, first in lines_of(tree.body, cst.IndentedBlock(module.body)):
        if isinstance(first, ast.FunctionDef) and isinstance(line, cst.FunctionDef):
            spec = wanted.get((first.name, first.lineno))
            written = _taken_apart(first, line, spec, helpers, fresh_names(tree, first)) if spec is not None else None
            if spec is not None and written is not None:
                made += written
                parted.add(spec)
                continue
        made.append(line)
    return edited(module.with_changes(body=made), _Unasked()).code, frozenset(parted)


def _taken_apart(
    function: ast.FunctionDef,
    line: cst.FunctionDef,
    spec: LoopRings,
    helpers: Mapping[str, ast.FunctionDef],
    fresh: Fresh,
) -> Lines | None:
    """A function whose loop is taken apart, after its partitions; None where it cannot be."""
    if (apart := apart_of(function, line, spec, helpers)) is not None:
        return _Writer(apart, spec, function, fresh).lines(line)
    chain = chain_of(function, line, spec, helpers)
    return ChainWriter(chain, spec, function, fresh).lines(line) if chain is not None else None


class _Unasked(Editor):
    """Takes the hint from every loop through Python's range that still has it; one of Triton's keeps its own."""

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        """A loop without the hint."""
        made = updated_node.iter
        return (
            without_hint(updated_node) if isinstance(made, cst.Call) and is_name(made.func, "range") else updated_node
        )


def without_hint(loop: cst.For) -> cst.For:
    """The loop without the option that asks for warps of their own."""
    return loop.with_changes(iter=without_option(loop.iter, PARTITIONED)) if isinstance(loop.iter, cst.Call) else loop


@dataclass
class _Writer:
    """Writes a function whose loop is taken apart, and its partitions before it."""

    apart: Apart
    spec: LoopRings
    function: ast.FunctionDef
    fresh: Fresh

    def __post_init__(self) -> None:
        apart, fresh = self.apart, self.fresh
        self.depth = self.spec.depth(apart.tiles[0].ring)
        self.buffers = {load.ring.name: fresh(f"{load.ring.name}_buf") for load in apart.tiles}
        here = "0" if self.depth.known == 1 else fresh("slot")
        self.slots = Slots(self.depth, here, here, fresh("phase"))
        name = apart.product.name
        self.memory, self.sums = fresh(f"{name}_tmem"), fresh(f"NUM_{name.upper()}S")
        self.tile_bars, self.free_bars = fresh("bars"), fresh("free_bars")
        self.sum_bars, self.free_sums = fresh(f"{name}_bars"), fresh(f"free_{name}_bars")
        self.sum_slot, self.sum_phase = fresh(f"{name}_slot"), fresh(f"{name}_phase")
        self.each = fresh("each")
        # Who started the stores waits for them.
        after = self.function.body[self.function.body.index(apart.loop) + 1 :][:1] if apart.outer is not None else []
        self.stored = after[0] if after and ast.unparse(after[0]) == STORES_DONE else None

    def lines(self, node: cst.FunctionDef) -> Lines:
        """The partitions, then the function."""
        parts = [
            ("epilogue", "Other warps do what is left of the loop, as sums are done.", self._rest()),
            ("mma", "One warp has tiles multiplied as they come, and says which it is done with.", self._products()),
            ("load", "One warp has tiles loaded as slots become free.", self._loads()),
        ]
        names = [self.fresh(f"{self.function.name}_{kind}_partition") for kind, _, _ in parts]
        made: Lines = []
        given: list[Sequence[str]] = []
        for name, (_, says, lines) in zip(names, parts, strict=True):
            arguments = self._arguments(lines)
            given.append(arguments)
            made.append(partition(name, says, arguments, constants(self.function) | {self.sums}, lines))
        body = indented(node.body)
        block: Lines = []
        for line, _, first in lines_of(self.function.body, body):
            if first is not self.stored:
                block += self._called(line, names, given) if first is self.apart.loop else [line]
        return [*made, node.with_changes(body=body.with_changes(body=block))]

    # -------------------------------------------------------------------------------------------------- the partitions

    def _loads(self) -> Lines:
        apart = self.apart
        size = " + ".join(f"{load.descriptor}.block_type.nbytes" for load in apart.tiles)
        here, indent = self.slots.here, 8 if apart.outer is None else 12
        bar = f"{self.tile_bars}.index({here})"
        inner: Lines = []
        for line, members, _ in lines_of(apart.inner.body, apart.inner_node.body):
            for each, _ in members:
                for load in apart.loads.get(each, ()):
                    if load is apart.tiles[0]:
                        inner.append(statement(f"mbarrier.wait({self.free_bars}.index({here}), {self.slots.phase})"))
                        inner.append(parsed(call("mbarrier.expect", [bar, size], indent)))
                    copy = [load.descriptor, load.offsets, bar, f"{self.buffers[load.ring.name]}.index({here})"]
                    notes = [] if each is apart.product.statement else comments(leading(line))
                    inner.append(under(parsed(call(TMA_LOAD, copy, indent)), notes))
                if each in apart.load_slice:
                    inner.append(line)
        loop = self._inner([*inner, *self.slots.advanced()])
        started = [*self.slots.started(None)[:-1], statement(f"{self.slots.phase} = 1", "at first all slots are free")]
        return [*started, *self._around(apart.load_slice, [loop])]

    def _products(self) -> Lines:
        apart, product = self.apart, self.apart.product
        here = self.slots.here
        inner: Lines = [*Barriers(self.tile_bars, self.depth, {}).wait(self.slots)]
        in_slots = Replaced(RING_MARK, {name: f"{buffer}.index({here})" for name, buffer in self.buffers.items()})
        for line, members, _ in lines_of(apart.inner.body, apart.inner_node.body):
            for each, small in members:
                if each is product.statement:
                    a, b = (code(edited(_expression(side), in_slots)) for side in (product.a, product.b))
                    target = product.name if apart.outer is not None else self.memory
                    said = f"tcgen05_mma({a}, {b}, {target}, use_acc={apart.variable} > {apart.first})"
                    inner.append(under(statement(said), comments(leading(line))))
                    inner.append(statement(f"tcgen05_commit({self.free_bars}.index({here}))"))
                elif each in apart.loads:
                    inner.append(cst.SimpleStatementLine([edited(small, in_slots)]))
        loop = self._inner([*inner, *self.slots.advanced()]).with_changes(target=cst.Name(apart.variable))
        if apart.outer is None:
            return [*self.slots.started(None), loop, statement(f"tcgen05_commit({self.sum_bars})")]
        ready = statement(f"mbarrier.wait({self.free_sums}.index({self.sum_slot}), {self.sum_phase})")
        taken = statement(f"{product.name} = {self.memory}.index({self.sum_slot})")
        done = statement(f"tcgen05_commit({self.sum_bars}.index({self.sum_slot}))")
        turn = [ready, taken, loop, done, *next_slot(self.sum_slot, self.sum_phase, self.sums)]
        return [*self.slots.started(None), *self._first_sum(1), *self._around(apart.product_slice, turn)]

    def _rest(self) -> Lines:
        """The author's loop without the products; of a single loop nothing but the wait for its sum."""
        apart = self.apart
        if apart.outer is None:
            return [statement(f"mbarrier.wait({self.sum_bars}, 0)")]
        assert apart.outer_node is not None
        body: Lines = []
        for line, _, first in lines_of(apart.outer.body, apart.outer_node.body):
            if first is not apart.inner:
                body.append(line)
                continue
            wait = statement(f"mbarrier.wait({self.sum_bars}.index({self.sum_slot}), {self.sum_phase})")
            free = statement(f"mbarrier.arrive({self.free_sums}.index({self.sum_slot}), count=1)")
            taken = self._taken(f"{self.memory}.index({self.sum_slot})")
            body += [under(wait, leading(line)), taken, free, *next_slot(self.sum_slot, self.sum_phase, self.sums)]
        loop = without_hint(apart.outer_node)
        block = indented(loop.body).with_changes(body=body)
        ended = [statement(STORES_DONE)] if self.stored is not None else []
        return [*self._first_sum(0), loop.with_changes(body=block, leading_lines=[]), *ended]

    def _taken(self, memory: str) -> cst.BaseStatement:
        """The sum comes to registers, if there was anything to add."""
        apart = self.apart
        product = apart.product
        return parsed(f"if {apart.runs}:\n    {product.name} = {memory}.load({product.registers})\n")

    def _inner(self, lines: Lines) -> cst.BaseStatement:
        node = without_hint(self.apart.inner_node)
        return node.with_changes(body=cst.IndentedBlock(lines), leading_lines=[])

    def _around(self, taken: frozenset[ast.stmt], lines: Lines) -> Lines:
        """Lines in the place of the inner loop, with what they need of the author's loop around it."""
        apart = self.apart
        if apart.outer is None:
            return lines
        assert apart.outer_node is not None
        body: Lines = []
        for line, members, first in lines_of(apart.outer.body, apart.outer_node.body):
            if first is apart.inner:
                body += lines
            elif first in taken or any(each in taken for each, _ in members):
                body.append(bare(line))
        loop = without_hint(apart.outer_node)
        return [loop.with_changes(body=cst.IndentedBlock(body), leading_lines=[])]

    def _first_sum(self, phase: int) -> Lines:
        return [statement(f"{self.sum_slot} = 0"), statement(f"{self.sum_phase} = {phase}")]

    # ------------------------------------------------------------------------------------------------------ the caller

    def _called(self, line: cst.BaseStatement, names: Sequence[str], given: Sequence[Sequence[str]]) -> Lines:
        """What stands in the place of the loop: rings, mbarriers, and the call of the partitions."""
        apart = self.apart
        dims, dtype, layout = apart.product.tile
        note = f"rings of {self.depth.source} tiles: one warp has them filled, another has them multiplied"
        made: Lines = [
            statement(f"{self.buffers[load.ring.name]} = {allocation(load.descriptor, self.depth)}")
            for load in apart.tiles
        ]
        made[0] = under(made[0], [*leading(line), *comment(note)])
        tiles = SlotBarriers(self.tile_bars, self.free_bars, self.depth.source, self.each)
        sums = SlotBarriers(self.sum_bars, self.free_sums, self.sums, self.each)
        made += tiles.made()
        if apart.outer is None:
            made.append(statement(f"{self.memory} = allocate_tensor_memory({dtype}, {dims}, {layout})"))
            made += [
                statement(f"{self.sum_bars} = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())"),
                statement(f"mbarrier.init({self.sum_bars}, count=1)"),
            ]
        else:
            rows, columns = dims.removeprefix("[").removesuffix("]").split(", ")
            room = f"{self.sums}: gl.constexpr = 2 if {rows} * {columns} <= 128 * 256 else 1"
            made.append(statement(room, "where there is room a second sum is added up while the first is stored"))
            all_dims = f"[{self.sums}, {rows}, {columns}]"
            made.append(statement(f"{self.memory} = allocate_tensor_memory({dtype}, {all_dims}, {layout})"))
            made += sums.made()
        made.append(parsed(call_of(names, given, ["1", "1"], [WORKER_REGISTERS, WORKER_REGISTERS])))
        made.append(tiles.gone())
        if apart.outer is not None:
            return [*made, sums.gone()]
        return [*made, statement(f"mbarrier.invalidate({self.sum_bars})"), self._taken(self.memory)]

    # ------------------------------------------------------------------------------------------------------- functions

    def _arguments(self, lines: Lines) -> list[str]:
        """What a partition takes: what it reads that the function has before the loop, in that order."""
        rings = [*self.buffers.values(), self.tile_bars, self.free_bars]
        sums = [self.memory, self.sum_bars, self.free_sums, self.sums]
        known = [*names_before(self.function, self.apart.loop), *rings, *sums]
        return arguments_of(lines, known, constants(self.function) | {self.sums})


def _expression(node: ast.expr) -> cst.BaseExpression:
    """The same expression as LibCST has it."""
    return cst.parse_expression(ast.unparse(node))
