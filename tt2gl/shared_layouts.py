"""Layouts of shared memory: swizzled tiles and those of tensor-core instructions, as values, formulas and Gluon source.

The formulas are those of the builders of Triton's SwizzledSharedEncodingAttr and NVMMASharedEncodingAttr, in terms of
the tile's extents, the order it is stored in and the width of its elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from tt2gl.formulas import Candidate, Tile, Width, Written, bracketed, written
from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.matrix_layouts import Cga, cga_source, read_cga


@dataclass(frozen=True)
class Swizzled:
    """Rows whose pieces of `vec` elements change places, by row: `gl.SwizzledSharedLayout`."""

    vec: int
    per_phase: int
    max_phase: int
    order: tuple[int, ...]
    cga_layout: Cga = ()

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        parts = f"{self.vec}, {self.per_phase}, {self.max_phase}, {bracketed(self.order)}"
        return f"{alias}.SwizzledSharedLayout({parts}{cga_source(self.cga_layout)})"


@dataclass(frozen=True)
class NvmmaShared:
    """A tile that wgmma, tcgen05 and TMA know: `gl.NVMMASharedLayout`."""

    swizzle_byte_width: int
    transposed: bool
    element_bitwidth: int
    rank: int = 2
    fp4_padded: bool = False
    cga_layout: Cga = ()

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        flags = ", transposed=True" * self.transposed + ", fp4_padded=True" * self.fp4_padded
        sizes = f"swizzle_byte_width={self.swizzle_byte_width}, element_bitwidth={self.element_bitwidth}"
        return f"{alias}.NVMMASharedLayout({sizes}, rank={self.rank}{flags}{cga_source(self.cga_layout)})"


def read_swizzled(attribute: Attribute) -> Swizzled | None:
    """The swizzled layout that an encoding is; None for another encoding."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.swizzled_shared":
        return None
    vec, per_phase, max_phase = (attribute.get(name) for name in ("vec", "perPhase", "maxPhase"))
    return Swizzled(vec, per_phase, max_phase, attribute.get("order"), read_cga(attribute))


def read_nvmma_shared(attribute: Attribute) -> NvmmaShared | None:
    """The layout for tensor-core instructions that an encoding is; None for another encoding."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.nvmma_shared":
        return None
    return NvmmaShared(
        attribute.get("swizzlingByteWidth"),
        attribute.get("transposed"),
        attribute.get("elementBitWidth"),
        attribute.get("rank", 2),
        attribute.get("fp4Padded", False),
        read_cga(attribute),
    )


def swizzled(
    shape: Sequence[int], order: Sequence[int], bits: int, k_dim: int, k_width: int, rows: int = 8
) -> Swizzled:
    """The layout of a tile that is read as an operand of `mma_v2` (`SWIZZLED_SOURCE`)."""
    vec, rows = (4 * k_width, rows) if order[0] == k_dim else (rows, 4 * k_width)
    per_phase = max(1024 // (bits * shape[order[0]]), 1)
    max_phase = max(min(rows, 1024 // (vec * bits)) // per_phase, 1)
    return Swizzled(vec, per_phase, max_phase, tuple(order))


SWIZZLED_SOURCE = '''@gluon.constexpr_function
def swizzled_layout(shape, order, bits, k_dim, k_width, rows=8):
    """Shared memory of an operand of `mma_v2`: what `ldmatrix` reads at once never falls twice into one bank."""
    vec, rows = (4 * k_width, rows) if order[0] == k_dim else (rows, 4 * k_width)
    per_phase = max(1024 // (bits * shape[order[0]]), 1)
    max_phase = max(min(rows, 1024 // (vec * bits)) // per_phase, 1)
    return gl.SwizzledSharedLayout(vec, per_phase, max_phase, order)
'''
"""`swizzled` as a Gluon helper. `k_dim` is the tile's dimension of the dot's sum; `rows` is 4 for some doubles."""


def nvmma_shared(shape: Sequence[int], bits: int, transposed: bool) -> NvmmaShared:
    """The layout of a tile that a tensor-core instruction reads: that of `gl.NVMMASharedLayout.get_default_for`."""
    outer = (*shape[1:], shape[0]) if transposed else tuple(shape)
    row = outer[-1] * bits // 8
    width = next((width for width in (128, 64, 32) if row % width == 0), 0)
    if len(shape) < 2 or math.prod(outer[:-1]) < 8:
        width = 0
    return NvmmaShared(width, transposed, bits, len(shape))


def swizzled_source(
    values: Sequence[Swizzled], tile: Tile, k_dims: Sequence[int], k_widths: Sequence[Width], widths: Sequence[Width]
) -> Written:
    """Swizzled memory as source that gives `values`, one a launch: a literal where nothing is swizzled.

    `tile` is one buffer's and `k_dims` its dimensions that the dot may sum over: 1 for the first operand and 0 for the
    second, and the other way round for a tile that is transposed once it is read. `k_widths` are ways to say the
    `k_width` of the operand's layout, `widths` ways to say how wide the stored elements are.
    """
    order = max((value.order for value in values), key=[value.order for value in values].count)
    plain = Swizzled(1, 1, 1, order)

    def value(k_dim: int, k_width: Width, width: Width, rows: int, index: int) -> Swizzled:
        return swizzled(tile.shapes[index], order, width.values[index], k_dim, k_width.values[index], rows)

    found = [Candidate(plain.source(), lambda _: plain)]
    for k_dim, rows, width, k_width in product(k_dims, (8, 4), widths, k_widths):
        parts = f"{tile.source}, {bracketed(order)}, {width.source}, k_dim={k_dim}, k_width={k_width.source}"
        text = f"swizzled_layout({parts}{', rows=4' * (rows == 4)})"
        found.append(Candidate(text, partial(value, k_dim, k_width, width, rows), (SWIZZLED_SOURCE,)))
    return written(values, found)


def nvmma_shared_source(values: Sequence[NvmmaShared], tile: Tile, dtypes: Sequence[Width]) -> Written:
    """Memory for tensor-core instructions as source that gives `values`, one a launch.

    `dtypes` are ways to say the type of the elements, with the width that each has under each launch.
    """
    transposed = max((value.transposed for value in values), key=[value.transposed for value in values].count)

    def value(dtype: Width, index: int) -> NvmmaShared:
        return nvmma_shared(tile.shapes[index], dtype.values[index], transposed)

    end = ", transposed=True" * transposed
    return written(
        values,
        [
            Candidate(
                f"gl.NVMMASharedLayout.get_default_for({tile.source}, {dtype.source}{end})", partial(value, dtype)
            )
            for dtype in dtypes
        ],
    )
