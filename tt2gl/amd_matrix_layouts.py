"""Layouts of AMD's matrix instructions, MFMA and WMMA: accumulators as values, as formulas and as Gluon source.

The formulas are those of Triton's AccelerateAMDMatmul pass, in terms of the dot's extents and the number of warps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tt2gl.formulas import Candidate, Tile, Width, Written, bracketed, written
from tt2gl.ir.attributes import Attribute, DialectAttr

Bases = tuple[tuple[int, ...], ...]
"""Where the bits of a number lead in a tile of instructions, lowest bit first."""

_CHIPS = {
    "ttg.amd_mfma": {3: "cdna3", 4: "cdna4"},
    "ttg.amd_wmma": {1: "rdna3", 2: "rdna4", 3: "gfx1250"},
}


@dataclass(frozen=True)
class Mfma:
    """The accumulator of `mfma`: `gl.amd.AMDMFMALayout`."""

    version: int
    instr_shape: tuple[int, ...]
    transposed: bool
    warps_per_cta: tuple[int, ...]
    element_bitwidth: int = 32
    tiles_per_warp: tuple[int, ...] = ()

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source."""
        more = f", element_bitwidth={self.element_bitwidth}" * (self.element_bitwidth != 32)
        if self.tiles_per_warp:
            more += f", tiles_per_warp={bracketed(self.tiles_per_warp)}"
        return f"{alias}.{self._with(bracketed(self.instr_shape), bracketed(self.warps_per_cta))}{more})"

    def _with(self, instr: str, warps: str) -> str:
        return f"amd.AMDMFMALayout({self.version}, {instr}, {self.transposed}, {warps}"

    def written_with(self, warps: str, instr: str = "") -> str:
        """The layout with its warps, and the shape of its instruction, as other source."""
        literal = bracketed(self.warps_per_cta)
        text = self.source()
        made = f"gl.{self._with(instr or bracketed(self.instr_shape), warps)}"
        return made + text.removeprefix(f"gl.{self._with(bracketed(self.instr_shape), literal)}")


@dataclass(frozen=True)
class Wmma:
    """The accumulator of `wmma`: `gl.amd.AMDWMMALayout`, which tells warps by their bases since Triton 3.7."""

    version: int
    transposed: bool
    warp_bases: Bases
    reg_bases: Bases
    instr_shape: tuple[int, ...]
    rank: int = 2

    def source(self, alias: str = "gl") -> str:
        """The layout as Gluon source: by numbers of warps where it can be, which every Triton takes."""
        counts = [1] * self.rank
        for basis in self.warp_bases:
            counts[basis.index(max(basis))] *= 2
        if not self.reg_bases and self.transposed and self.warp_bases == warp_bases(counts):
            return self.written_with(bracketed(counts))
        warps, registers = (bracketed([list(basis) for basis in part]) for part in (self.warp_bases, self.reg_bases))
        more = f"{registers}, {bracketed(self.instr_shape)}, rank={self.rank}"
        return f"{alias}.amd.AMDWMMALayout({self.version}, {self.transposed}, {warps}, {more})"

    def written_with(self, warps: str, depth: str = "") -> str:
        """The layout with the number of warps along each side, and the instruction's depth, as other source."""
        shape = f"[{bracketed(self.instr_shape[:2])[1:-1]}, {depth or self.instr_shape[2]}]"
        return f"wmma_layout({self.version}, {warps}, {shape})"


def read_mfma(attribute: Attribute) -> Mfma | None:
    """The accumulator that an encoding is; None for another encoding, and for a tile of several programs."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.amd_mfma" or attribute.get("CGALayout"):
        return None
    tiles = tuple(attribute.get("tilesPerWarp", ()))
    return Mfma(
        attribute.get("version"),
        tuple(attribute.get("instrShape")),
        bool(attribute.get("isTransposed")),
        tuple(attribute.get("warpsPerCTA")),
        attribute.get("elementBitWidth", 32),
        tiles if any(tile > 1 for tile in tiles) else (),
    )


def read_wmma(attribute: Attribute) -> Wmma | None:
    """The accumulator that an encoding is; None for another encoding, and for a tile of several programs."""
    if not isinstance(attribute, DialectAttr) or attribute.name != "ttg.amd_wmma" or attribute.get("CGALayout"):
        return None
    counts, bases = attribute.get("warpsPerCTA"), dict(attribute.get("ctaLayout", ()))
    warps = warp_bases(counts) if counts else tuple(map(tuple, bases.get("warp", ())))
    rank = len(counts or (*warps, (0, 0))[0])
    registers = tuple(map(tuple, bases.get("register", ())))
    shape = tuple(attribute.get("instrShape", (16, 16, 16)))
    return Wmma(attribute.get("version"), bool(attribute.get("isTranspose")), warps, registers, shape, rank)


def chip_of(attribute: Attribute) -> str:
    """The module of `gl.amd` that has the instruction of an accumulator; "" for another vendor's."""
    if not isinstance(attribute, DialectAttr):
        return ""
    return _CHIPS.get(attribute.name, {}).get(attribute.get("version"), "")


def warp_bases(counts: Sequence[int]) -> Bases:
    """The bases of warps that stand side by side along the last dimension first."""

    def bases() -> Iterator[tuple[int, ...]]:
        for dim in reversed(range(len(counts))):
            for bit in range(counts[dim].bit_length() - 1):
                yield tuple(1 << bit if place == dim else 0 for place in range(len(counts)))

    return tuple(bases())


def tile_warps(shape: Sequence[int], num_warps: int, instr: Sequence[int]) -> tuple[int, ...]:
    """The warps along each side of a dot that stands alone (`TILE_WARPS_SOURCE`)."""
    rows, columns = shape[0] // instr[0], shape[1] // instr[1]
    m, n = 1, 1
    while m * n < num_warps:
        if rows // 2 // m >= columns // n and m < rows:
            m *= 2
        else:
            n *= 2
    return (n, m) if n > columns else (m, n)


TILE_WARPS_SOURCE = '''@gluon.constexpr_function
def tile_warps(shape, num_warps, instr):
    """Warps along each side of a product: they are doubled along the side where a warp has more instructions left."""
    rows, columns = shape[0] // instr[0], shape[1] // instr[1]
    m, n = 1, 1
    while m * n < num_warps:
        if rows // 2 // m >= columns // n and m < rows:
            m *= 2
        else:
            n *= 2
    return [n, m] if n > columns else [m, n]
'''
"""`tile_warps` as a Gluon helper (warpsPerTile)."""


def row_warps(shape: Sequence[int], num_warps: int, instr: Sequence[int]) -> tuple[int, ...]:
    """The warps along each side of a dot that ends a chain (`ROW_WARPS_SOURCE`)."""
    m = min(num_warps, -(-shape[0] // instr[0]))
    return m, num_warps // m


ROW_WARPS_SOURCE = '''@gluon.constexpr_function
def row_warps(shape, num_warps, instr):
    """Warps along each side of a product of another: along the rows, those left over side by side."""
    m = min(num_warps, -(-shape[0] // instr[0]))
    return [m, num_warps // m]
'''
"""`row_warps` as a Gluon helper."""


def mfma_shape(shape: Sequence[int], depth: int) -> tuple[int, int, int]:
    """The instruction of a dot by its smaller side; `depth` is that of one row (`MFMA_SHAPE_SOURCE`)."""
    side = 32 if min(shape[-2:]) >= 32 else 16
    return side, side, depth // side


MFMA_SHAPE_SOURCE = '''@gluon.constexpr_function
def mfma_shape(shape, depth):
    """The instruction of a product: 32x32, or for a side of 16 that and twice as deep; `depth` is that of one row."""
    side = 32 if min(shape[-2], shape[-1]) >= 32 else 16
    return [side, side, depth // side]
'''
"""`mfma_shape` as a Gluon helper (chooseMfmaInstruction)."""

WMMA_SOURCE = '''@gluon.constexpr_function
def wmma_layout(version, warps, instr_shape):
    """Accumulator of `wmma`, by the number of warps along each side; those along the last side come first."""
    if "warps_per_cta" in gl.amd.AMDWMMALayout.__dataclass_fields__:  # before Triton 3.7
        return gl.amd.AMDWMMALayout(version, True, warps, instr_shape)
    rank, bases = len(warps), []
    for dim in reversed(range(rank)):
        for bit in range(warps[dim].bit_length() - 1):
            bases.append([1 << bit if place == dim else 0 for place in range(rank)])
    return gl.amd.AMDWMMALayout(version, True, bases, [], instr_shape, rank=rank)
'''
"""What a layout of `wmma` is written by, on every Triton."""


def mfma_source(
    values: Sequence[Mfma],
    tile: Tile,
    warps: Sequence[int],
    widths: Sequence[Width] = (),
    inner: Width | None = None,
) -> Written:
    """An accumulator of `mfma` as source that gives `values`, one a launch; see `matrix_layouts.mma_source`.

    `inner`: the extent that is added up along, which may be less than the instruction's usual one.
    """
    common = max(values, key=values.count)
    ways = list(_warps(tile, warps, bracketed(common.instr_shape[:2])))
    made = [
        Candidate(common.written_with(text), _mfma(common, counts, lambda i: common.instr_shape), helpers)
        for text, counts, helpers in ways
    ]
    depths = [value.instr_shape[0] * value.instr_shape[2] for value in values]
    for depth in (*_depths(depths, widths), *_no_deeper(depths, inner)):
        instr = f"mfma_shape({tile.source}, {depth.source})"

        def shape(index: int, depth: Width = depth) -> tuple[int, ...]:
            return mfma_shape(tile.shapes[index], depth.values[index])

        made += [
            Candidate(common.written_with(text, instr), _mfma(common, counts, shape), (*helpers, MFMA_SHAPE_SOURCE))
            for text, counts, helpers in _warps(tile, warps, instr)
        ]
    return written(values, made)


_Counts = Callable[[int, Sequence[int]], tuple[int, ...]]


def _mfma(common: Mfma, counts: _Counts, shape: Callable[[int], tuple[int, ...]]) -> Callable[[int], Mfma]:
    def value(index: int) -> Mfma:
        instr = shape(index)
        made = counts(index, instr)
        return Mfma(common.version, instr, common.transposed, made, common.element_bitwidth, common.tiles_per_warp)

    return value


def _depths(depths: Sequence[int], widths: Sequence[Width]) -> Iterator[Width]:
    """Ways to say how deep an instruction of one row were."""
    if len(set(depths)) == 1:
        yield Width(str(depths[0]), tuple(depths))
        return
    for width in widths:
        known = dict(zip(width.values, depths, strict=True))
        products = {bits * depth for bits, depth in known.items()}
        if [known[bits] for bits in width.values] != list(depths):
            # Elements of one width are multiplied by instructions of several depths.
            continue
        if len(products) == 1:
            yield Width(width.under(products.pop()), tuple(depths))
        elif len(known) == 2:
            (bits, depth), (_, other) = known.items()
            yield Width(f"{depth} if {width.source} == {bits} else {other}", tuple(depths))


def _no_deeper(depths: Sequence[int], inner: Width | None) -> Iterator[Width]:
    """How deep an instruction of one row were that is no deeper than a product of few."""
    most = max(depths)
    if inner is not None and tuple(min(most, 16 * extent) for extent in inner.values) == tuple(depths):
        yield Width(f"min({most}, 16 * {inner.source})", tuple(depths))


def wmma_source(
    values: Sequence[Wmma],
    tile: Tile,
    warps: Sequence[int],
    widths: Sequence[Width] = (),
    inner: Width | None = None,
) -> Written:
    """An accumulator of `wmma` as source that gives `values`, one a launch; `inner` as in `mfma_source`."""
    # The encoding of a single warp does not tell the rank.
    values = [replace(value, rank=len(tile.names)) for value in values]
    common = max(values, key=values.count)

    def made(counts: _Counts, depth: Width) -> Callable[[int], Wmma]:
        def value(index: int) -> Wmma:
            instr = (*common.instr_shape[:2], depth.values[index])
            return Wmma(common.version, True, warp_bases(counts(index, instr)), (), instr, len(tile.names))

        return value

    ways = list(_warps(tile, warps, bracketed(common.instr_shape[:2])))
    depths = [value.instr_shape[2] for value in values]
    most = max(depths)
    said = [Width("", (common.instr_shape[2],) * len(values)), *_depths(depths, widths)]
    if inner is not None:
        said.append(Width(f"min({most}, {inner.source})", tuple(min(most, extent) for extent in inner.values)))
    found = [
        Candidate(common.written_with(text, depth.source), made(counts, depth), (WMMA_SOURCE, *helpers))
        for depth in said
        for text, counts, helpers in ways
    ]
    return written(values, found)


def _warps(tile: Tile, warps: Sequence[int], instr: str) -> Iterator[tuple[str, _Counts, tuple[str, ...]]]:
    """Ways to say how many warps stand along each side: the text, what it gives, the helpers that it calls."""
    rank = len(tile.names)
    rest = (1,) * (rank - 1)
    call = f"({tile.source}, gl.num_warps(), {instr})"
    along = f"[gl.num_warps(), {', '.join(map(str, rest))}]"
    if rank == 3:
        yield along, lambda i, _: (warps[i], *rest), ()
        return
    yield f"tile_warps{call}", lambda i, shape: tile_warps(tile.shapes[i], warps[i], shape), (TILE_WARPS_SOURCE,)
    yield along, lambda i, _: (warps[i], *rest), ()
    yield "[1, gl.num_warps()]", lambda i, _: (1, warps[i]), ()
    yield f"row_warps{call}", lambda i, shape: row_warps(tile.shapes[i], warps[i], shape), (ROW_WARPS_SOURCE,)


EXCHANGED_SOURCE = '''@gluon.constexpr_function
def exchanged(product, layout, bits):
    """A product's layout for a store: of 16 bits, lanes exchange 4 elements for 8 side by side, without LDS."""
    step = min([column for _, column in layout.reg_bases if column in (8, 16)], default=0)
    if bits != 16 or step == 0:
        return product
    places = {4: step, step: 4}
    parts = layout.reg_bases, layout.lane_bases, layout.warp_bases, layout.block_bases
    made = [[[row, places.get(column, column)] for row, column in part] for part in parts]
    return gl.DistributedLinearLayout(*made, layout.shape)
'''
"""What a 16-bit product of CDNA4 is stored in (Triton's `chooseMfmaLikeStoreLayout`)."""
