"""Holds the formulas of `matrix_layouts`, `shared_layouts` and `tensor_memory_layouts` against what Triton made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.dots.facts import Case, Dot, Ring, dots_of
from tt2gl.isolate import map_isolated, preload
from tt2gl.layouts import Blocked
from tt2gl.matrix_layouts import (
    Mma,
    Operand,
    batched_mma_v2,
    chained_wgmma,
    fma,
    mma_v2,
    read_blocked,
    read_mma,
    read_operand,
    wgmma,
)
from tt2gl.shared_layouts import Swizzled, nvmma_shared, read_nvmma_shared, read_swizzled, swizzled
from tt2gl.tensor_memory_layouts import (
    linear_of,
    loaded,
    loaded_for_rows,
    read_linear,
    read_tensor_memory,
    tensor_memory,
)

Judged = tuple[str, Any, Sequence[Any]]
"""What is judged, the layout that Triton chose, and those that the formulas allow."""


@dataclass
class Verdict:
    """How many layouts of each kind the formulas gave, of how many, and some that they did not."""

    right: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def verdict(cases: Sequence[Case]) -> Verdict:
    """All layouts of all cases. Raises AssertionError where one does not compile."""
    preload()
    made = Verdict()
    for case, outcome in zip(cases, map_isolated(dots_of, [(case,) for case in cases]), strict=True):
        assert outcome.value is not None, f"{case}: {outcome.error}"
        assert outcome.value, f"{case}: no dot is left"
        for kind, true, allowed in judged(case, outcome.value):
            made.all[kind] += 1
            made.right[kind] += true in allowed
            if true not in allowed:
                made.wrong.append(f"{case}: {kind} is {true}, not {allowed}")
    return made


def judged(case: Case, dots: Sequence[Dot]) -> Iterator[Judged]:
    """Every layout of a case beside what its formula gives."""
    for dot in dots:
        yield from _accumulator(case, dot, dots[-1])
        for index, (encoding, ring) in enumerate(zip(dot.operands, dot.rings, strict=True)):
            operand, memory = read_operand(encoding), read_tensor_memory(encoding)
            if operand is not None:
                yield _operand(case, dot, operand, index)
            if memory is not None:
                yield "operand in tensor memory", memory, [tensor_memory((dot.shape[0], dot.shape[2]))]
            elif ring is not None:
                yield _ring(ring, operand)


def _accumulator(case: Case, dot: Dot, last: Dot) -> Iterator[Judged]:
    shape, warps = dot.shape[:-1], case.num_warps
    blocked, memory = read_blocked(dot.accumulator), read_tensor_memory(dot.accumulator)
    if blocked is not None:
        yield "fma", blocked, [fma(shape, warps)]
    elif memory is not None:
        yield "tcgen05", memory, [tensor_memory(shape)]
        allowed = [linear_of(loaded(shape, warps), shape), loaded_for_rows(shape, warps)]
        yield from (("loaded", read_linear(encoding, shape), allowed) for encoding in dot.loaded)
    elif (mma := read_mma(dot.accumulator)) is None:
        yield "accumulator", dot.accumulator, []
    elif mma.version == (3, 0):
        widest = 128 if case.dtype == "int8" else 256
        formulas = chained_wgmma(shape, warps, dot.bits), wgmma(shape, warps, dot.bits, widest)
        yield "chained wgmma" if dot.feeds else "wgmma", mma, [formulas[not dot.feeds]]
    elif len(shape) == 3:
        rows = mma.instr_shape[-2]
        plain = Mma((2, 0), (warps, 1, 1), (1, rows, 8))
        yield "batched mma_v2", mma, [plain, batched_mma_v2(shape, warps, rows)]
    elif case.kernel == "plain":
        yield "mma_v2", mma, [mma_v2(shape, warps, mma.instr_shape[0])]
    else:
        along = (warps, 1) if last.shape[0] >= last.shape[1] else (1, warps)
        yield "chained mma_v2", mma, [Mma((2, 0), along, (16, 8))]


def _operand(case: Case, dot: Dot, operand: Operand, index: int) -> Judged:
    if isinstance(operand.parent, Blocked):
        return "operand of fma", operand.k_width, [0]
    if operand.parent.version == (3, 0):
        return "operand of wgmma", operand.k_width, [32 // dot.bits]
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16}
    narrowest = min(bits.get(kind or case.dtype, 8) for kind in (*case.stored, case.dtype))
    width = max(32 // narrowest, 1)
    return "operand of mma_v2", operand, [Operand(index, mma, width) for mma in [read_mma(dot.accumulator)] if mma]


def _ring(ring: Ring, operand: Operand | None) -> Judged:
    if (nvmma := read_nvmma_shared(ring.layout)) is not None:
        return "nvmma_shared", nvmma, [nvmma_shared(ring.shape, ring.bits, nvmma.transposed)]
    found = read_swizzled(ring.layout)
    if found is None:
        return "shared", ring.layout, []
    if operand is None or isinstance(operand.parent, Blocked):
        return "plain shared", found, [Swizzled(1, 1, 1, found.order)]
    heights = (8, 4) if ring.bits == 64 else (8,)
    parts = (ring.shape, found.order, ring.bits, ring.k_dim, operand.k_width)
    return "swizzled", found, [swizzled(*parts, rows) for rows in heights]
