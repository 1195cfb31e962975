"""Layouts of matrix instructions: accumulators and operands as values, as formulas and as Gluon source.

The formulas are those of Triton's AccelerateMatmul and ConvertTritonToTritonGPU passes, in terms of the dot's extents
and the number of warps. Which instruction a dot becomes is not said here: that is read off Triton's own passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tt2gl.formulas import Candidate, Tile, Width, Written, bracketed, numbers, written
from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.layouts import Blocked

Cga = tuple[tuple[int, ...], ...]
"""How the programs of a cluster lie in a tile: a basis vector a bit of the program's number. Empty for one program."""


def cga_source(cga: Cga) -> str:
    """The last argument of the layout of a cluster's tile; nothing for one program's."""
    return f", cga_layout={bracketed([list(basis) for basis in cga])}" if cga else ""


@dataclass(frozen=True)
class Mma:
    """The accumulator of `mma_v2` (version 2) or of `warpgroup_mma` (3): `gl.NVMMADistributedLayout`."""

    version: tuple[int, int]
    warps_per_cta: tuple[int, ...]
    instr_shape: tuple[int, ...]
    cga_layout: Cga = ()

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        parts = ", ".join(map(bracketed, (self.version, self.warps_per_cta, self.instr_shape)))
        return f"{alias}.NVMMADistributedLayout({parts}{cga_source(self.cga_layout)})"


@dataclass(frozen=True)
class Operand:
    """An operand in registers: `gl.DotOperandLayout`. `k_width` is 0 where the dot is left to multiply-adds."""

    index: int
    parent: Mma | Blocked
    k_width: int

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        return f"{alias}.DotOperandLayout({self.index}, {self.parent.source(alias)}, k_width={self.k_width})"


def read_cga(attribute: DialectAttr) -> Cga:
    """How the programs of a cluster lie, as an encoding has it."""
    return tuple(map(tuple, attribute.get("CGALayout", ())))


def read_blocked(attribute: Attribute) -> Blocked | None:
    """A blocked layout; None for another encoding, and for a tile of several programs."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.blocked" or read_cga(attribute):
        return None
    parts = (attribute.get(name) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"))
    return Blocked(*map(tuple, parts))


def read_mma(attribute: Attribute) -> Mma | None:
    """The accumulator that an encoding is; None for another encoding."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.nvidia_mma":
        return None
    version = (attribute.get("versionMajor"), attribute.get("versionMinor"))
    return Mma(version, attribute.get("warpsPerCTA"), attribute.get("instrShape"), read_cga(attribute))


def read_operand(attribute: Attribute) -> Operand | None:
    """The operand that an encoding is; None for another encoding."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.dot_op":
        return None
    parent = read_mma(attribute.get("parent")) or read_blocked(attribute.get("parent"))
    return None if parent is None else Operand(attribute.get("opIdx"), parent, attribute.get("kWidth", 0))


def mma_v2(shape: Sequence[int], num_warps: int, rows: int = 16) -> Mma:
    """The accumulator of an `mma_v2` that stands alone (`MMA_V2_SOURCE`)."""
    m, n = 1, 1
    while m * n < num_warps:
        if max(shape[0] // (16 * m), 1) >= shape[1] // (8 * n):
            m *= 2
        else:
            n *= 2
    return Mma((2, 0), (m, n), (rows, 8))


MMA_V2_SOURCE = '''@gluon.constexpr_function
def mma_v2_layout(shape, num_warps, rows=16):
    """Accumulator of `mma_v2`: the warps are doubled along the side where a warp has more 16x8 instructions left."""
    m, n = 1, 1
    while m * n < num_warps:
        if max(shape[0] // (16 * m), 1) >= shape[1] // (8 * n):
            m *= 2
        else:
            n *= 2
    return gl.NVMMADistributedLayout([2, 0], [m, n], [rows, 8])
'''
"""`mma_v2` as a Gluon helper (warpsPerTileV2). The rows are 8 for some products of doubles."""


def batched_mma_v2(shape: Sequence[int], num_warps: int, rows: int = 16) -> Mma:
    """The accumulator of a batched `mma_v2` (`BATCHED_MMA_V2_SOURCE`)."""
    batch = min(shape[0], num_warps)
    return Mma((2, 0), (batch, *mma_v2(shape[1:], num_warps // batch).warps_per_cta), (1, rows, 8))


BATCHED_MMA_V2_SOURCE = '''@gluon.constexpr_function
def batched_mma_v2_layout(shape, num_warps, rows=16):
    """Accumulator of a batched `mma_v2`: warps over the batch first, what is left of them as for one product."""
    batch = min(shape[0], num_warps)
    warps = mma_v2_layout(shape[1:], num_warps // batch).warps_per_cta
    return gl.NVMMADistributedLayout([2, 0], [batch, *warps], [1, rows, 8])
'''
"""`batched_mma_v2` as a Gluon helper, which calls `MMA_V2_SOURCE`."""


def wgmma(shape: Sequence[int], num_warps: int, bits: int, widest: int = 256) -> Mma:
    """The accumulator of a `warpgroup_mma` that stands alone (`WGMMA_SOURCE`)."""
    m = min(shape[0] // 16, num_warps)
    n = num_warps // m
    return Mma((3, 0), (m, n), (16, min(max(shape[1] // n, 8), widest), 256 // bits))


WGMMA_SOURCE = '''@gluon.constexpr_function
def wgmma_layout(shape, num_warps, bits, widest=256):
    """Accumulator of `warpgroup_mma`: a warp every 16 rows; those left over stand side by side along N."""
    m = min(shape[0] // 16, num_warps)
    n = num_warps // m
    return gl.NVMMADistributedLayout([3, 0], [m, n], [16, min(max(shape[1] // n, 8), widest), 256 // bits])
'''
"""`wgmma` as a Gluon helper (warpsPerTileV3, mmaVersionToInstrShape). Instructions of int8 are half as wide at most."""


def chained_wgmma(shape: Sequence[int], num_warps: int, bits: int) -> Mma:
    """The accumulator of a `warpgroup_mma` that another dot reads (`CHAINED_WGMMA_SOURCE`)."""
    n = max(num_warps * 16 // shape[0], 1)
    return Mma((3, 0), (num_warps, 1), (16, min(max(shape[1] // n, 8), 256), 256 // bits))


CHAINED_WGMMA_SOURCE = '''@gluon.constexpr_function
def chained_wgmma_layout(shape, num_warps, bits):
    """Accumulator of a `warpgroup_mma` that feeds another: all warps along the rows, so that no row is split."""
    n = max(num_warps * 16 // shape[0], 1)
    return gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, min(max(shape[1] // n, 8), 256), 256 // bits])
'''
"""`chained_wgmma` as a Gluon helper."""


def fma(shape: Sequence[int], num_warps: int, lanes: int = 32) -> Blocked:
    """The accumulator of a dot that no matrix instruction serves (`fma_source`)."""
    rank, each = len(shape), math.prod(shape) // (num_warps * lanes)
    side = 4 if each >= 16 else 2 if each >= 4 else 1
    size, threads, warps = [1] * (rank - 2) + [side, side], [1] * rank, [1] * rank
    for dim in reversed(range(rank)):
        threads[dim] = min(lanes, max(shape[dim] // size[dim], 1))
        lanes //= threads[dim]
        warps[dim] = min(num_warps, max(shape[dim] // (size[dim] * threads[dim]), 1))
        num_warps //= warps[dim]
    threads[0] *= lanes
    warps[0] *= num_warps
    return Blocked(tuple(size), tuple(threads), tuple(warps), tuple(reversed(range(rank))))


def fma_source(lanes: int) -> str:
    """`fma` as a Gluon helper (TritonDotPattern)."""
    return f'''@gluon.constexpr_function
def fma_layout(shape, num_warps, lanes={lanes}):
    """Accumulator of a dot of multiply-adds: up to 4x4 elements a thread, then lanes and warps, rows last."""
    rank, elements = len(shape), 1
    for extent in shape:
        elements *= extent
    each = elements // (num_warps * lanes)
    side = 4 if each >= 16 else 2 if each >= 4 else 1
    size, threads, warps = [1] * (rank - 2) + [side, side], [1] * rank, [1] * rank
    for dim in reversed(range(rank)):
        threads[dim] = min(lanes, max(shape[dim] // size[dim], 1))
        lanes //= threads[dim]
        warps[dim] = min(num_warps, max(shape[dim] // (size[dim] * threads[dim]), 1))
        num_warps //= warps[dim]
    threads[0] *= lanes
    warps[0] *= num_warps
    return gl.BlockedLayout(size, threads, warps, list(reversed(range(rank))))
'''


def mma_source(
    values: Sequence[Mma],
    tile: Tile,
    warps: Sequence[int],
    widths: Sequence[Width] = (),
    last: Tile | None = None,
) -> Written:
    """An accumulator as source that gives `values`, one a launch.

    `tile` is the accumulator's, `warps` the number of warps of each launch, `widths` ways to say how wide the elements
    of the operands are (numbers are tried without being told). Where the dot is one of a chain, `last` is the tile of
    the last dot of that chain: Triton lays them all out alike, by that one.
    """
    version = max((value.version[0] for value in values), key=[value.version[0] for value in values].count)
    if version == 2:
        return written(values, _v2_candidates(values, tile, warps, last))
    bits = tuple(256 // value.instr_shape[-1] for value in values)
    return written(values, _v3_candidates(tile, warps, (*numbers(bits), *widths), last is not None))


def _v2_candidates(
    values: Sequence[Mma], tile: Tile, warps: Sequence[int], last: Tile | None
) -> Sequence[Candidate[Mma]]:
    """Ways to write accumulators of `mma_v2`: those of a chain inline first, those alone by the formula first."""
    (rows, *_) = numbers([value.instr_shape[-2] for value in values])
    height = rows.values[0]
    instr = (*(1 for _ in tile.names[2:]), height, 8)
    ones = [1] * (len(instr) - 1)
    more = "" if height == 16 else f", rows={height}"

    def inline(order: Sequence[str], at: Sequence[int]) -> Candidate[Mma]:
        text = f"gl.NVMMADistributedLayout([2, 0], {bracketed(order)}, {bracketed(instr)})"
        return Candidate(text, lambda i: Mma((2, 0), tuple(warps[i] if one else 1 for one in at), instr))

    along_m = inline(("gl.num_warps()", *map(str, ones)), (1, *(0 for _ in ones)))
    if len(instr) == 3:
        text = f"batched_mma_v2_layout({tile.source}, gl.num_warps(){more})"
        helpers = (MMA_V2_SOURCE, BATCHED_MMA_V2_SOURCE)
        return along_m, Candidate(text, lambda i: batched_mma_v2(tile.shapes[i], warps[i], height), helpers)
    along_n = inline(("1", "gl.num_warps()"), (0, 1))
    text = f"mma_v2_layout({tile.source}, gl.num_warps(){more})"
    alone = Candidate(text, lambda i: mma_v2(tile.shapes[i], warps[i], height), (MMA_V2_SOURCE,))
    if last is None:
        return alone, along_m, along_n
    m, n = last.names
    choice = f"[gl.num_warps(), 1] if {m} >= {n} else [1, gl.num_warps()]"
    text = f"gl.NVMMADistributedLayout([2, 0], {choice}, {bracketed(instr)})"

    def chained(index: int) -> Mma | None:
        high, wide = last.shapes[index]
        return (along_m if high >= wide else along_n).value(index)

    return along_m, along_n, Candidate(text, chained), alone


def _v3_candidates(
    tile: Tile, warps: Sequence[int], widths: Sequence[Width], chained: bool
) -> Sequence[Candidate[Mma]]:
    """Ways to write accumulators of `warpgroup_mma`: inline, then by the formulas."""
    inline = [_v3_inline(tile, warps, width) for width in widths]
    alone, rows = (WGMMA_SOURCE,), (CHAINED_WGMMA_SOURCE,)
    formulas: list[Candidate[Mma]] = []
    for width in widths:
        bits, call = width.values, f"wgmma_layout({tile.source}, gl.num_warps(), {width.source}"
        whole = Candidate(f"{call})", _under(wgmma, tile, warps, bits), alone)
        half = Candidate(f"{call}, widest=128)", _under(partial(wgmma, widest=128), tile, warps, bits), alone)
        along = Candidate(f"chained_{call})", _under(chained_wgmma, tile, warps, bits), rows)
        formulas += [along, whole, half] if chained else [whole, half, along]
    return inline + formulas


def _v3_inline(tile: Tile, warps: Sequence[int], width: Width) -> Candidate[Mma]:
    """All warps along the rows, one instruction as wide as the tile."""

    def value(index: int) -> Mma:
        shape = (16, tile.shapes[index][1], 256 // width.values[index])
        return Mma((3, 0), (warps[index], 1), shape)

    instr = f"[16, {tile.names[1]}, {width.under(256)}]"
    return Candidate(f"gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], {instr})", value)


def _under(
    formula: Callable[[Sequence[int], int, int], Mma], tile: Tile, warps: Sequence[int], bits: Sequence[int]
) -> Callable[[int], Mma | None]:
    """A formula of the tile, the number of warps and the width, as what it gives under a launch.

    It gives nothing for fewer rows than a warp has: other launches of the kernel may have such tiles.
    """
    return lambda index: formula(tile.shapes[index], warps[index], bits[index]) if tile.shapes[index][0] >= 16 else None


def fma_layout_source(values: Sequence[Blocked], tile: Tile, warps: Sequence[int], lanes: int = 32) -> Written:
    """The accumulator of a dot of multiply-adds as source that gives `values`, one a launch."""
    text = f"fma_layout({tile.source}, gl.num_warps())"
    formula = Candidate(text, lambda i: fma(tile.shapes[i], warps[i], lanes), (fma_source(lanes),))
    return written(values, [formula])


TURNED_SOURCE = '''@gluon.constexpr_function
def turned(layout):
    """The layout of a matrix transposed, by that of the matrix."""
    if isinstance(layout, gl.BlockedLayout):
        parts = layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta
        return gl.BlockedLayout(*[list(reversed(part)) for part in parts], [1 - dim for dim in layout.order])
    parts = layout.reg_bases, layout.lane_bases, layout.warp_bases, layout.block_bases
    swapped = [[list(reversed(basis)) for basis in part] for part in parts]
    return gl.DistributedLinearLayout(*swapped, list(reversed(layout.shape)))
'''
"""What a layout of a transposition is written by in Gluon."""
