"""Stores of few elements that Triton spreads over a program's threads, by a conversion.

What a loop sums up for a few rows comes in the layout of its tiles. Stored in that, its addresses and masks are those
that the loop reads tiles by, and ptxas holds them longer: int8 rows times a vector take 40 registers for Triton's 32.

Anywhere else such a row is stored as it comes, which saves a trip through shared memory, unless a thread would need
more instructions: 4 for 1 cost a tenth of the scores of paged attention on an H100, and a hundredth of
an L2 norm, where 1 for 1 won up to 3%.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from math import prod

from tt2gl.analysis.facts import Access, CallChain
from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import Location, Module, Operation, Value
from tt2gl.ir.types import TensorType, Type
from tt2gl.layouts import ACCESS_BITS
from tt2gl.matrix_layouts import read_blocked

LOOPS = ("scf.for", "scf.while")
"""Operations that are loops."""

_SUMMED_UP = (*LOOPS, "tt.reduce")
"""Operations that a row of few elements comes of, in the layout of tiles."""

_PASSED = ("tt.fp_to_fp", "tt.bitcast", "tt.expand_dims", "tt.extern_elementwise")
_COMPUTED = ("arith.", "math.")


def may_be_spread(accesses: Collection[Access], ir: str) -> bool:
    """Whether a launch with these accesses may have such stores: it sums something up, and stores few elements."""
    small = (
        prod(each.shape) < prod((*each.threads_per_warp, *each.warps_per_cta))
        for each in accesses
        if each.operation == "tt.store"
    )
    return any(small) and any(each in ir for each in _SUMMED_UP)


def spread_stores(module: Module, author_file: Callable[[str], str]) -> frozenset[CallChain]:
    """The stores of converted values that are behind a loop, or need fewer instructions so, in final TTGIR."""
    made = {id(result): operation for operation in module.kernel.walk() for result in operation.results}
    behind = {id(operation) for operation in _behind_loops(module.kernel, behind=False)}

    def spreads(store: Operation) -> bool:
        stored = store.operands[1].type
        found = list(_converted(store.operands[1], made)) if is_spread(store) else []
        fewer = (_requests(each.type, stored) > _requests(stored, stored) for each in found)
        return bool(found) and (id(store) in behind or any(fewer))

    stores = (each for each in module.kernel.walk() if each.name == "tt.store" and spreads(each))
    return frozenset(chain_of(each, author_file) for each in stores)


def _converted(value: Value, made: Mapping[int, Operation]) -> Iterator[Value]:
    """What is converted to become a value, by itself or before that is computed of it, element by element."""
    known: set[int] = set()
    asked = [value]
    while asked:
        operation = made.get(id(asked.pop()))
        if operation is None or id(operation) in known:
            continue
        known.add(id(operation))
        if operation.name == "ttg.convert_layout":
            yield operation.operands[0]
        elif operation.name in _PASSED or operation.name.startswith(_COMPUTED):
            asked += operation.operands


def _requests(kind: Type, stored: Type) -> int:
    """How many stores a thread makes for elements as `stored` in the layout of `kind`; 0 where that is not known."""
    if not isinstance(kind, TensorType) or not isinstance(stored, TensorType):
        return 0
    width = re.search(r"\d+", str(stored.element))
    bits = int(width[0]) if width else ACCESS_BITS
    # Of a slice the dimensions that its parent has besides go out.
    encoding, kept = kind.encoding, []
    while isinstance(encoding, DialectAttr) and encoding.name == "ttg.slice":
        kept.append(encoding.get("dim"))
        encoding = encoding.get("parent")
    layout = read_blocked(encoding) if encoding is not None else None
    if layout is None:
        return 0
    dims = list(range(len(layout.order)))
    for dim in reversed(kept):
        del dims[dim]
    count, fastest = 1, min(dims, key=layout.order.index)
    for dim, extent in zip(dims, kind.shape, strict=True):
        own = min(layout.size_per_thread[dim], extent)
        turns = -(-extent // (layout.size_per_thread[dim] * layout.threads_per_warp[dim] * layout.warps_per_cta[dim]))
        count *= turns * (-(-own * bits // ACCESS_BITS) if dim == fastest else own)
    return count


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
