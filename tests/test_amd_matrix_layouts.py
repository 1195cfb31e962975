"""Layouts of MFMA and WMMA: read from encodings of each Triton, written as Gluon, one text for several launches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dots.written import evaluated, names
from tt2gl.amd_matrix_layouts import (
    MFMA_SHAPE_SOURCE,
    ROW_WARPS_SOURCE,
    TILE_WARPS_SOURCE,
    WMMA_SOURCE,
    Mfma,
    Wmma,
    chip_of,
    mfma_shape,
    mfma_source,
    read_mfma,
    read_wmma,
    row_warps,
    tile_warps,
    warp_bases,
    wmma_source,
)
from tt2gl.formulas import Tile, Width
from tt2gl.ir.attributes import DialectAttr

MFMA = DialectAttr(
    "ttg.amd_mfma", (("version", 3), ("warpsPerCTA", (2, 2)), ("instrShape", (32, 32, 8)), ("isTransposed", True))
)
WARP = (("warp", ((0, 1), (1, 0))),)
WMMA = DialectAttr("ttg.amd_wmma", (("version", 1), ("isTranspose", True), ("ctaLayout", WARP)))
POWERS = st.integers(5, 8).map(lambda power: 1 << power)
WARPS = st.sampled_from([1, 2, 4, 8, 16])


def test_other_encodings_are_none_of_these() -> None:
    assert [read_mfma(WMMA), read_wmma(MFMA), read_mfma(None), read_wmma(None)] == [None] * 4
    assert [chip_of(DialectAttr("ttg.nvidia_mma", (("version", 3),))), chip_of(None)] == ["", ""]


def test_a_tile_of_several_programs_is_not_read_as_one_of_a_program() -> None:
    cluster = ("CGALayout", ((0, 1),))
    assert read_mfma(DialectAttr(MFMA.name, (*MFMA.parameters, cluster))) is None
    assert read_wmma(DialectAttr(WMMA.name, (*WMMA.parameters, cluster))) is None


def test_accumulators_are_read_and_written() -> None:
    found = read_mfma(MFMA)
    assert found == Mfma(3, (32, 32, 8), True, (2, 2))
    assert found.source("ttgl") == "ttgl.amd.AMDMFMALayout(3, [32, 32, 8], True, [2, 2])"
    assert (chip_of(MFMA), chip_of(WMMA)) == ("cdna3", "rdna3")


def test_what_is_not_usual_of_an_accumulator_is_written_too() -> None:
    more = (("elementBitWidth", 64), ("tilesPerWarp", (2, 1)))
    found = read_mfma(DialectAttr(MFMA.name, (*MFMA.parameters, *more)))
    assert found is not None
    text = "gl.amd.AMDMFMALayout(3, [32, 32, 8], True, [2, 2], element_bitwidth=64, tiles_per_warp=[2, 1])"
    assert (found.source(), evaluated(text, (), 4)) == (text, found)


def test_warps_are_read_by_their_bases_and_as_numbers_along_each_side() -> None:
    before = DialectAttr("ttg.amd_wmma", (("version", 1), ("isTranspose", True), ("warpsPerCTA", (2, 2))))
    found = read_wmma(WMMA)
    assert found == read_wmma(before) == Wmma(1, True, ((0, 1), (1, 0)), (), (16, 16, 16))
    assert found.source() == "wmma_layout(1, [2, 2], [16, 16, 16])"
    assert evaluated(found.source(), (WMMA_SOURCE,), 4) == found


def test_warps_that_stand_otherwise_are_written_by_their_bases() -> None:
    found = Wmma(3, True, ((0, 2), (1, 0)), ((0, 1),), (16, 16, 32))
    assert evaluated(found.source(), (), 4) == found


@given(st.tuples(POWERS, POWERS), WARPS, st.sampled_from([16, 32]), st.sampled_from([64, 256, 512]))
def test_converted_files_carry_the_same_formulas(shape: tuple[int, int], warps: int, side: int, depth: int) -> None:
    made = names(warps, (TILE_WARPS_SOURCE, ROW_WARPS_SOURCE, MFMA_SHAPE_SOURCE, WMMA_SOURCE))
    assert tuple(made["tile_warps"](shape, warps, [side, side])) == tile_warps(shape, warps, (side, side))
    assert tuple(made["row_warps"](shape, warps, [side, side])) == row_warps(shape, warps, (side, side))
    assert tuple(made["mfma_shape"](shape, depth)) == mfma_shape(shape, depth)
    counts = tile_warps(shape, warps, (16, 16))
    assert made["wmma_layout"](1, counts, [16, 16, 16]) == Wmma(1, True, warp_bases(counts), (), (16, 16, 16))


TILES = ((128, 256), (64, 64), (16, 128))
TILE = Tile(("M", "N"), TILES)
COUNTS = (8, 4, 4)


@pytest.mark.parametrize("depths", [(256, 256, 256), (256, 512, 256), (256, 64, 256)])
def test_one_text_gives_every_launch_its_mfma(depths: tuple[int, ...]) -> None:
    bits = Width("bits", tuple({256: 16, 512: 8, 64: 32}[depth] for depth in depths))
    shapes = [mfma_shape(shape, depth) for shape, depth in zip(TILES, depths, strict=True)]
    values = [
        Mfma(3, instr, True, tile_warps(shape, count, instr))
        for shape, count, instr in zip(TILES, COUNTS, shapes, strict=True)
    ]
    found = mfma_source(values, TILE, COUNTS, [bits])
    assert found.exact
    for (m, n), count, value, width in zip(TILES, COUNTS, values, bits.values, strict=True):
        assert evaluated(found.source, found.helpers, count, M=m, N=n, bits=width) == value


def test_a_product_of_few_has_an_instruction_that_is_no_deeper() -> None:
    shapes = [mfma_shape(shape, depth) for shape, depth in zip(TILES, (512, 512, 256), strict=True)]
    values = [Mfma(4, instr, True, (count, 1)) for count, instr in zip(COUNTS, shapes, strict=True)]
    bits = Width("bits", (16, 16, 16))
    # What the elements are wide says nothing of it.
    assert not mfma_source(values, TILE, COUNTS, [bits]).exact
    found = mfma_source(values, TILE, COUNTS, [bits], Width("K", (64, 32, 16)))
    assert found.exact
    assert evaluated(found.source, found.helpers, 4, M=16, N=128, K=16, bits=16) == values[2]


def test_a_chain_has_its_warps_along_the_rows() -> None:
    values = [Mfma(3, (32, 32, 8), True, (count, 1)) for count in (8, 4, 2)]
    text = "gl.amd.AMDMFMALayout(3, [32, 32, 8], True, [gl.num_warps(), 1])"
    assert mfma_source(values, TILE, (8, 4, 2)).source == text
    few = [Mfma(3, (32, 32, 8), True, row_warps(shape, 8, (32, 32))) for shape in TILES]
    assert "row_warps([M, N], gl.num_warps(), [32, 32])" in mfma_source(few, TILE, (8, 8, 8)).source


def test_a_batch_takes_all_warps() -> None:
    tile = Tile(("B", "M", "N"), ((4, 32, 64), (16, 64, 64)))
    values = [Mfma(4, (32, 32, 16), True, (4, 1, 1))] * 2
    assert mfma_source(values, tile, (4, 4)).source.endswith("[gl.num_warps(), 1, 1])")


def test_a_batch_of_one_warp_has_three_dimensions_too() -> None:
    made = (("version", 2), ("isTranspose", True))
    bases = (("warp", ((1, 0, 0), (2, 0, 0))),)
    several = read_wmma(DialectAttr("ttg.amd_wmma", (*made, ("ctaLayout", bases))))
    one = read_wmma(
        DialectAttr("ttg.amd_wmma", (("version", 2), ("isTranspose", True), ("ctaLayout", (("warp", ()),))))
    )
    assert several is not None
    assert one is not None
    assert several.rank == 3
    tile = Tile(("B", "M", "N"), ((4, 32, 64), (16, 64, 64)))
    assert wmma_source([several, one], tile, (4, 1)).source == "wmma_layout(2, [gl.num_warps(), 1, 1], [16, 16, 16])"


def test_one_text_gives_every_launch_its_wmma() -> None:
    values = [
        Wmma(2, True, warp_bases(tile_warps(shape, count, (16, 16))), (), (16, 16, 16))
        for shape, count in zip(TILES, COUNTS, strict=True)
    ]
    found = wmma_source(values, TILE, COUNTS)
    assert found.exact
    for (m, n), count, value in zip(TILES, COUNTS, values, strict=True):
        assert evaluated(found.source, found.helpers, count, M=m, N=n) == value


def test_products_of_few_by_wmma_that_is_no_deeper() -> None:
    depths = (128, 64, 128)
    values = [
        Wmma(3, True, warp_bases(tile_warps(shape, count, (16, 16))), (), (16, 16, depth))
        for shape, count, depth in zip(TILES, COUNTS, depths, strict=True)
    ]
    found = wmma_source(values, TILE, COUNTS, inner=Width("K", (256, 64, 128)))
    assert found.exact
    assert "[16, 16, min(128, K)]" in found.source
    assert not wmma_source(values, TILE, COUNTS, inner=Width("K", (256, 128, 128))).exact
