"""Layouts of accumulators and operands: read from encodings, written as Gluon, one text for several launches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dots.written import evaluated, names
from tt2gl.formulas import Tile, Width
from tt2gl.ir.attributes import DialectAttr
from tt2gl.layouts import Blocked
from tt2gl.matrix_layouts import (
    BATCHED_MMA_V2_SOURCE,
    CHAINED_WGMMA_SOURCE,
    MMA_V2_SOURCE,
    WGMMA_SOURCE,
    Mma,
    Operand,
    batched_mma_v2,
    chained_wgmma,
    fma,
    fma_layout_source,
    fma_source,
    mma_source,
    mma_v2,
    read_blocked,
    read_mma,
    read_operand,
    wgmma,
)

MMA = DialectAttr(
    "ttg.nvidia_mma",
    (("versionMajor", 2), ("versionMinor", 0), ("warpsPerCTA", (2, 2)), ("instrShape", (16, 8))),
)
BLOCKED = DialectAttr(
    "ttg.blocked",
    (("sizePerThread", (1, 8)), ("threadsPerWarp", (4, 8)), ("warpsPerCTA", (4, 1)), ("order", (1, 0))),
)
CLUSTER = ("CGALayout", ((0, 1),))

POWERS = st.integers(0, 8).map(lambda power: 1 << power)
WARPS = st.sampled_from([1, 2, 4, 8, 16])


def test_other_encodings_are_none_of_these() -> None:
    assert [read_mma(BLOCKED), read_operand(MMA), read_blocked(MMA), read_mma(None)] == [None] * 4
    assert read_operand(DialectAttr("ttg.dot_op", (("opIdx", 0), ("parent", None)))) is None


def test_a_blocked_layout_of_a_cluster_is_not_read_as_one_of_a_program() -> None:
    assert read_blocked(DialectAttr(BLOCKED.name, (*BLOCKED.parameters, CLUSTER))) is None


def test_an_accumulator_is_read_and_written() -> None:
    assert read_mma(MMA) == Mma((2, 0), (2, 2), (16, 8))
    assert Mma((2, 0), (2, 2), (16, 8)).source() == "gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])"


def test_an_accumulator_of_a_cluster_keeps_its_place() -> None:
    found = read_mma(DialectAttr(MMA.name, (*MMA.parameters, CLUSTER)))
    assert found == Mma((2, 0), (2, 2), (16, 8), ((0, 1),))
    assert found.source("ttgl") == "ttgl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8], cga_layout=[[0, 1]])"


def test_an_operand_is_read_and_written() -> None:
    found = read_operand(DialectAttr("ttg.dot_op", (("opIdx", 1), ("parent", MMA), ("kWidth", 4))))
    assert found == Operand(1, Mma((2, 0), (2, 2), (16, 8)), 4)
    assert found.source() == f"gl.DotOperandLayout(1, {found.parent.source()}, k_width=4)"


def test_an_operand_of_multiply_adds_has_no_width() -> None:
    found = read_operand(DialectAttr("ttg.dot_op", (("opIdx", 0), ("parent", BLOCKED))))
    assert found == Operand(0, Blocked((1, 8), (4, 8), (4, 1), (1, 0)), 0)


@given(st.tuples(POWERS, POWERS, POWERS), WARPS, st.sampled_from([8, 16, 32]))
def test_converted_files_carry_the_same_formulas(shape: tuple[int, int, int], warps: int, bits: int) -> None:
    made = names(warps, (MMA_V2_SOURCE, BATCHED_MMA_V2_SOURCE, WGMMA_SOURCE, CHAINED_WGMMA_SOURCE, fma_source(32)))
    tall = (64 * shape[1], 8 * shape[2])
    assert made["mma_v2_layout"](shape[1:], warps, rows=8) == mma_v2(shape[1:], warps, 8)
    assert made["batched_mma_v2_layout"](shape, warps) == batched_mma_v2(shape, warps)
    assert made["wgmma_layout"](tall, warps, bits, widest=128) == wgmma(tall, warps, bits, 128)
    assert made["chained_wgmma_layout"](tall, warps, bits) == chained_wgmma(tall, warps, bits)
    assert made["fma_layout"](shape, warps) == fma(shape, warps)


TILES = ((128, 256), (64, 64), (128, 64))
TILE = Tile(("M", "N"), TILES)


def test_launches_by_different_instructions_have_no_exact_text() -> None:
    values = [wgmma((128, 256), 4, 16), mma_v2((64, 64), 2), mma_v2((32, 64), 4)]
    assert not mma_source(values, TILE, (4, 2, 4)).exact


def test_a_launch_of_few_rows_is_no_wgmma() -> None:
    tile = Tile(("M", "N"), ((8, 64), (64, 64), (64, 128)))
    found = mma_source([mma_v2((8, 64), 8), wgmma((64, 64), 8, 16), wgmma((64, 128), 8, 16)], tile, (8, 8, 8))
    assert (found.source, found.exact) == ("wgmma_layout([M, N], gl.num_warps(), 16)", False)


def test_an_accumulator_alone_is_the_formula_even_where_a_shorter_text_would_do() -> None:
    values = [mma_v2(shape, 1) for shape in TILES]
    found = mma_source(values, TILE, (1, 1, 1))
    assert (found.source, found.exact) == ("mma_v2_layout([M, N], gl.num_warps())", True)


@pytest.mark.parametrize("warps", [(4, 8, 16), (1, 2, 4)])
def test_one_text_gives_every_launch_its_accumulator(warps: tuple[int, ...]) -> None:
    values = [mma_v2(shape, count) for shape, count in zip(TILES, warps, strict=True)]
    found = mma_source(values, TILE, warps)
    assert found.exact
    for (m, n), count, value in zip(TILES, warps, values, strict=True):
        assert evaluated(found.source, found.helpers, count, M=m, N=n) == value


def test_products_of_doubles_may_have_instructions_of_eight_rows() -> None:
    values = [mma_v2(shape, 4, 8) for shape in TILES]
    assert mma_source(values, TILE, (4, 4, 4)).source == "mma_v2_layout([M, N], gl.num_warps(), rows=8)"


def test_a_chain_is_laid_out_by_its_last_dot() -> None:
    last = Tile(("M", "D"), ((128, 64), (64, 64), (128, 256)))
    values = [Mma((2, 0), (4, 1), (16, 8)), Mma((2, 0), (8, 1), (16, 8)), Mma((2, 0), (1, 4), (16, 8))]
    found = mma_source(values, TILE, (4, 8, 4), last=last)
    assert (found.helpers, found.exact) == ((), True)
    assert "[gl.num_warps(), 1] if M >= D else [1, gl.num_warps()]" in found.source
    assert evaluated(found.source, (), 4, M=128, N=64, D=256) == values[2]


def test_a_chain_along_the_rows_under_every_launch_needs_no_condition() -> None:
    values = [Mma((2, 0), (warps, 1), (16, 8)) for warps in (4, 8, 4)]
    found = mma_source(values, TILE, (4, 8, 4), last=TILE)
    assert found.source == "gl.NVMMADistributedLayout([2, 0], [gl.num_warps(), 1], [16, 8])"


def test_a_batch_takes_the_warps_first() -> None:
    tile = Tile(("B", "M", "N"), ((4, 32, 64), (16, 64, 64)))
    found = mma_source([batched_mma_v2(shape, 8) for shape in tile.shapes], tile, (8, 8))
    assert found.source == "batched_mma_v2_layout([B, M, N], gl.num_warps())"
    assert evaluated(found.source, found.helpers, 8, B=4, M=32, N=64) == Mma((2, 0), (4, 1, 2), (1, 16, 8))


def test_a_batch_with_all_warps_along_it_is_written_inline() -> None:
    tile = Tile(("B", "M", "N"), ((4, 32, 64),))
    found = mma_source([Mma((2, 0), (8, 1, 1), (1, 16, 8))], tile, (8,))
    assert found.source == "gl.NVMMADistributedLayout([2, 0], [gl.num_warps(), 1, 1], [1, 16, 8])"


def test_wgmma_is_inline_where_the_warps_cover_the_rows_once() -> None:
    values = [wgmma(shape, 4, 16) for shape in TILES]
    found = mma_source(values, TILE, (4, 4, 4))
    assert found.source == "gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, N, 16])"


@pytest.mark.parametrize(("made", "last"), [(wgmma, None), (chained_wgmma, TILE)], ids=["alone", "feeding another dot"])
def test_wgmma_is_the_formula_where_warps_are_left_over(made: object, last: Tile | None) -> None:
    values = [made(shape, 8, 8) for shape in TILES]  # type: ignore[operator]
    found = mma_source(values, TILE, (8, 8, 8), last=last)
    assert found.exact
    assert [evaluated(found.source, found.helpers, 8, M=m, N=n) for m, n in TILES] == values


def test_wgmma_of_bytes_is_half_as_wide() -> None:
    values = [wgmma(shape, 4, 8, 128) for shape in TILES]
    assert mma_source(values, TILE, (4, 4, 4)).source == "wgmma_layout([M, N], gl.num_warps(), 8, widest=128)"


def test_a_width_that_differs_between_launches_is_said_by_name() -> None:
    values = [wgmma(shape, 4, bits) for shape, bits in zip(TILES, (16, 8, 16), strict=True)]
    found = mma_source(values, TILE, (4, 4, 4), [Width("BITS", (16, 8, 16))])
    assert found.source == "gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, N, 256 // BITS])"


def test_multiply_adds_are_laid_out_by_the_formula() -> None:
    values = [fma(shape, 4) for shape in TILES]
    found = fma_layout_source(values, TILE, (4, 4, 4))
    assert (found.source, found.exact) == ("fma_layout([M, N], gl.num_warps())", True)
