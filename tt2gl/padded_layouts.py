"""Layouts of LDS with padding between its rows, and those of the threads that copy tiles directly to it (AMD).

The formulas are those of Triton's `composePaddedLayout` for CDNA4 and gfx1250 and of its pass CoalesceAsyncCopy, in
terms of the tile's extents, the order it is stored in, the width of its elements, and how a dot reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from tt2gl.formulas import Candidate, Tile, Width, Written, bracketed, written
from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.tensor_memory_layouts import Bases, Linear

WAVE = 64
"""Lanes of a wave that writes LDS directly, side by side (CDNA4)."""

# What one instruction copies directly, or loads transposed, in bits; what all banks of LDS give at once, in bits.
_COPY, _BANKS = 128, 64 * 32
# What a lane may copy directly at a time, in bits.
_COPIES = (_COPY, 32)


@dataclass(frozen=True)
class Padded:
    """A tile with padding after every so many elements: `gl.PaddedSharedLayout`.

    `paddings`: pairs of an interval and the elements added after each. `offset_bases`: where bits of an offset lead.
    """

    paddings: tuple[tuple[int, int], ...]
    offset_bases: Bases
    shape: tuple[int, ...]

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        pairs = bracketed([list(pair) for pair in self.paddings])
        if (order := _order_of(self.offset_bases, self.shape)) is not None:
            return f"{alias}.PaddedSharedLayout.with_identity_for({pairs}, {bracketed(self.shape)}, {bracketed(order)})"
        bases = bracketed([list(basis) for basis in self.offset_bases])
        return f"{alias}.PaddedSharedLayout({pairs}, {bases}, [], {bracketed(self.shape)})"


def read_padded(attribute: Attribute, shape: Sequence[int]) -> Padded | None:
    """The padded layout that an encoding of a tile is; None for another encoding, and for one of several programs."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.padded_shared" or attribute.get("block"):
        return None
    paddings = attribute.get("0")
    if (order := attribute.get("order")) is not None:
        return Padded(paddings, _identity(shape, order), tuple(shape))
    return Padded(paddings, attribute.get("offset"), tuple(shape))


def _identity(shape: Sequence[int], order: Sequence[int]) -> Bases:
    """The bases of a tile that lies in memory as it is, its fastest dimension first."""
    return tuple(
        tuple(1 << bit if place == dim else 0 for place in range(len(shape)))
        for dim in order
        for bit in range(shape[dim].bit_length() - 1)
    )


def _order_of(bases: Bases, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The order of a tile that lies in memory as it is; None for one whose rows change places."""
    order = tuple(dict.fromkeys(place for basis in bases for place, step in enumerate(basis) if step))
    order += tuple(place for place in reversed(range(len(shape))) if place not in order)
    return order if _identity(shape, order) == bases else None


# ------------------------------------------------------------------------------------------------------------ CDNA4


def staggered(
    shape: Sequence[int], order: Sequence[int], bits: int, k_dim: int, k_width: int, rows: int
) -> Padded | None:
    """The layout of a tile that is copied directly to LDS and read as an operand of MFMA (`STAGGERED_SOURCE`).

    None for elements of other widths, and for tiles that are too small.
    """
    if bits not in (8, 16):
        return None
    fast, slow = shape[order[0]], shape[order[1]]
    along_k, wide = order[0] == k_dim, k_width * bits == _COPY
    turned = not along_k and k_width * bits >= 64
    whole = along_k and wide
    padding = k_width * (32 // rows) if whole else rows if turned else 64 // bits
    wrap = min(fast, (_BANKS if whole or turned else _BANKS // 2) // bits) // padding
    beside = WAVE // (fast * bits // _COPY) if fast * bits >= _COPY else 0
    if not beside or not wrap:
        return None
    if slow < beside * wrap:
        short = beside * wrap // slow
        if whole or short > 2 or wrap < short:
            return None
        wrap //= short
    spread = wrap < 16 and slow >= beside * 16
    wrap = 16 if spread else wrap
    columns = [1 << bit for bit in range(fast.bit_length() - 1)]
    lines = [1 << bit for bit in range(slow.bit_length() - 1)]
    first, later = wrap.bit_length() - 1, (wrap * beside).bit_length() - 1
    lines = [*lines[first:later], *lines[:first], *lines[later:]]
    bases = [[step, 0] for step in columns] + [[0, step] for step in lines]
    if turned and rows == 16 and wide:
        one, two = bases.index([0, 64 // bits]), bases.index([0, 128 // bits])
        bases[one], bases[two] = bases[two], bases[one]
    if whole and rows == 32 and spread and fast * bits < _BANKS:
        bases[8], bases[len(columns)] = bases[len(columns)], bases[8]
    made = [(step, row) if order[0] == 0 else (row, step) for step, row in bases]
    return Padded(((WAVE * _COPY // bits, padding),), tuple(made), tuple(shape))


STAGGERED_SOURCE = '''@gluon.constexpr_function
def staggered_layout(shape, order, bits, k_dim, k_width, rows):
    """LDS of an operand of MFMA that waves copy there directly: rows read at once start in different banks."""
    fast, slow = shape[order[0]], shape[order[1]]
    turned = order[0] != k_dim and k_width * bits >= 64
    whole = order[0] == k_dim and k_width * bits == 128
    padding = k_width * (32 // rows) if whole else rows if turned else 64 // bits
    wrap = min(fast, (2048 if whole or turned else 1024) // bits) // padding
    beside = 64 // (fast * bits // 128)
    if slow < beside * wrap:
        wrap //= beside * wrap // slow
    spread = wrap < 16 and slow >= beside * 16
    wrap = 16 if spread else wrap
    columns = [[1 << bit, 0] for bit in range(fast.bit_length() - 1)]
    lines = [[0, 1 << bit] for bit in range(slow.bit_length() - 1)]
    first, later = wrap.bit_length() - 1, (wrap * beside).bit_length() - 1
    bases = columns + lines[first:later] + lines[:first] + lines[later:]
    if turned and rows == 16 and k_width * bits == 128:
        one, two = bases.index([0, 64 // bits]), bases.index([0, 128 // bits])
        bases[one], bases[two] = bases[two], bases[one]
    if whole and rows == 32 and spread and fast * bits < 2048:
        bases[8], bases[len(columns)] = bases[len(columns)], bases[8]
    if order[0] == 1:
        bases = [[row, column] for column, row in bases]
    return gl.PaddedSharedLayout([[8192 // bits, padding]], bases, [], shape)
'''
"""`staggered` as a Gluon helper. `k_dim` is the dimension that the dot sums over, `rows` those of one instruction."""


def direct(shared: Padded, width: int, num_warps: int) -> Linear:
    """Who copies what directly to LDS, `width` elements at a time (`DIRECT_SOURCE`)."""
    own = width.bit_length() - 1
    lanes = own + WAVE.bit_length() - 1
    warps = lanes + num_warps.bit_length() - 1
    idle = ((0,) * len(shared.shape),) * max(warps - max(len(shared.offset_bases), lanes), 0)
    bases = shared.offset_bases
    return Linear(bases[:own] + bases[warps:], bases[own:lanes], bases[lanes:warps] + idle, (), shared.shape)


DIRECT_SOURCE = '''@gluon.constexpr_function
def direct_layout(shared, width, num_warps):
    """Who copies what directly to LDS: the lanes of a wave write side by side what lies there side by side.

    A slice, as copies took no other layout of threads but blocked ones before Triton 3.8.
    """
    own = width.bit_length() - 1
    warps = own + num_warps.bit_length() + 5
    bases = shared.offset_bases
    idle = [[0] * len(shared.shape)] * max(warps - len(bases), 0)
    parts = [bases[:own] + bases[warps:], bases[own : own + 6], bases[own + 6 : warps] + idle]
    kept, lanes, warps = [[basis + [0] for basis in part] for part in parts]
    return gl.SliceLayout(2, gl.DistributedLinearLayout(kept, lanes, warps, [], shared.shape + [1]))
'''
"""`direct` as a Gluon helper."""


# ---------------------------------------------------------------------------------------------------------- gfx1250


def spaced(shape: Sequence[int], order: Sequence[int], bits: int, k_dim: int) -> Padded:
    """The layout of a tile that is read as an operand of gfx1250's WMMA (`SPACED_SOURCE`)."""
    fast = order[0]
    padding = 16 if fast != k_dim and bits < 32 else _COPY // bits
    return Padded(((max(shape[fast], _BANKS // bits), padding),), _identity(shape, order), tuple(shape))


SPACED_SOURCE = '''@gluon.constexpr_function
def spaced_layout(shape, order, bits, k_dim):
    """LDS of an operand of WMMA: after each turn through the banks, rows start a read further."""
    fast = order[0]
    padding = 16 if fast != k_dim and bits < 32 else 128 // bits
    return gl.PaddedSharedLayout.with_identity_for([[max(shape[fast], 2048 // bits), padding]], shape, order)
'''
"""`spaced` as a Gluon helper."""


def lined(shape: Sequence[int], bits: int) -> Padded:
    """The layout of a tile that gfx1250's data mover copies, and no product reads (`LINED_SOURCE`)."""
    order = tuple(reversed(range(len(shape))))
    return Padded(((shape[-1], _COPY // bits),), _identity(shape, order), tuple(shape))


LINED_SOURCE = '''@gluon.constexpr_function
def lined_layout(shape, bits):
    """LDS of a tile that is copied as it is: each row starts a read further than the one before."""
    order = [len(shape) - 1 - dim for dim in range(len(shape))]
    return gl.PaddedSharedLayout.with_identity_for([[shape[-1], 128 // bits]], shape, order)
'''
"""`lined` as a Gluon helper."""


# ------------------------------------------------------------------------------------------------------------ source


_ORDERS = ((1, 0), (0, 1))

_Way = tuple[str, Callable[[int], Padded | None], str]


def _parts(tile: Tile, widths: Sequence[Width]) -> Iterator[tuple[str, tuple[int, int], Width, int]]:
    """What all of these formulas start with, as source and as values: order, width of an element, dimension of K."""
    for order, width, k_dim in product(_ORDERS if len(tile.names) == 2 else (), widths, (1, 0)):
        yield f"{tile.source}, {bracketed(order)}, {width.source}, k_dim={k_dim}", order, width, k_dim


def _deeper_parts(tile: Tile, widths: Sequence[Width]) -> Iterator[tuple[str, tuple[int, ...], Width, int]]:
    """The same of a tile with more dimensions, of which a product reads the last two."""
    rank = len(tile.names)
    order = tuple(reversed(range(rank)))
    for width, k_dim in product(widths if rank > 2 else (), (rank - 1, rank - 2)):
        yield f"{tile.source}, {bracketed(order)}, {width.source}, k_dim={k_dim}", order, width, k_dim


def _of_wmma(tile: Tile, widths: Sequence[Width]) -> Iterator[_Way]:
    """Ways to write memory for WMMA: text, what it gives under a launch, and the helper it calls."""

    def value(order: Sequence[int], width: Width, k_dim: int, index: int) -> Padded:
        return spaced(tile.shapes[index], order, width.values[index], k_dim)

    for text, order, width, k_dim in (*_parts(tile, widths), *_deeper_parts(tile, widths)):
        yield f"spaced_layout({text})", partial(value, order, width, k_dim), SPACED_SOURCE


def _of_mfma(tile: Tile, widths: Sequence[Width]) -> Iterator[_Way]:
    """Ways to write memory for MFMA, of which a thread reads 128 bits side by side, or less."""

    def value(order: tuple[int, int], width: Width, k_dim: int, rows: int, bits: int, index: int) -> Padded | None:
        k_width = bits // width.values[index]
        return staggered(tile.shapes[index], order, width.values[index], k_dim, k_width, rows)

    for bits, rows in product((128, 64), (32, 16)):
        for text, order, width, k_dim in _parts(tile, widths):
            source = f"staggered_layout({text}, k_width={width.under(bits)}, rows={rows})"
            yield source, partial(value, order, width, k_dim, rows, bits), STAGGERED_SOURCE


def _of_rows(tile: Tile, widths: Sequence[Width]) -> Iterator[_Way]:
    """Ways to write memory that no product reads."""
    for width in widths:

        def value(index: int, width: Width = width) -> Padded:
            return lined(tile.shapes[index], width.values[index])

        yield f"lined_layout({tile.source}, {width.source})", value, LINED_SOURCE


def padded_source(values: Sequence[Padded], tile: Tile, widths: Sequence[Width]) -> Written:
    """Padded memory as source that gives `values`, one a launch; `widths` are ways to say how wide elements are."""
    ways = (*_of_mfma(tile, widths), *_of_wmma(tile, widths), *_of_rows(tile, widths))
    return written(values, [Candidate(text, make, (helper,)) for text, make, helper in ways])


def direct_source(values: Sequence[Linear], tile: Tile, widths: Sequence[Width], warps: Sequence[int]) -> Written:
    """Who copies tiles directly, as source that gives `values`, one a launch."""

    def value(make: Callable[[int], Padded | None], bits: int, width: Width, index: int) -> Linear | None:
        shared = make(index)
        return None if shared is None else direct(shared, bits // width.values[index], warps[index])

    found = [
        Candidate(
            f"direct_layout({text}, {width.under(bits)}, gl.num_warps())",
            partial(value, make, bits, width),
            (helper, DIRECT_SOURCE),
        )
        for bits in _COPIES
        for width in widths
        for text, make, helper in _of_mfma(tile, [width])
    ]
    return written(values, found)
