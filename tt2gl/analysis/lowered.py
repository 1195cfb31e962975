"""What Triton's own compiler makes of a launch's dots and of the loads that feed them: facts read off final TTGIR.

The instruction of each dot, the layouts of its operands and accumulator, and the ring of shared buffers that the
pipeliner gives a load, all by the place in the source. They are the floor that a conversion must not fall below.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import replace

from tt2gl.amd_matrix_layouts import chip_of
from tt2gl.analysis.amd_dots import amd_instruction, stored_layout, turned_loads
from tt2gl.analysis.facts import CallChain, DescriptorFact, DotFact, DotOperandFact, Instruction, Lowered, RingFact
from tt2gl.analysis.first_turns import uneven_loads
from tt2gl.analysis.lasting_operands import is_at_hand
from tt2gl.analysis.late_loads import LOADS, late_loads, loaded
from tt2gl.analysis.located_loads import located_loads
from tt2gl.analysis.operand_loads import operand_loads
from tt2gl.analysis.operand_memory import from_memory, kept_from_memory, layout_of
from tt2gl.analysis.split_turns import split_loads
from tt2gl.analysis.spread_stores import LOOPS, chain_of, is_spread
from tt2gl.analysis.tensor_memory import TensorMemoryUses
from tt2gl.analysis.tma_facts import GATHERS, TILE_LOADS, descriptor_fact, is_taken, taken_in_place, tile_ring
from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.ir.operations import Module, Operation, Value
from tt2gl.ir.types import MemDescType, TensorType

_INSTRUCTIONS: dict[str, Instruction] = {
    "ttng.warp_group_dot": "wgmma",
    "ttng.tc_gen5_mma": "tcgen05",
    "ttng.tc_gen5_mma_scaled": "tcgen05_scaled",
}
_MMA_V2: dict[str, Instruction] = {"tt.dot": "mma_v2", "tt.dot_scaled": "mma_v2_scaled"}
_DOTS = tuple(_MMA_V2)
# Copies to shared memory, with the places of the slot and of the tensor of addresses among their operands.
_COPIES = {"ttg.async_copy_global_to_local": (1, 0), "amdg.buffer_load_to_local": (0, 2)}
_RESHAPES = ("tt.reshape", "tt.trans", "tt.split")
_VIEWS = ("ttg.memdesc_index", "ttg.memdesc_trans", "ttg.memdesc_subslice", "ttg.memdesc_reshape")


def lowered_facts(module: Module, author_file: Callable[[str], str]) -> Lowered:
    """Facts of every dot and every pipelined load; `author_file` names the author's file of a module's path."""
    reader = _Reader(module, author_file)
    # A pipelined loop has parts of its first and last iterations around it: what it does itself says most.
    for operation in sorted(module.kernel.walk(), key=lambda each: id(each) not in reader.loops):
        reader.take(operation)
    return reader.result()


class _Reader:
    """Takes a kernel's operations one by one, those in loops first, and tells in the end what they say together."""

    def __init__(self, module: Module, author_file: Callable[[str], str]) -> None:
        self.kernel, self.author_file = module.kernel, author_file
        self.chip = _chip(module)
        self.loops = _loops(module.kernel)
        self.made = {id(result): operation for operation in module.kernel.walk() for result in operation.results}
        self.uses = TensorMemoryUses(module, self.made)
        self.looked_up = _looked_up(module.kernel, self.made)
        self.in_place = taken_in_place(module, self.made)
        self.late = late_loads(module.kernel, self.made)
        self.located = located_loads(module.kernel, self.made)
        self.split = {self._chain(load) for load in split_loads(module.kernel, self.made)}
        self.dots: dict[CallChain, DotFact] = {}
        self.rings: dict[CallChain, RingFact] = {}
        self.descriptors: dict[CallChain, DescriptorFact] = {}
        self.inferred: dict[CallChain, bool] = {}
        self.inferred_in_loops: set[CallChain] = set()
        self.stores: dict[CallChain, DialectAttr] = {}
        self.turned: dict[CallChain, DialectAttr] = {}
        self.loads: dict[CallChain, list[tuple[Operation, int | None]]] = {}
        self.held_back: set[CallChain] = set()
        self.copied: set[CallChain] = set()
        self.spread: set[CallChain] = set()
        self.filled: dict[CallChain, list[int | None]] = {}
        self.places: dict[CallChain, int] = {}

    def take(self, operation: Operation) -> None:
        """Add what one operation says."""
        made, name = self.made, operation.name
        if name in _DOTS or name in _INSTRUCTIONS:
            self._dot(operation)
        elif name in _COPIES:
            if (ring := _ring(operation, made, self.looked_up)) is not None:
                self.rings.setdefault(self._chain(operation), replace(ring, direct=self.chip))
        elif name == "ttg.local_store" and (found := _stored_ring(operation, made, self.looked_up)) is not None:
            load, ring = found
            chain = self._chain(load)
            self.filled.setdefault(chain, []).append(self.loops.get(id(operation)))
            known = replace(ring, late=id(load) in self.late, located=id(load) in self.located)
            self.rings.setdefault(chain, replace(known, split=chain in self.split))
        elif name in GATHERS or self.chip and name.rpartition(".")[2] in LOADS:
            self.loads.setdefault(self._chain(operation), []).append((operation, self.loops.get(id(operation))))
        elif name == "tt.load" and id(operation) in self.loops and _is_coalesced(operation):
            self.held_back.add(self._chain(operation))
            self._place(operation)
        elif name == "ttng.tmem_load" and id(operation) in self.loops:
            self._place(operation)
        elif name in TILE_LOADS:
            if (ring := tile_ring(operation, made, self.in_place)) is not None:
                self.rings.setdefault(self._chain(operation), ring)
            elif not is_taken(operation, made, self.in_place):
                self.copied.add(self._chain(operation))
        elif (descriptor := descriptor_fact(operation)) is not None:
            self.descriptors.setdefault(self._chain(operation), descriptor)
        elif name == "tt.store" and is_spread(operation):
            self.spread.add(self._chain(operation))
        elif (stored := stored_layout(operation, made)) is not None:
            self.stores.setdefault(self._chain(operation), stored)
        elif from_loads := list(turned_loads(operation, made)):
            self.turned |= {self._chain(each): layout for each, layout in from_loads}
        elif name in _RESHAPES:
            self._reshape(operation)

    def _chain(self, operation: Operation) -> CallChain:
        """The place of an operation, then of each call that led to it."""
        return chain_of(operation, self.author_file)

    def _place(self, operation: Operation) -> None:
        self.places.setdefault(self._chain(operation), len(self.places))

    def _dot(self, operation: Operation) -> None:
        fact = _dot(operation, self.made, self.uses, self.loops)
        if fact is not None:
            chain = self._chain(operation)
            known = self.dots.setdefault(chain, fact)
            # Of a loop that is taken apart whole, the first product alone starts from zeros.
            self.dots[chain] = replace(known, from_zero=known.from_zero and fact.from_zero)

    def _reshape(self, operation: Operation) -> None:
        encoding = layout_of(operation.results[0].type)
        # Where a loop has no turn, what it starts from is taken apart, which no layout serves better.
        if encoding is not None and not _is_constant(operation.operands[0], self.made):
            chain, in_loop = self._chain(operation), id(operation) in self.loops
            # The last iterations of a pipeline have products under conditions, which no layout is carried through.
            if chain in self.inferred_in_loops and not in_loop:
                return
            if in_loop:
                self.inferred_in_loops.add(chain)
            kept = encoding.name == "ttg.linear" or operation.name == "tt.reshape" and encoding.name == "ttg.dot_op"
            self.inferred[chain] = kept and self.inferred.get(chain, True)

    def result(self) -> Lowered:
        """What all that was taken says."""
        # In a loop that is written out, one copy of a load may run ahead and another not: one text serves both.
        everywhere = {c: ring for c, ring in self.rings.items() if ring.registers or c not in self.held_back}
        rings = {c: _without_spare(ring, self.filled.get(c, [])) for c, ring in everywhere.items()}
        early = self._early(rings)
        order = {id(each): number for number, each in enumerate(self.kernel.walk())}
        around, kept = _around(self.kernel), _carried(self.kernel)
        held: dict[CallChain, RingFact] = {}
        for chain, done in early.items() if self.chip else ():
            ahead = _ahead(done, kept) if self.chip.startswith("gfx9") else done
            again = len(ahead) < len(done)
            ring = _held(ahead, order, around)
            if ring is not None and (ring.is_operand or not again):
                held[chain] = replace(ring, again=again)
        direct = operand_loads(self.kernel, self.made, self.loops) if self.chip else ()
        return Lowered(
            self.dots,
            rings,
            self.descriptors,
            inferred=self.inferred,
            prefetched=frozenset(early),
            held=held,
            stores=self.stores,
            turned=self.turned,
            copied=frozenset(self.copied),
            spread=frozenset(self.spread),
            places=self.places,
            operands=frozenset(map(self._chain, direct)),
            uneven=uneven_loads(self.kernel, self._chain),
        )

    def _early(self, rings: Container[CallChain]) -> dict[CallChain, list[tuple[Operation, int | None]]]:
        """The loads without a ring that stand before their loop, too: there they are done for the first iterations."""
        early = {c: done for c, done in self.loads.items() if len({loop for _, loop in done}) > 1 and c not in rings}
        if not self.chip:
            return early
        # One that is not carried to the next iteration stands for the last ones again, after its loop.
        kept = _carried(self.kernel)
        return {c: done for c, done in early.items() if any(id(each.results[0]) in kept for each, _ in done)}


def _without_spare(ring: RingFact, places: Sequence[int | None]) -> RingFact:
    """A ring that is filled from registers with as many slots as loads run ahead: one store each, and one in the loop.

    Where Triton has waves copy tiles directly if they can, it gives all rings the spare slot that those need. `places`:
    the loops around the stores; where all have the same, the loop of few turns that they were in is none anymore.
    """
    is_loop = len(set(places)) > 1 and len(places) <= ring.buffers
    return replace(ring, buffers=len(places) - 1) if ring.registers and is_loop else ring


def _is_coalesced(load: Operation) -> bool:
    """Whether a load has a layout for memory; one that is done again, as others read it elsewhere, has a reader's."""
    layout = layout_of(load.results[0].type)
    return layout is None or bool(layout.name == "ttg.blocked")


def _carried(kernel: Operation) -> set[int]:
    """The values, by identity, that iterations of loops hand on to the next."""
    ends = (loop.regions[-1].entry.operations[-1] for loop in kernel.walk() if loop.name in LOOPS)
    return {id(value) for end in ends for value in end.operands}


def _ahead(done: Sequence[tuple[Operation, int | None]], kept: Container[int]) -> list[tuple[Operation, int | None]]:
    """Of the loads at one place those in the layout that iterations hand on: others load again where they read them.

    RDNA has too few registers to hold a row in: a state of chunks took 209 on gfx1100 for 186 (Triton's kernel: 178).
    """

    def layout(load: Operation) -> str:
        return str(layout_of(load.results[0].type))

    ahead = {layout(load) for load, _ in done if id(load.results[0]) in kept}
    return [(load, loop) for load, loop in done if layout(load) in ahead]


def _held(
    done: Sequence[tuple[Operation, int | None]], order: Mapping[int, int], around: Mapping[int, int | None]
) -> RingFact | None:
    """The tiles that wait in registers for a loop: one loaded in it, others before; None for other loads.

    `around`: the loop around each loop.
    """
    kind, layout = done[0][0].results[0].type, layout_of(done[0][0].results[0].type)
    places = [loop for _, loop in done]
    inner = next((loop for loop in places if loop is not None and {loop, around[loop]} == {*places}), None)
    if inner is None or places.count(inner) != 1:
        return None
    if not isinstance(kind, TensorType) or not isinstance(layout, DialectAttr):
        return None
    # Those behind the loop are for its last iterations, as where others look up ahead of it.
    inside = next(order[id(each)] for each, loop in done if loop == inner)
    before = sum(order[id(each)] < inside for each, _ in done)
    return RingFact(before, kind.shape, layout, registers=True, held=True)


def _chip(module: Module) -> str:
    """AMD's chip that a module is for; empty for another vendor's."""
    target = str(module.attributes.get("ttg.target", ""))
    return target.removeprefix("hip:") if target.startswith("hip:") else ""


def _loops(kernel: Operation) -> dict[int, int]:
    """The innermost loop around each operation, both by identity."""
    return {id(each): id(loop) for loop in kernel.walk() if loop.name in LOOPS for each in loop.walk()}


def _around(kernel: Operation) -> dict[int, int | None]:
    """The innermost loop around each loop, both by identity; None for those in no other."""
    loops = [each for each in kernel.walk() if each.name in LOOPS]
    found: dict[int, int | None] = {id(each): None for each in loops}
    for outer in loops:
        found |= {id(each): id(outer) for each in outer.walk() if each is not outer and each.name in LOOPS}
    return found


def _dot(
    operation: Operation, made: dict[int, Operation], uses: TensorMemoryUses, loops: dict[int, int]
) -> DotFact | None:
    """What a dot is carried out by; None where nothing says how its accumulator comes into registers."""
    a, b, accumulator = operation.operands[:3]
    # A product by wgmma may be taken apart along K: its second operand is then part of a tile.
    while (part := made.get(id(b))) is not None and part.name == "ttg.memdesc_subslice":
        b = part.operands[0]
    kind = _INSTRUCTIONS.get(operation.name)
    layout = layout_of(accumulator.type)
    if kind in ("tcgen05", "tcgen05_scaled"):
        registers = uses.registers(accumulator)
        if registers is None:
            return None
        first = _operand(a, uses.registers(a))
        scales = tuple(_operand(each, uses.registers(each)) for each in operation.operands[3:] if _is_scale(each))
        if any(scale.registers is None for scale in scales):
            return None
        in_parts = uses.in_parts(accumulator)
        return DotFact(
            kind, registers, first, _operand(b), uses.from_zero(operation), layout, scales, in_parts=in_parts
        )
    if kind is None:
        is_mma = layout is not None and layout.name == "ttg.nvidia_mma"
        kind = amd_instruction(operation) or (_MMA_V2[operation.name] if is_mma else "fma")
        if operation.name == "tt.dot_scaled" and kind == "fma":
            return None
    zero = _is_constant(accumulator, made) and made[id(accumulator)].attributes["value"].is_zero
    sides = [_operand(side) for side in (a, b)]
    for place, side in enumerate((a, b)):
        load = made.get(id(side))
        # What is loaded before the loop is held in registers throughout it: a conversion, made once. On AMD that takes
        # another way through memory than Triton's, after which registers are given out, and waits placed, otherwise.
        if load is not None and loops.get(id(load)) == loops.get(id(operation)):
            sides[place] = from_memory(sides[place], load, made)
        elif load is not None and chip_of(layout):
            sides[place] = kept_from_memory(sides[place], load, made)
    element = accumulator.type.element if isinstance(accumulator.type, TensorType) else ""
    scales = tuple(map(_operand, operation.operands[3:])) if operation.name == "tt.dot_scaled" else ()
    at_hand = any(is_at_hand(side, operation, made, loops) for side in (a, b))
    return DotFact(kind, layout, sides[0], sides[1], zero, scales=scales, element=str(element), at_hand=at_hand)


def _is_constant(value: Value, made: dict[int, Operation]) -> bool:
    return (creation := made.get(id(value))) is not None and creation.name == "arith.constant"


def _is_scale(value: Value) -> bool:
    layout = layout_of(value.type)
    return layout is not None and bool(layout.name == "ttng.tensor_memory_scales_encoding")


def _operand(value: Value, registers: Attribute | None = None) -> DotOperandFact:
    kind = value.type
    assert isinstance(kind, TensorType | MemDescType)
    assert kind.encoding is not None
    return DotOperandFact(isinstance(kind, MemDescType), kind.shape, str(kind.element), kind.encoding, registers)


def _ring(copy: Operation, made: dict[int, Operation], looked_up: Set[int]) -> RingFact | None:
    """The ring that an asynchronous copy writes a slot of."""
    slot, addresses = (copy.operands[place] for place in _COPIES[copy.name])
    ring = _ring_of(slot, made, looked_up)
    return replace(ring, copied=layout_of(addresses.type)) if ring is not None else None


def _stored_ring(
    store: Operation, made: dict[int, Operation], looked_up: Set[int]
) -> tuple[Operation, RingFact] | None:
    """The load to registers whose tile is stored to a slot of a ring, and that ring; None for other stores."""
    tile, ring = store.operands[0], _ring_of(store.operands[1], made, looked_up)
    load = loaded(tile, made)
    if ring is None or load is None:
        return None
    copied, stored = layout_of(load.results[0].type), layout_of(tile.type)
    return load, replace(ring, copied=copied, registers=True, stored=stored if stored != copied else None)


def _ring_of(slot: Value, made: dict[int, Operation], looked_up: Set[int]) -> RingFact | None:
    """The ring that shared memory is a slot of; None for other memory."""
    memory, kind = _memory(slot, made), slot.type
    whole = memory.type
    if not isinstance(whole, MemDescType) or not isinstance(kind, MemDescType) or len(whole.shape) == len(kind.shape):
        return None
    return RingFact(whole.shape[0], kind.shape, kind.encoding, looked_up=id(memory) in looked_up)


def _memory(slot: Value, made: dict[int, Operation]) -> Value:
    """The shared memory that a slot is part of."""
    while (view := made.get(id(slot))) is not None and view.name in _VIEWS:
        slot = view.operands[0]
    return slot


def _looked_up(kernel: Operation, made: dict[int, Operation]) -> set[int]:
    """The shared memory, by identity, from which loads and copies take what says where they read."""
    found, seen = set[int](), set[int]()
    for operation in kernel.walk():
        if operation.name not in _COPIES and operation.name.rpartition(".")[2] not in LOADS:
            continue
        waiting = [value for value in operation.operands if isinstance(value.type, TensorType)]
        while waiting:
            value = waiting.pop()
            before = made.get(id(value))
            if before is None or id(before) in seen:
                continue
            seen.add(id(before))
            if before.name == "ttg.local_load":
                found.add(id(_memory(before.operands[0], made)))
            else:
                waiting += before.operands
    return found
