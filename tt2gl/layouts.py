"""Layout values: the blocked layout of a global access, how it is chosen and how it is written as Gluon.

The closed formula is that of Triton's `BlockedEncodingAttr` builder: `size` elements a thread along the fastest
dimension, then lanes, then warps, filled outwards along the order; what is left goes to the slowest dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ACCESS_BITS = 128
"""The widest global access of a thread, on every target."""


@dataclass(frozen=True)
class Blocked:
    """A blocked layout with all its numbers (`gl.BlockedLayout`)."""

    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        parts = (self.size_per_thread, self.threads_per_warp, self.warps_per_cta, self.order)
        return f"{alias}.BlockedLayout({', '.join(str(list(part)) for part in parts)})"


def permuted(layout: object, order: Sequence[int]) -> Blocked | None:
    """The layout of a value whose dimensions are put in another order; None of one that is not blocked."""
    if not isinstance(layout, Blocked):
        return None
    parts = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta)
    elements, threads, warps = (tuple(part[dim] for dim in order) for part in parts)
    return Blocked(elements, threads, warps, tuple(map(order.index, layout.order)))


def are_alike(one: Blocked, other: Blocked, shape: Sequence[int]) -> bool:
    """Whether two layouts put the elements of a tile in the same threads: in other orders where an extent is 1, say."""
    return _places(one, shape) == _places(other, shape)


def _places(layout: Blocked, shape: Sequence[int]) -> tuple[list[tuple[int, int]], ...]:
    """The dimension, and how far along it, that each bit of a lane's and of a warp's number stands for."""
    at = list(layout.size_per_thread)
    found: tuple[list[tuple[int, int]], ...] = ([], [])
    for bits, extents in zip(found, (layout.threads_per_warp, layout.warps_per_cta), strict=True):
        for dim in layout.order:
            end = at[dim] * extents[dim]
            while at[dim] < end:
                bits.append((dim, at[dim]) if at[dim] < shape[dim] else (0, 0))
                at[dim] *= 2
    return found


def coalesced(shape: Sequence[int], order: Sequence[int], bits: int, num_warps: int, lanes: int) -> Blocked:
    """The layout of a coalesced access to a tile of `shape` elements of `bits` bits, fastest dimension `order[0]`."""
    rank, elements = len(shape), 1
    for extent in shape:
        elements *= extent
    size, threads, warps = [1] * rank, [1] * rank, [1] * rank
    size[order[0]] = min(ACCESS_BITS // bits, shape[order[0]], max(elements // (num_warps * lanes), 1))
    for dim in order:
        threads[dim] = min(lanes, max(shape[dim] // size[dim], 1))
        lanes //= threads[dim]
        warps[dim] = min(num_warps, max(shape[dim] // (size[dim] * threads[dim]), 1))
        num_warps //= warps[dim]
    threads[order[-1]] *= lanes
    warps[order[-1]] *= num_warps
    return Blocked(tuple(size), tuple(threads), tuple(warps), tuple(order))


def coalesced_source(lanes: int) -> str:
    """The same formula as a Gluon helper, to stand at the top of a converted file."""
    return f'''@gluon.constexpr_function
def coalesced(shape, order, bits, num_warps, lanes={lanes}):
    """Blocked layout of a global access: up to 16 bytes a thread along `order[0]`, lanes then warps outwards."""
    rank, elements = len(shape), 1
    for extent in shape:
        elements *= extent
    size, threads, warps = [1] * rank, [1] * rank, [1] * rank
    size[order[0]] = min({ACCESS_BITS} // bits, shape[order[0]], max(elements // (num_warps * lanes), 1))
    for dim in order:
        threads[dim] = min(lanes, max(shape[dim] // size[dim], 1))
        lanes //= threads[dim]
        warps[dim] = min(num_warps, max(shape[dim] // (size[dim] * threads[dim]), 1))
        num_warps //= warps[dim]
    threads[order[-1]] *= lanes
    warps[order[-1]] *= num_warps
    return gl.BlockedLayout(size, threads, warps, order)
'''


def coalesced_blocks(
    shape: Sequence[int], order: Sequence[int], bits: int, num_warps: int, lanes: int, column_bits: int = 0
) -> Blocked:
    """The layout of such an access of which a thread has several rows, to store them by columns, 8 bytes at a time.

    `column_bits` are those of an element there, where accesses are narrower than elements of `bits` would have them.
    """
    plain, slow = coalesced(shape, order, bits, num_warps, lanes), order[-1]
    size = list(plain.size_per_thread)
    rows = shape[slow] // (plain.threads_per_warp[slow] * plain.warps_per_cta[slow])
    size[slow] = max(min(rows, 64 // (column_bits or bits)), 1)
    return Blocked(tuple(size), plain.threads_per_warp, plain.warps_per_cta, tuple(order))


COALESCED_BLOCKS_SOURCE = '''@gluon.constexpr_function
def coalesced_blocks(shape, order, bits, num_warps, column_bits=0):
    """As `coalesced`, with as many rows in a thread as make a column of 8 bytes, of elements of `column_bits`."""
    plain, slow = coalesced(shape, order, bits, num_warps), order[-1]
    size = list(plain.size_per_thread)
    rows = shape[slow] // (plain.threads_per_warp[slow] * plain.warps_per_cta[slow])
    size[slow] = max(min(rows, 64 // (column_bits or bits)), 1)
    return gl.BlockedLayout(size, plain.threads_per_warp, plain.warps_per_cta, order)
'''
"""`coalesced_blocks` as a Gluon helper, which calls `coalesced` (Triton's pass InThreadTranspose)."""


PAIRED_SOURCE = '''@gluon.constexpr_function
def paired(layout):
    """The layout with a last dimension of two elements, both in one thread: what `join` gives and `split` takes."""
    return gl.BlockedLayout(
        [*layout.size_per_thread, 2],
        [*layout.threads_per_warp, 1],
        [*layout.warps_per_cta, 1],
        [len(layout.order), *layout.order],
    )
'''
"""`Pair` as a Gluon helper. Triton's join puts the new dimension first in the order (inferJoinOpEncoding)."""


WITH_PAIRS_SOURCE = '''@gluon.constexpr_function
def with_pairs(layout):
    """A linear layout with a last dimension of two elements, both in one thread, once: what `split` takes."""
    parts = layout.lane_bases, layout.warp_bases, layout.block_bases
    own = [[*[0] * len(layout.shape), 1], *[[*basis, 0] for basis in layout.reg_bases if any(basis)]]
    return gl.DistributedLinearLayout(
        own, *[[[*basis, 0] for basis in part] for part in parts], [*layout.shape, 2]
    )
'''
"""`Pair` of a layout told by its bases, as a Gluon helper."""


WIDENED_SOURCE = '''@gluon.constexpr_function
def widened(layout, dim, factor):
    """The layout of `factor` elements in place of each along `dim`, all in its thread: what `interleave` gives."""
    size = list(layout.size_per_thread)
    size[dim] *= factor
    return gl.BlockedLayout(size, layout.threads_per_warp, layout.warps_per_cta, layout.order)
'''
"""`Widened` as a Gluon helper."""


NARROWED_SOURCE = '''@gluon.constexpr_function
def narrowed(layout, dim, factor):
    """The layout of one element in place of `factor` neighbours along `dim`, in their thread: what `split` gives."""
    size = list(layout.size_per_thread)
    size[dim] = max(size[dim] // factor, 1)
    return gl.BlockedLayout(size, layout.threads_per_warp, layout.warps_per_cta, layout.order)
'''
"""`Narrowed` as a Gluon helper."""


RESHAPED_SOURCE = '''@gluon.constexpr_function
def reshaped(layout, shape):
    """What a linear layout becomes when its tensor is reshaped to `shape`: each thread keeps its elements."""

    def moved(basis):
        place, there = 0, []
        for extent, at in zip(layout.shape, basis):
            place = place * extent + at
        for extent in reversed(shape):
            there.insert(0, place % extent)
            place //= extent
        return there

    parts = layout.reg_bases, layout.lane_bases, layout.warp_bases, layout.block_bases
    return gl.DistributedLinearLayout(*[[moved(basis) for basis in part] for part in parts], shape)
'''
"""`Reshaped` as a Gluon helper."""
