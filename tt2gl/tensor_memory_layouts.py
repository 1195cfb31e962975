"""Layouts of tensor memory and of the registers that it is loaded into, as values, formulas and Gluon source.

A load from tensor memory takes few layouts. Triton's are linear ones; a blocked layout with the same bases says the
same in a line, and is accepted as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tt2gl.formulas import Candidate, Tile, Written, bracketed, written
from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.layouts import Blocked
from tt2gl.matrix_layouts import read_blocked, read_cga

Bases = tuple[tuple[int, ...], ...]
"""Where the bits of a number (register, lane, warp, program) lead in a tile, lowest bit first."""


@dataclass(frozen=True)
class TensorMemory:
    """A tile in tensor memory: `TensorMemoryLayout`, a name of Gluon's `nvidia.blackwell`."""

    block: tuple[int, int]
    col_stride: int
    two_ctas: bool = False

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source; the name is imported by itself, so `alias` changes nothing."""
        return f"TensorMemoryLayout({bracketed(self.block)}, col_stride={self.col_stride}{self._pair})"

    @property
    def _pair(self) -> str:
        return ", two_ctas=True" * self.two_ctas


@dataclass(frozen=True)
class Linear:
    """A layout by its bases: `gl.DistributedLinearLayout`."""

    registers: Bases
    lanes: Bases
    warps: Bases
    programs: Bases
    shape: tuple[int, ...]

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        bases = [bracketed([list(basis) for basis in part]) for part in (self.registers, self.lanes, self.warps)]
        programs = bracketed([list(basis) for basis in self.programs])
        return f"{alias}.DistributedLinearLayout({', '.join(bases)}, {programs}, {bracketed(self.shape)})"


def read_tensor_memory(attribute: Attribute) -> TensorMemory | None:
    """The tile that an encoding is; None for another encoding, and for a tile that is split over programs."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttng.tensor_memory_encoding":
        return None
    if attribute.get("CTASplitM", 1) * attribute.get("CTASplitN", 1) > 1 or read_cga(attribute):
        return None
    block = (attribute.get("blockM"), attribute.get("blockN"))
    return TensorMemory(block, attribute.get("colStride"), attribute.get("twoCTAs", False))


def read_linear(attribute: Attribute, shape: Sequence[int]) -> Linear | None:
    """The bases of a linear or blocked encoding of a tile; None for another encoding."""
    if (blocked := read_blocked(attribute)) is not None:
        return linear_of(blocked, shape)
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.linear":
        return None
    registers, lanes, warps, programs = (attribute.get(name) for name in ("register", "lane", "warp", "block"))
    return Linear(registers, lanes, warps, programs, tuple(shape))


def packed_rows(attribute: Attribute, shape: Sequence[int]) -> DialectAttr | None:
    """The encoding of bytes with two neighbours of a row each, that unpack to a tile of an encoding.

    None where a thread does not have them side by side.
    """
    layout = read_linear(attribute, shape)
    if layout is None or not layout.registers or layout.registers[0] != (0, 1):
        return None
    names = ("register", "lane", "warp", "block")
    parts = (layout.registers[1:], layout.lanes, layout.warps, layout.programs)
    if any(column % 2 for bases in parts for _, column in bases):
        return None
    halved = [tuple((row, column // 2) for row, column in bases) for bases in parts]
    return DialectAttr("ttg.linear", tuple(zip(names, halved, strict=True)))


def of_parts(part: DialectAttr, shape: Sequence[int], whole: Sequence[int]) -> DialectAttr | None:
    """The encoding of a tile of which a thread has as much of each part, `shape` columns at a time, as `part` says."""
    layout = read_linear(part, shape)
    if layout is None:
        return None
    again = (whole[-1] // shape[-1]).bit_length() - 1
    registers = (*layout.registers, *((0, shape[-1] << bit) for bit in range(again)))
    bases = (registers, layout.lanes, layout.warps, layout.programs)
    return DialectAttr("ttg.linear", tuple(zip(("register", "lane", "warp", "block"), bases, strict=True)))


def linear_of(layout: Blocked, shape: Sequence[int]) -> Linear:
    """The bases of a blocked layout of a tile that is at least as large as what its threads cover once."""
    done = [1] * len(shape)

    def bases(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
        for dim in layout.order:
            end = done[dim] * extents[dim]
            while done[dim] < end:
                yield tuple(done[dim] if place == dim else 0 for place in range(len(shape)))
                done[dim] *= 2

    registers = tuple(bases(layout.size_per_thread))
    lanes, warps = tuple(bases(layout.threads_per_warp)), tuple(bases(layout.warps_per_cta))
    again = tuple(bases([extent // covered for extent, covered in zip(shape, done, strict=True)]))
    return Linear(registers + again, lanes, warps, (), tuple(shape))


def tensor_memory(shape: Sequence[int]) -> TensorMemory:
    """An accumulator or first operand of `tcgen05_mma` in tensor memory, of 32-bit columns (`TENSOR_MEMORY_SOURCE`)."""
    return TensorMemory((min(shape[0], 128), min(shape[1], 256)), 1)


TENSOR_MEMORY_SOURCE = '''@gluon.constexpr_function
def tensor_memory_layout(shape):
    """A tile in tensor memory: blocks of up to 128x256, as large as one `tcgen05_mma` makes them."""
    return TensorMemoryLayout([min(shape[0], 128), min(shape[1], 256)], col_stride=1)
'''
"""`tensor_memory` as a Gluon helper."""


def loaded(shape: Sequence[int], num_warps: int) -> Blocked:
    """The registers that a tile of tensor memory is loaded into (`LOADED_SOURCE`)."""
    rows, columns = (16, 2) if shape[0] == 64 else (32, 1)
    m = min(shape[0] // rows, num_warps)
    n = num_warps // m
    return Blocked((1, shape[1] // (columns * n)), (rows, columns), (m, n), (0, 1))


LOADED_SOURCE = '''@gluon.constexpr_function
def loaded_layout(shape, num_warps):
    """Registers of a tile of tensor memory: a lane has a row (of 64 rows: half a row), warps left over share rows."""
    rows, columns = (16, 2) if shape[0] == 64 else (32, 1)
    m = min(shape[0] // rows, num_warps)
    n = num_warps // m
    return gl.BlockedLayout([1, shape[1] // (columns * n)], [rows, columns], [m, n], [0, 1])
'''
"""`loaded` as a Gluon helper."""


def loaded_in_parts(shape: Sequence[int], num_warps: int, parts: int) -> Linear:
    """The registers of a tile that is loaded so many columns at a time (`LOADED_IN_PARTS_SOURCE`)."""
    part = (shape[0], shape[1] // parts)
    layout = linear_of(loaded(part, num_warps), part)
    again = tuple((0, part[1] << bit) for bit in range(parts.bit_length() - 1))
    return replace(layout, registers=layout.registers + again, shape=tuple(shape))


LOADED_IN_PARTS_SOURCE = '''@gluon.constexpr_function
def loaded_in_parts_layout(shape, num_warps, parts):
    """Registers of a tile of tensor memory that is taken apart by columns: a thread has as many of each part."""
    rows, columns = (16, 2) if shape[0] == 64 else (32, 1)
    m = min(shape[0] // rows, num_warps)
    n = num_warps // m
    part = shape[1] // parts
    own = part // (columns * n)

    def bases(dim, first, count):
        return [[first << bit, 0] if dim == 0 else [0, first << bit] for bit in range(count.bit_length() - 1)]

    registers = bases(1, 1, own) + bases(0, rows * m, shape[0] // (rows * m)) + bases(1, part, parts)
    lanes, warps = bases(0, 1, rows) + bases(1, own, columns), bases(0, rows, m) + bases(1, own * columns, n)
    return gl.DistributedLinearLayout(registers, lanes, warps, [], shape)
'''
"""`loaded_in_parts` as a Gluon helper."""


def loaded_for_rows(shape: Sequence[int], num_warps: int) -> Linear:
    """The registers that a tile is loaded into where each row is then reduced (`LOADED_FOR_ROWS_SOURCE`)."""
    if shape[0] != 128 or num_warps != 8:
        return linear_of(loaded(shape, num_warps), shape)
    half = shape[1] // 2
    registers = tuple((0, 1 << bit) for bit in range(half.bit_length() - 1))
    return Linear(registers, ((1, 0), (2, 0), (4, 0), (8, 0), (0, half)), ((32, 0), (64, 0), (16, 0)), (), tuple(shape))


LOADED_FOR_ROWS_SOURCE = '''@gluon.constexpr_function
def loaded_for_rows_layout(shape, num_warps):
    """Registers of a tile of tensor memory whose rows are reduced: eight warps split none of 128 rows among them."""
    if shape[0] != 128 or num_warps != 8:
        return loaded_layout(shape, num_warps)
    half = shape[1] // 2
    registers = [[0, 1 << bit] for bit in range(half.bit_length() - 1)]
    lanes, warps = [[1, 0], [2, 0], [4, 0], [8, 0], [0, half]], [[32, 0], [64, 0], [16, 0]]
    return gl.DistributedLinearLayout(registers, lanes, warps, [], shape)
'''
"""`loaded_for_rows` as a Gluon helper (getTmemLoadLayoutSplitLongM), which calls `LOADED_SOURCE`."""


def scales(shape: Sequence[int], num_warps: int) -> Linear:
    """The registers that scales of 32 rows or more are put into tensor memory from (`SCALES_SOURCE`)."""
    columns = [(0, 1 << bit) for bit in range(shape[1].bit_length() - 1)]
    rows = [(32 << bit, 0) for bit in range(shape[0].bit_length() - 6)] or [(0, 0)]
    bases = [*columns[:2], *rows, *columns[2:]]
    own = len(bases) - (num_warps // 4).bit_length() + 1
    lanes = tuple((1 << bit, 0) for bit in range(5))
    return Linear(tuple(bases[:own]), lanes, ((0, 0), (0, 0), *bases[own:]), (), tuple(shape))


SCALES_SOURCE = '''@gluon.constexpr_function
def scales_layout(shape, num_warps):
    """Registers of scales for tensor memory: a lane has every 32nd row; four warps hold the same, more share them."""
    columns = [[0, 1 << bit] for bit in range(shape[1].bit_length() - 1)]
    rows = [[32 << bit, 0] for bit in range(shape[0].bit_length() - 6)] or [[0, 0]]
    bases = columns[:2] + rows + columns[2:]
    own = len(bases) - (num_warps // 4).bit_length() + 1
    lanes, warps = [[1 << bit, 0] for bit in range(5)], [[0, 0], [0, 0]] + bases[own:]
    return gl.DistributedLinearLayout(bases[:own], lanes, warps, [], shape)
'''
"""`scales` as a Gluon helper."""


def tensor_memory_source(values: Sequence[TensorMemory], tile: Tile) -> Written:
    """A tile of tensor memory as source that gives `values`, one a launch."""
    rows, columns = tile.names

    def one_block(index: int) -> TensorMemory:
        high, wide = tile.shapes[index]
        return TensorMemory((high, wide), 1)

    def of_128_rows(index: int) -> TensorMemory:
        return TensorMemory((128, tile.shapes[index][1]), 1)

    formula = Candidate(
        f"tensor_memory_layout({tile.source})", lambda i: tensor_memory(tile.shapes[i]), (TENSOR_MEMORY_SOURCE,)
    )
    inline = [
        Candidate(f"TensorMemoryLayout([{rows}, {columns}], col_stride=1)", one_block),
        Candidate(f"TensorMemoryLayout([128, {columns}], col_stride=1)", of_128_rows),
    ]
    return written(values, [*inline, formula])


def loaded_source(values: Sequence[Linear], tile: Tile, warps: Sequence[int]) -> Written:
    """The registers that a tile of tensor memory is loaded into, as source that gives `values`, one a launch."""
    text = f"gl.BlockedLayout([1, {tile.names[-1]}], [32, 1], [gl.num_warps(), 1], [0, 1])"

    def by_rows(index: int) -> Linear | None:
        layout = Blocked((1, tile.shapes[index][-1]), (32, 1), (warps[index], 1), (0, 1))
        return linear_of(layout, tile.shapes[index]) if big(index) else None

    def by_formula(index: int) -> Linear | None:
        return linear_of(loaded(tile.shapes[index], warps[index]), tile.shapes[index]) if big(index) else None

    def big(index: int) -> bool:
        return len(tile.names) == 2 and tile.shapes[index][0] >= 64

    formula = Candidate(f"loaded_layout({tile.source}, gl.num_warps())", by_formula, (LOADED_SOURCE,))
    reduced = Candidate(
        f"loaded_for_rows_layout({tile.source}, gl.num_warps())",
        lambda i: loaded_for_rows(tile.shapes[i], warps[i]) if big(i) else None,
        (LOADED_SOURCE, LOADED_FOR_ROWS_SOURCE),
    )
    of_scales = Candidate(
        f"scales_layout({tile.source}, gl.num_warps())",
        lambda i: scales(tile.shapes[i], warps[i]) if len(tile.names) == 2 and tile.shapes[i][0] >= 32 else None,
        (SCALES_SOURCE,),
    )
    in_parts = [_in_parts(parts, tile, warps) for parts in (2, 4)]
    return written(values, [Candidate(text, by_rows), formula, reduced, of_scales, *in_parts])


def _in_parts(parts: int, tile: Tile, warps: Sequence[int]) -> Candidate[Linear]:
    """The registers of a tile that is loaded so many columns at a time, as source."""

    def by_formula(index: int) -> Linear | None:
        shape = tile.shapes[index]
        return loaded_in_parts(shape, warps[index], parts) if len(shape) == 2 and shape[0] >= 64 else None

    source = f"loaded_in_parts_layout({tile.source}, gl.num_warps(), {parts})"
    return Candidate(source, by_formula, (LOADED_IN_PARTS_SOURCE,))
