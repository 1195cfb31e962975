"""Stores of few elements that Triton spreads over a program's threads, by a conversion behind a loop.

What a loop sums up for a few rows comes in the layout of its tiles. Stored in that, its addresses and masks are those
that the loop reads tiles by, and ptxas holds them longer: int8 rows times a vector take 40 registers for Triton's 32.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from math import prod

from tt2gl.analysis.facts import Access, CallChain
from tt2gl.ir.operations import Location, Module, Operation
from tt2gl.ir.types import TensorType

LOOPS = ("scf.for", "scf.while")
"""Operations that are loops."""

_PASSED = (
    "arith.truncf", "arith.extf", "arith.trunci", "arith.extsi", "arith.extui", "tt.fp_to_fp", "tt.bitcast",
    "tt.expand_dims",
)  # fmt: skip


def may_be_spread(accesses: Collection[Access], ir: str) -> bool:
    """Whether a launch with these accesses may have such stores: it has a loop, and a store of few elements."""
    small = (
        prod(each.shape) < prod((*each.threads_per_warp, *each.warps_per_cta))
        for each in accesses
        if each.operation == "tt.store"
    )
    return any(small) and any(loop in ir for loop in LOOPS)


def spread_stores(module: Module, author_file: Callable[[str], str]) -> frozenset[CallChain]:
    """The stores of converted values that are behind a loop, in the final TTGIR of a kernel."""
    made = {id(result): operation for operation in module.kernel.walk() for result in operation.results}

    def converted(store: Operation) -> bool:
        value = made.get(id(store.operands[1]))
        while value is not None and value.name in _PASSED:
            value = made.get(id(value.operands[0]))
        return value is not None and value.name == "ttg.convert_layout" and is_spread(store)

    stores = (
        each for each in _behind_loops(module.kernel, behind=False) if each.name == "tt.store" and converted(each)
    )
    return frozenset(chain_of(each, author_file) for each in stores)


def _behind_loops(parent: Operation, *, behind: bool) -> Iterator[Operation]:
    """The operations within another one that follow a loop there, or in what is around; `behind`: all there do."""
    for region in parent.regions:
        for block in region.blocks:
            follows = behind
            for operation in block.operations:
                if follows:
                    yield operation
                is_loop = operation.name in LOOPS
                yield from _behind_loops(operation, behind=follows and not is_loop)
                follows = follows or is_loop


def is_spread(store: Operation) -> bool:
    """Whether a store has a layout for memory, and not the one that its value comes in."""
    kind = store.operands[1].type
    layout = kind.encoding if isinstance(kind, TensorType) else None
    return layout is not None and bool(layout.name == "ttg.blocked")


def chain_of(operation: Operation, author_file: Callable[[str], str]) -> CallChain:
    """The place of an operation, then of each call that led to it."""
    places: list[tuple[str, int, int]] = []
    at: Location | None = operation.location
    while at is not None:
        places.append((author_file(at.file), at.line, at.column))
        at = at.caller
    return tuple(places)
