"""Layouts of shared memory: read from encodings, written as Gluon, one text for several launches."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dots.written import evaluated, names
from tt2gl.formulas import Tile, Width, numbers
from tt2gl.ir.attributes import DialectAttr
from tt2gl.shared_layouts import (
    SWIZZLED_SOURCE,
    NvmmaShared,
    Swizzled,
    nvmma_shared,
    nvmma_shared_source,
    read_nvmma_shared,
    read_swizzled,
    swizzled,
    swizzled_source,
)

SWIZZLED = DialectAttr("ttg.swizzled_shared", (("vec", 8), ("perPhase", 2), ("maxPhase", 4), ("order", (1, 0))))
NVMMA = DialectAttr(
    "ttg.nvmma_shared",
    (("swizzlingByteWidth", 64), ("transposed", True), ("elementBitWidth", 16), ("CGALayout", ((0, 1),))),
)

POWERS = st.integers(0, 9).map(lambda power: 1 << power)

SHAPES = ((128, 64), (64, 32), (32, 256))
TILE = Tile(("M", "K"), SHAPES)


def test_other_encodings_are_none_of_these() -> None:
    assert [read_swizzled(NVMMA), read_nvmma_shared(SWIZZLED), read_swizzled(None)] == [None] * 3


def test_swizzled_memory_is_read_and_written() -> None:
    assert read_swizzled(SWIZZLED) == Swizzled(8, 2, 4, (1, 0))
    assert Swizzled(8, 2, 4, (1, 0)).source() == "gl.SwizzledSharedLayout(8, 2, 4, [1, 0])"


def test_memory_for_tensor_cores_is_read_and_written() -> None:
    found = read_nvmma_shared(NVMMA)
    assert found == NvmmaShared(64, True, 16, 2, cga_layout=((0, 1),))
    parts = "swizzle_byte_width=64, element_bitwidth=16, rank=2, transposed=True, cga_layout=[[0, 1]]"
    assert found.source() == f"gl.NVMMASharedLayout({parts})"


@given(
    st.tuples(POWERS, POWERS),
    st.permutations((0, 1)),
    st.sampled_from([8, 16, 32, 64]),
    st.sampled_from([0, 1]),
    st.sampled_from([1, 2, 4]),
)
def test_converted_files_carry_the_same_formula(
    shape: tuple[int, int], order: list[int], bits: int, k_dim: int, k_width: int
) -> None:
    made = names(4, (SWIZZLED_SOURCE,))["swizzled_layout"]
    expected = swizzled(shape, order, bits, k_dim, k_width)
    assert made(shape, order, bits, k_dim=k_dim, k_width=k_width) == expected
    assert made(shape, order, bits, k_dim, k_width, rows=4) == swizzled(shape, order, bits, k_dim, k_width, 4)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_memory_for_tensor_cores_is_gluons_own_default(bits: int, transposed: bool) -> None:
    from triton.experimental.gluon import language as gl

    dtype = {8: gl.int8, 16: gl.float16, 32: gl.float32}[bits]
    default: Any = gl.NVMMASharedLayout.get_default_for
    extents = [4, 8, 16, 32, 64, 256]
    for shape in (*itertools.product(extents, extents), (64,), (2, 64, 64)):
        if transposed and len(shape) != 2:
            continue
        layout = default(list(shape), dtype, transposed=transposed)
        found = (layout.swizzle_byte_width, layout.transposed, layout.element_bitwidth, layout.rank)
        expected = nvmma_shared(shape, bits, transposed)
        assert found == (
            expected.swizzle_byte_width,
            expected.transposed,
            expected.element_bitwidth,
            expected.rank,
        ), shape


def test_memory_that_is_not_swizzled_is_a_literal() -> None:
    values = [Swizzled(1, 1, 1, (1, 0))] * 3
    found = swizzled_source(values, TILE, [1], numbers([2] * 3), numbers([16] * 3))
    assert (found.source, found.helpers) == ("gl.SwizzledSharedLayout(1, 1, 1, [1, 0])", ())


def test_one_text_gives_every_launch_its_swizzle() -> None:
    values = [swizzled(shape, (1, 0), 16, 1, 2) for shape in SHAPES]
    assert len(set(values)) > 1
    found = swizzled_source(values, TILE, [1], numbers([2] * 3), numbers([16] * 3))
    assert (found.source, found.exact) == ("swizzled_layout([M, K], [1, 0], 16, k_dim=1, k_width=2)", True)
    assert [evaluated(found.source, found.helpers, 4, M=m, K=k) for m, k in SHAPES] == values


def test_widths_that_differ_between_launches_are_said_by_name() -> None:
    widths, k_widths = Width("BITS", (16, 32, 16)), Width("A_LAYOUT.k_width", (2, 1, 2))
    parts = zip(SHAPES, widths.values, k_widths.values, strict=True)
    values = [swizzled(shape, (1, 0), bits, 1, width) for shape, bits, width in parts]
    found = swizzled_source(values, TILE, [1], [*numbers([2, 1, 2]), k_widths], [*numbers([16, 32, 16]), widths])
    expected = "swizzled_layout([M, K], [1, 0], BITS, k_dim=1, k_width=A_LAYOUT.k_width)"
    assert (found.source, found.exact) == (expected, True)


def test_doubles_may_be_read_four_rows_at_once() -> None:
    values = [swizzled(shape, (1, 0), 64, 0, 1, rows=4) for shape in SHAPES]
    found = swizzled_source(values, TILE, [0], numbers([1] * 3), numbers([64] * 3))
    assert found.source == "swizzled_layout([M, K], [1, 0], 64, k_dim=0, k_width=1, rows=4)"


@pytest.mark.parametrize("transposed", [False, True])
def test_one_text_gives_every_launch_its_memory_for_tensor_cores(transposed: bool) -> None:
    values = [nvmma_shared(shape, 16, transposed) for shape in SHAPES]
    found = nvmma_shared_source(values, TILE, [Width("gl.float16", (16,) * 3)])
    assert found.exact
    assert ("transposed=True" in found.source) == transposed
    assert [evaluated(found.source, (), 4, M=m, K=k) for m, k in SHAPES] == values


def test_memory_of_another_swizzle_is_a_literal() -> None:
    values = [NvmmaShared(32, False, 16)] * 3
    found = nvmma_shared_source(values, TILE, [Width("gl.float16", (16,) * 3)])
    assert (found.source, found.exact) == (values[0].source(), True)
