"""Layouts of AMD's shared memory (LDS): tiles swizzled by its banks, as values, formulas and Gluon source.

The formulas are those of Triton's composeSharedLayoutForOperand for MFMA and WMMA, and of its pass InThreadTranspose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from tt2gl.formulas import Candidate, Tile, Width, Written, bracketed, written
from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.layouts import Blocked
from tt2gl.matrix_layouts import read_blocked, read_cga
from tt2gl.shared_layouts import Swizzled
from tt2gl.tensor_memory_layouts import Linear, linear_of

BANKS = (32, 64)
_VEC_BITS = (64, 128, 32)
_PIECES = (4, 8, 2, 16, 1)


@dataclass(frozen=True)
class SharedLinear:
    """What each bit of an offset adds to an element's place: `gl.SharedLinearLayout`."""

    offset_bases: tuple[tuple[int, ...], ...]

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        return f"{alias}.SharedLinearLayout({[list(basis) for basis in self.offset_bases]})"


def read_rotating(attribute: Attribute, shape: Sequence[int]) -> SharedLinear | None:
    """The bases of a rotating layout of a tile (`ttg.amd_rotating_shared`); None for another encoding."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.amd_rotating_shared" or read_cga(attribute):
        return None
    vec, per_phase, max_phase = (attribute.get(name) for name in ("vec", "perPhase", "maxPhase"))
    return _rotated(shape, attribute.get("order"), vec, per_phase, max_phase)


def _rotated(shape: Sequence[int], order: Sequence[int], vec: int, per_phase: int, max_phase: int) -> SharedLinear:
    columns, rows = shape[order[0]], shape[order[1]]

    def at(row: int, column: int) -> tuple[int, ...]:
        return tuple({order[0]: column, order[1]: row}.get(dim, 0) for dim in range(len(shape)))

    bases = [at(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    for row in (1 << bit for bit in range(rows.bit_length() - 1)):
        phase = row // per_phase % max_phase ^ row // (per_phase * max_phase) % max_phase
        bases.append(at(row, vec * phase % columns))
    return SharedLinear(tuple(bases))


def _phases(shape: Sequence[int], order: Sequence[int], bits: int, vec: int, banks: int) -> tuple[int, int]:
    inner = shape[order[0]]
    per_phase = max(banks * 32 // bits // inner, 1)
    return per_phase, max(min(16 // per_phase, inner // vec), 1)


def banked(shape: Sequence[int], order: Sequence[int], bits: int, vec: int, banks: int = 32) -> Swizzled:
    """The layout of a tile that is read as an operand of MFMA or WMMA (`BANKED_SOURCE`)."""
    return Swizzled(vec, *_phases(shape, order, bits, vec, banks), tuple(order))


BANKED_SOURCE = '''@gluon.constexpr_function
def banked_layout(shape, order, bits, vec, banks=32):
    """Shared memory of an operand of a matrix instruction: pieces of `vec` elements of 16 rows in 16 places."""
    per_phase = max(banks * 32 // bits // shape[order[0]], 1)
    max_phase = max(min(16 // per_phase, shape[order[0]] // vec), 1)
    return gl.SwizzledSharedLayout(vec, per_phase, max_phase, order)
'''
"""`banked` as a Gluon helper."""


def rotating(shape: Sequence[int], order: Sequence[int], bits: int, vec: int) -> SharedLinear:
    """The layout of an operand whose threads turn their elements before they store them (`ROTATING_SOURCE`)."""
    return _rotated(shape, order, vec, *_phases(shape, order, bits, vec, 32))


ROTATING_SOURCE = '''@gluon.constexpr_function
def rotating_layout(shape, order, bits, vec):
    """Shared memory as of `banked_layout`, each 16 rows one piece further: for threads that write columns."""
    columns, rows = shape[order[0]], shape[order[1]]
    per_phase = max(1024 // bits // columns, 1)
    max_phase = max(min(16 // per_phase, columns // vec), 1)
    bases = [(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    for row in [1 << bit for bit in range(rows.bit_length() - 1)]:
        phase = (row // per_phase % max_phase) ^ (row // (per_phase * max_phase) % max_phase)
        bases.append((row, vec * phase % columns))
    return gl.SharedLinearLayout([[column, row] if order[0] == 0 else [row, column] for row, column in bases])
'''
"""`rotating` as a Gluon helper, of tiles of two dimensions."""


def turned_in_threads(layout: Blocked, shape: Sequence[int]) -> Linear:
    """A blocked layout of a tile with each thread's elements along the other dimension first (`IN_THREADS_SOURCE`)."""
    plain = linear_of(layout, shape)
    own = sum(size.bit_length() - 1 for size in layout.size_per_thread)
    tile = sorted(plain.registers[:own], key=lambda basis: basis[layout.order[0]] > 0)
    return Linear(tuple(tile) + plain.registers[own:], *(plain.lanes, plain.warps, (), tuple(shape)))


def is_turned(loaded: Attribute, stored: Attribute, shape: Sequence[int]) -> bool:
    """Whether a tile is stored in the layout that it is loaded in, turned in threads."""
    blocked = read_blocked(loaded)
    if blocked is None or not isinstance(stored, DialectAttr) or stored.name != "ttg.linear":
        return False
    turned = turned_in_threads(blocked, shape)
    return [stored.get(name) for name in ("register", "lane", "warp")] == [turned.registers, turned.lanes, turned.warps]


IN_THREADS_SOURCE = '''@gluon.constexpr_function
def turned_in_threads_layout(layout, shape):
    """A blocked layout of a tile with each thread's elements along the slower dimension first; any other as it is."""
    if not hasattr(layout, "order"):
        return layout
    fast, slow = layout.order
    done, parts = [1, 1], []
    for sizes in (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, None):
        bases = []
        for dim in [fast, slow] if parts else [slow, fast]:
            end = shape[dim] if sizes is None else done[dim] * sizes[dim]
            while done[dim] < end:
                bases.append([done[dim] * (each == dim) for each in (0, 1)])
                done[dim] *= 2
        parts.append(bases)
    registers, lanes, warps, again = parts
    return gl.DistributedLinearLayout(registers + again, lanes, warps, [], shape)
'''
"""`turned_in_threads` as a Gluon helper."""

TURNED_TILE = "turned_in_threads"
"""What a tile is put through on its way to memory that is written by columns."""

TURNED_TILE_SOURCE = '''@gluon.jit
def turned_in_threads(tile):
    """A tile whose elements each thread has in the order that it stores them in; none leaves its thread."""
    layout: gl.constexpr = turned_in_threads_layout(tile.type.layout, tile.type.shape)
    return gl.convert_layout(tile, layout, assert_trivial=True)
'''
"""`TURNED_TILE` as a Gluon helper, which calls `IN_THREADS_SOURCE`."""


AS_OPERAND_SOURCE = '''@gluon.jit
def as_operand(value, layout: gl.constexpr, order: gl.constexpr, banks: gl.constexpr = 0):
    """A value as a product's operand; where other warps have its elements, through shared memory in one piece."""
    shape: gl.constexpr = value.type.shape
    here: gl.constexpr = gl.to_linear_layout(value.type.layout, shape)
    there: gl.constexpr = gl.to_linear_layout(layout, shape)
    if here.warp_bases == there.warp_bases:
        return gl.convert_layout(value, layout)
    else:
        bits: gl.constexpr = value.dtype.primitive_bitwidth
        pieces: gl.constexpr = banked_layout(shape, order, bits, layout.k_width, banks or 32)
        shared: gl.constexpr = pieces if banks else gl.SwizzledSharedLayout(1, 1, 1, order)
        return gl.allocate_shared_memory(value.dtype, shape, shared, value).load(layout)
'''
"""What puts a value into the registers of a product's operand (`words.AS_OPERAND`); it calls `BANKED_SOURCE`."""


def banked_source(values: Sequence[Swizzled], tile: Tile, widths: Sequence[Width]) -> Written:
    """Swizzled memory of AMD as source that gives `values`, one a launch; `widths`: how wide the elements are."""
    order = max((value.order for value in values), key=[value.order for value in values].count)
    plain = Swizzled(1, 1, 1, order)

    def value(vec: Width, width: Width, banks: int, index: int) -> Swizzled:
        return banked(tile.shapes[index], order, width.values[index], vec.values[index], banks)

    found = [Candidate(plain.source(), lambda _: plain)]
    for width, banks in product(widths, BANKS):
        for vec in _pieces(width):
            parts = f"{tile.source}, {bracketed(order)}, {width.source}, {vec.source}"
            text = f"banked_layout({parts}{f', banks={banks}' * (banks != BANKS[0])})"
            found.append(Candidate(text, partial(value, vec, width, banks), (BANKED_SOURCE,)))
    return written(values, found)


def rotating_source(
    values: Sequence[SharedLinear], orders: Sequence[tuple[int, ...]], tile: Tile, widths: Sequence[Width]
) -> Written:
    """Rotating memory as source that gives `values`, one a launch, of those `orders`."""
    order = max(orders, key=list(orders).count)

    def value(vec: Width, width: Width, index: int) -> SharedLinear:
        return rotating(tile.shapes[index], order, width.values[index], vec.values[index])

    found = []
    for width in widths:
        for vec in _pieces(width):
            text = f"rotating_layout({tile.source}, {bracketed(order)}, {width.source}, {vec.source})"
            found.append(Candidate(text, partial(value, vec, width), (ROTATING_SOURCE,)))
    return written(values, found)


def _pieces(width: Width) -> list[Width]:
    """Ways to say how many elements a piece has: numbers, and what fills so many bits."""
    numbers = [Width(str(number), (number,) * len(width.values)) for number in _PIECES]
    filled = [
        Width(width.under(bits), tuple(bits // value for value in width.values))
        for bits in _VEC_BITS
        if max(width.values) <= bits and not width.source.isdigit()
    ]
    return [*numbers, *filled]
