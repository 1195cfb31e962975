"""The shared memory that Triton reads a product's operand in registers from: facts of one operand, read off TTGIR."""

from __future__ import annotations

from dataclasses import replace

from tt2gl.amd_shared_layouts import is_turned
from tt2gl.analysis.facts import DotOperandFact
from tt2gl.analysis.late_loads import ON_THE_WAY
from tt2gl.ir.attributes import Attribute
from tt2gl.ir.operations import Operation
from tt2gl.ir.types import MemDescType, TensorType, Type

_CASTS = ("arith.extf", "arith.truncf", "tt.fp_to_fp", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp")


def from_memory(operand: DotOperandFact, load: Operation, made: dict[int, Operation]) -> DotOperandFact:
    """An operand with what is to be said of the operation that gives it, in its dot's loop; `made`: all, by result."""
    return replace(
        operand,
        reloaded=_reloaded(load, made),
        turned=_turned(load, made),
        widened=_widened(load, made),
        transposed=_transposed(load, made),
        recast=_recast(load, made),
    )


def kept_from_memory(operand: DotOperandFact, load: Operation, made: dict[int, Operation]) -> DotOperandFact:
    """An operand on AMD with what is to be said of the operation that gives it, outside its dot's loop."""
    return replace(operand, kept=None if _turned(load, made) else _reloaded(load, made))


def layout_of(kind: Type) -> Attribute:
    """The layout of a tensor or of memory; None of other types."""
    return kind.encoding if isinstance(kind, TensorType | MemDescType) else None


def _reloaded(load: Operation, made: dict[int, Operation]) -> Attribute | None:
    """The shared layout that a value was put in once and is read from for a dot; None for other values."""
    if load.name != "ttg.local_load":
        return None
    allocation, layout = made.get(id(load.operands[0])), layout_of(load.operands[0].type)
    if allocation is None or allocation.name != "ttg.local_alloc":
        return None
    # What a descriptor's tile is copied to is made without a value.
    return layout if allocation.operands or layout is not None and layout.name == "ttg.nvmma_shared" else None


def _widened(cast: Operation, made: dict[int, Operation]) -> Attribute | None:
    """The shared layout that a loaded tile was put in once, and is read from and cast for a dot; None for others."""
    read = made.get(id(cast.operands[0])) if cast.name == "arith.extf" else None
    layout = _reloaded(read, made) if read is not None else None
    if read is None or layout is None:
        return None
    allocation = made[id(read.operands[0])]
    tile = made.get(id(allocation.operands[0])) if allocation.operands else None
    if tile is not None and tile.name.endswith(".in_thread_transpose"):
        tile = made.get(id(tile.operands[0]))
    return layout if tile is not None and tile.name == "tt.load" else None


def _recast(cast: Operation, made: dict[int, Operation]) -> Attribute | None:
    """The shared layout that a transposition was put in once, and is read from and cast for a dot; None for others."""
    read: Operation | None = cast
    while read is not None and read.name in _CASTS:
        read = made.get(id(read.operands[0]))
    layout = _reloaded(read, made) if read is not None and read is not cast else None
    if read is None or layout is None:
        return None
    allocation = made[id(read.operands[0])]
    value = made.get(id(allocation.operands[0])) if allocation.operands else None
    return layout if value is not None and value.name == "tt.trans" else None


def _transposed(load: Operation, made: dict[int, Operation]) -> Attribute | None:
    """The shared layout that a tile was put in once, and is read turned from for a dot; None for other values."""
    view = made.get(id(load.operands[0])) if load.name == "ttg.local_load" else None
    allocation = made.get(id(view.operands[0])) if view is not None and view.name == "ttg.memdesc_trans" else None
    if view is None or allocation is None or allocation.name != "ttg.local_alloc" or not allocation.operands:
        return None
    return layout_of(view.operands[0].type)


def _turned(load: Operation, made: dict[int, Operation]) -> bool:
    """Whether what is read was put there by threads that had turned their own elements of a blocked layout."""
    allocation = made.get(id(load.operands[0])) if load.name == "ttg.local_load" else None
    turn = made.get(id(allocation.operands[0])) if allocation is not None and allocation.operands else None
    if turn is None or turn.name.rpartition(".")[2] != ON_THE_WAY[0]:
        return False
    before, after = turn.operands[0].type, turn.results[0].type
    return isinstance(before, TensorType) and is_turned(layout_of(before), layout_of(after), before.shape)
