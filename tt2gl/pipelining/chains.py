"""Rule `chains`: warps of their own for the copies, the products, the scaling and the rest of attention's loop.

for n in range(0, end, BLOCK_N, warp_specialize=True):                                             # before
    k = _tt2gl_ring_k(k_desc, [n, 0]).permute((1, 0))
    s = _tt2gl_tcgen05(q, k, None, [BLOCK_M, BLOCK_N], gl.float32, s_tmem_layout, s_layout)
    ...
    acc = acc * alpha[:, None]
    v = _tt2gl_ring_v(v_desc, [n, 0])
    acc = _tt2gl_tcgen05(p, v, acc, [BLOCK_M, HEAD_DIM], gl.float32, acc_tmem_layout, acc_layout, ...)

m_i, l_i, phase = gl.warp_specialize(                                                              # after
    [
        (attention_rest_partition, (m_i, l_i, s_tmem, s_bars, free_s_bars, p_tmem, p_bar, free_p_bar, ...)),
        (attention_scaling_partition, (acc_tmem, acc_bar, free_acc_bar, alpha_smem, alpha_bar, ...)),
        (attention_mma_partition, (q, k_buf, v_buf, s_tmem, p_tmem, acc_tmem, ...)),
        (attention_load_partition, (k_desc, v_desc, k_buf, v_buf, ...)),
    ],
    [gl.num_warps(), 1, 1],
    [SCALING_REGISTERS, 24, 24],
)

Scores are multiplied an iteration ahead, into one of two tiles. What is handed on, scores, weights, sum and factor, has
two mbarriers: one says that it is there, one that it is free. A fresh mbarrier counts as having completed phase 1.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.accumulators import Product
from tt2gl.pipelining.chained import Chain
from tt2gl.pipelining.counting import without_option
from tt2gl.pipelining.naming import Fresh
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
from tt2gl.pipelining.texts import call, operand
from tt2gl.pipelining.tma import allocation
from tt2gl.pipelining.trees import (
    Renamed,
    Replaced,
    alone,
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
from tt2gl.words import PARTITIONED, RING_MARK, TMA_LOAD


@dataclass
class ChainWriter:
    """Writes a function whose loop is taken apart, and its partitions before it."""

    chain: Chain
    spec: LoopRings
    function: ast.FunctionDef
    fresh: Fresh

    def __post_init__(self) -> None:
        chain, fresh = self.chain, self.fresh
        self.tiles = [load for loads in chain.loads.values() for load in loads]
        self.depth = self.spec.depth(self.tiles[0].ring)
        self.buffers = {load.ring.name: fresh(f"{load.ring.name}_buf") for load in self.tiles}
        self.bars = {name: fresh(f"{name}_bars") for name in self.buffers}
        self.free_bars = {name: fresh(f"free_{name}_bars") for name in self.buffers}
        scores, total = chain.first.name, chain.second.name
        self.scores, self.score_count = fresh(f"{scores}_tmem"), fresh(f"NUM_{scores.upper()}S")
        self.score_bars, self.free_scores = fresh(f"{scores}_bars"), fresh(f"free_{scores}_bars")
        self.score_slot, self.score_phase = fresh(f"{scores}_slot"), fresh(f"{scores}_phase")
        self.sum, self.weights = fresh(f"{total}_tmem"), fresh(f"{total}_lhs_tmem")
        self.factor = fresh(f"{chain.factor}_smem")
        handed = {self.weights: f"{total}_lhs", self.sum: total, self.factor: chain.factor}
        self.there = {each: fresh(f"{name}_bar") for each, name in handed.items()}
        self.free = {each: fresh(f"free_{name}_bar") for each, name in handed.items()}
        self.phase, self.each = fresh("phase"), fresh("each")
        self.registers = fresh("SCALING_REGISTERS")
        variable = chain.header.variable
        self.variable = fresh("step") if variable == "_" else variable

    def lines(self, node: cst.FunctionDef) -> Lines:
        """The partitions, then the function."""
        parts = [
            ("rest", "Other warps do what is left of the loop, between the products.", self._rest()),
            ("scaling", "Warps of their own scale the sum, as it is done.", self._scaling()),
            ("mma", "One warp has tiles multiplied as they come: the first product an iteration ahead.", self._mma()),
            ("load", "One warp has tiles loaded as slots become free.", self._loads()),
        ]
        names = [self.fresh(f"{self.function.name}_{kind}_partition") for kind, _, _ in parts]
        made: Lines = []
        given: list[Sequence[str]] = []
        fixed = constants(self.function) | {self.score_count}
        for name, (_, says, lines) in zip(names, parts, strict=True):
            given.append(arguments_of(lines, self._known(), fixed))
            made.append(partition(name, says, given[-1], fixed, lines))
        body = indented(node.body)
        block: Lines = []
        for line, _, first in lines_of(self.function.body, body):
            block += self._called(line, names, given) if first is self.chain.loop else [line]
        return [*made, node.with_changes(body=body.with_changes(body=block))]

    def _known(self) -> list[str]:
        handed = [name for each in self.there for name in (each, self.there[each], self.free[each])]
        rings = [name for ring in self.buffers for name in (self.buffers[ring], self.bars[ring], self.free_bars[ring])]
        scores = [self.scores, self.score_bars, self.free_scores, self.score_count]
        return [*names_before(self.function, self.chain.loop), *rings, *scores, *handed]

    # -------------------------------------------------------------------------------------------------- the partitions

    def _rest(self) -> Lines:
        """The author's loop without copies and products."""
        chain = self.chain
        gone = {*chain.loads, *chain.scaling, *chain.dropped}
        body: Lines = []
        for line, members, first in lines_of(chain.loop.body, chain.node.body):
            if not members and first not in gone:
                body.append(edited(line, self._typed()))
                body += self._handed(first)
            for each, small in members:
                if each in gone:
                    continue
                above = leading(line) if each is members[0][0] else []
                if each is chain.first.statement:
                    body += self._scores_taken(above)
                elif each is chain.second.statement:
                    body += self._weights_given(above)
                else:
                    assert isinstance(line, cst.SimpleStatementLine)
                    own = line if len(members) == 1 else alone(line, small)
                    body.append(under(edited(own, self._typed()), above))
                body += self._handed(each)
        body.append(statement(f"{self.phase} ^= 1"))
        started = [
            statement(f"{self.score_slot} = 0"),
            statement(f"{self.score_phase} = 0"),
            statement(f"{self.phase} = 1", "at first all is free"),
        ]
        return [*started, self._loop(body), statement(f"return {', '.join((*chain.given, self.phase))}")]

    def _handed(self, each: ast.stmt) -> Lines:
        """The factor is handed on where it is made."""
        chain = self.chain
        return self._given(self.factor, f"{chain.factor}.to(gl.float32)") if each is chain.made_by else []

    def _scores_taken(self, above: Sequence[cst.EmptyLine]) -> Lines:
        first, slot = self.chain.first, self.score_slot
        wait = statement(f"mbarrier.wait({self.score_bars}.index({slot}), {self.score_phase})")
        return [
            under(wait, above),
            statement(f"{first.name} = {self.scores}.index({slot}).load({first.registers})"),
            statement(f"mbarrier.arrive({self.free_scores}.index({slot}), count=1)"),
            *next_slot(self.score_slot, self.score_phase, self.score_count),
        ]

    def _weights_given(self, above: Sequence[cst.EmptyLine]) -> Lines:
        value = cst.parse_expression(ast.unparse(self.chain.second.a))
        made = self._given(self.weights, code(edited(value, self._typed())))
        return [under(made[0], above), *made[1:]]

    def _given(self, what: str, value: str) -> Lines:
        return [
            statement(f"mbarrier.wait({self.free[what]}, {self.phase})"),
            statement(f"{what}.store({value})"),
            statement(f"mbarrier.arrive({self.there[what]}, count=1)"),
        ]

    def _typed(self) -> Renamed:
        """Has what asks tiles for their type ask their rings."""
        return Renamed({_target(each): self.buffers[load.ring.name] for each, (load, *_) in self.chain.loads.items()})

    def _scaling(self) -> Lines:
        """What is done to the sum before the next product is added to it."""
        chain, second = self.chain, self.chain.second
        body: Lines = [
            statement(f"mbarrier.wait({self.there[self.factor]}, {self.phase})"),
            statement(f"{chain.factor} = {self.factor}.load(gl.SliceLayout(1, {second.registers}))"),
            statement(f"mbarrier.arrive({self.free[self.factor]}, count=1)"),
            statement(f"mbarrier.wait({self.there[self.sum]}, {self.phase} ^ 1)"),
            statement(f"{second.name} = {self.sum}.load({second.registers})"),
        ]
        for line, members, first in lines_of(chain.loop.body, chain.node.body):
            if first in chain.scaling or any(each in chain.scaling for each, _ in members):
                body.append(under(line, comments(leading(line))))
        body += [
            statement(f"{self.sum}.store({second.name})"),
            statement(f"mbarrier.arrive({self.free[self.sum]}, count=1)"),
            statement(f"{self.phase} ^= 1"),
        ]
        return [statement(f"{self.phase} = 0"), self._loop(body)]

    def _mma(self) -> Lines:
        chain, header = self.chain, self.chain.header
        one, two = self.buffers
        ahead, here = self._slots(f"{one}_slot", f"{one}_phase"), self._slots(f"{two}_slot", f"{two}_phase")
        lower, upper, step = (ast.unparse(each) for each in (header.lower, header.upper, header.step))
        scores = [
            *self._multiplied(chain.first, one, ahead),
            *next_slot(self.score_slot, self.score_phase, self.score_count),
            *ahead.advanced(),
        ]
        more = f"{self.variable} + {operand(step)} < {operand(upper)}"
        body: Lines = [cst.If(cst.parse_expression(more), cst.IndentedBlock(scores))]
        body += self._multiplied(chain.second, two, here)
        body += [*here.advanced(), statement(f"{self.phase} ^= 1")]
        return [
            *ahead.started(None),
            *here.started(None),
            statement(f"{self.score_slot} = 0"),
            statement(f"{self.score_phase} = 1", "at first all is free"),
            statement(f"{self.phase} = 0"),
            cst.If(cst.parse_expression(f"{operand(lower)} < {operand(upper)}"), cst.IndentedBlock(scores)),
            self._loop(body),
        ]

    def _slots(self, slot: str, phase: str) -> Slots:
        here = "0" if self.depth.known == 1 else self.fresh(slot)
        return Slots(self.depth, here, here, self.fresh(phase))

    def _multiplied(self, product: Product, ring: str, slots: Slots) -> Lines:
        """Wait for what a product takes, start it, and have it say what it is done with."""
        buffer = f"{self.buffers[ring]}.index({slots.here})"
        made: Lines = [statement(f"mbarrier.wait({self.bars[ring]}.index({slots.here}), {slots.phase})")]
        (bound,) = [each for each, (load, *_) in self.chain.loads.items() if load.ring.name == ring]
        assert isinstance(bound, ast.Assign)
        tile = edited(cst.parse_expression(ast.unparse(bound.value)), Replaced(RING_MARK, {ring: buffer}))
        made.append(statement(f"{_target(bound)} = {code(tile)}"))
        b = ast.unparse(product.b)
        done = [f"{self.free_bars[ring]}.index({slots.here})"]
        if product is self.chain.first:
            slot = self.score_slot
            made.append(statement(f"mbarrier.wait({self.free_scores}.index({slot}), {self.score_phase})"))
            target, a, flag = f"{self.scores}.index({slot})", ast.unparse(product.a), ", use_acc=False"
            done.append(f"{self.score_bars}.index({slot})")
        else:
            for each in (self.free[self.sum], self.there[self.weights]):
                made.append(statement(f"mbarrier.wait({each}, {self.phase})"))
            target, a, flag = self.sum, self.weights, ""
            done += [self.free[self.weights], self.there[self.sum]]
        made.append(statement(f"tcgen05_mma({a}, {b}, {target}{flag})"))
        return [*made, *(statement(f"tcgen05_commit({each})") for each in done)]

    def _loads(self) -> Lines:
        chain = self.chain
        slots = self._slots("slot", "slot_phase")
        here, phase = slots.here, slots.phase
        body: Lines = []
        for line, members, first in lines_of(chain.loop.body, chain.node.body):
            if first in chain.load_slice or any(each in chain.load_slice for each, _ in members):
                body.append(bare(line))
            for each, _ in members:
                for load in chain.loads.get(each, ()):
                    name = load.ring.name
                    bar = f"{self.bars[name]}.index({here})"
                    body.append(statement(f"mbarrier.wait({self.free_bars[name]}.index({here}), {phase})"))
                    body.append(statement(f"mbarrier.expect({bar}, {load.descriptor}.block_type.nbytes)"))
                    copy = [load.descriptor, load.offsets, bar, f"{self.buffers[name]}.index({here})"]
                    body.append(parsed(call(TMA_LOAD, copy, 8)))
        first_phase = statement(f"{phase} = 1", "at first all slots are free")
        return [*slots.started(None)[:-1], first_phase, self._loop([*body, *slots.advanced()])]

    def _loop(self, body: Lines) -> cst.BaseStatement:
        node = self.chain.node
        assert isinstance(node.iter, cst.Call)
        made = node.with_changes(iter=without_option(node.iter, PARTITIONED), leading_lines=[])
        return made.with_changes(target=cst.Name(self.variable), body=cst.IndentedBlock(body))

    # ------------------------------------------------------------------------------------------------------ the caller

    def _called(self, line: cst.BaseStatement, names: Sequence[str], given: Sequence[Sequence[str]]) -> Lines:
        """What stands in the place of the loop: memory, mbarriers, and the call of the partitions."""
        first, second = self.chain.first, self.chain.second
        rows, columns = _extents(second.tile[0])
        assert second.lhs is not None
        note = f"rings of {self.depth.source} tiles: one warp has them filled, another has them multiplied"
        made: Lines = [
            statement(f"{self.buffers[load.ring.name]} = {allocation(load.descriptor, self.depth)}")
            for load in self.tiles
        ]
        made[0] = under(made[0], [*leading(line), *comment(note)])
        tiles = [
            SlotBarriers(self.bars[ring], self.free_bars[ring], self.depth.source, self.each) for ring in self.buffers
        ]
        scores = SlotBarriers(self.score_bars, self.free_scores, self.score_count, self.each)
        made += [each for pair in tiles for each in pair.made()]
        dims, dtype, layout = first.tile
        across = _extents(dims)[1]
        room = f"2 if 5 * {operand(across)} // 2 + {operand(columns)} <= 512 else 1"
        made.append(statement(f"{self.score_count}: gl.constexpr = {room}", "as many as tensor memory has room for"))
        both = ", ".join([self.score_count, *_extents(dims)])
        made.append(statement(f"{self.scores} = allocate_tensor_memory({dtype}, [{both}], {layout})"))
        made += scores.made()
        of_weights, in_memory = second.lhs
        kind = f"{self.buffers[self.chain.load_for(second).ring.name]}.dtype"
        made.append(statement(f"{self.weights} = allocate_tensor_memory({kind}, {of_weights}, {in_memory})"))
        dims, dtype, layout = second.tile
        made.append(statement(f"{self.sum} = allocate_tensor_memory({dtype}, {dims}, {layout})"))
        made.append(statement(f"{self.sum}.store({ast.unparse(second.added or ast.Constant(0))})"))
        plain = "gl.SwizzledSharedLayout(1, 1, 1, [0])"
        made.append(statement(f"{self.factor} = gl.allocate_shared_memory(gl.float32, [{rows}], {plain})"))
        bars = [bar for each in self.there for bar in (self.there[each], self.free[each])]
        made += [
            statement(f"{bar} = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())") for bar in bars
        ]
        made += [statement(f"mbarrier.init({bar}, count=1)") for bar in bars]
        said = f"88 if {rows} * {columns} <= 2048 * gl.num_warps() else 152"
        made.append(statement(f"{self.registers}: gl.constexpr = {said}"))
        warps = ["gl.num_warps()", "1", "1"]
        registers = [self.registers, WORKER_REGISTERS, WORKER_REGISTERS]
        made.append(parsed(call_of(names, given, warps, registers, (*self.chain.given, self.phase))))
        done = statement(f"mbarrier.wait({self.there[self.sum]}, {self.phase})", "the last product is done")
        made += [done, statement(f"{second.name} = {self.sum}.load({second.registers})")]
        made += [pair.gone() for pair in (*tiles, scores)]
        return [*made, *(statement(f"mbarrier.invalidate({bar})") for bar in bars)]


def _extents(dims: str) -> list[str]:
    tree = ast.parse(dims, mode="eval").body
    assert isinstance(tree, ast.List | ast.Tuple)
    return list(map(ast.unparse, tree.elts))


def _target(bound: ast.stmt) -> str:
    """The name that a tile is bound to."""
    assert isinstance(bound, ast.Assign)
    return ast.unparse(bound.targets[0])
