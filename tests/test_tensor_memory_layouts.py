"""Layouts of tensor memory and of what it is loaded into: read from encodings, one text for several launches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dots.written import evaluated, names
from tt2gl.formulas import Tile
from tt2gl.ir.attributes import DialectAttr
from tt2gl.layouts import Blocked
from tt2gl.tensor_memory_layouts import (
    LOADED_FOR_ROWS_SOURCE,
    LOADED_SOURCE,
    TENSOR_MEMORY_SOURCE,
    Linear,
    TensorMemory,
    linear_of,
    loaded,
    loaded_for_rows,
    loaded_in_parts,
    loaded_source,
    packed_rows,
    read_linear,
    read_tensor_memory,
    scales,
    tensor_memory,
    tensor_memory_source,
)

MEMORY = DialectAttr("ttng.tensor_memory_encoding", (("blockM", 128), ("blockN", 64), ("colStride", 1)))
LINEAR = DialectAttr("ttg.linear", (("register", ((0, 1),)), ("lane", ((1, 0),)), ("warp", ((2, 0),)), ("block", ())))


def tile(*shapes: tuple[int, int]) -> Tile:
    return Tile(("M", "N"), shapes)


def test_other_encodings_are_none_of_these() -> None:
    assert [read_tensor_memory(LINEAR), read_linear(MEMORY, (128, 64)), read_tensor_memory(None)] == [None] * 3


@pytest.mark.parametrize("split", [("CTASplitN", 2), ("CGALayout", ((0, 1),))], ids=["split", "bases"])
def test_a_tile_that_is_split_over_programs_is_not_read_as_one_of_a_program(split: tuple[str, object]) -> None:
    assert read_tensor_memory(DialectAttr(MEMORY.name, (*MEMORY.parameters, split))) is None


def test_a_tile_is_read_and_written() -> None:
    assert read_tensor_memory(MEMORY) == TensorMemory((128, 64), 1)
    assert TensorMemory((128, 64), 1).source() == "TensorMemoryLayout([128, 64], col_stride=1)"
    assert TensorMemory((128, 64), 2, True).source() == "TensorMemoryLayout([128, 64], col_stride=2, two_ctas=True)"


def test_bases_are_read_and_written() -> None:
    found = read_linear(LINEAR, (4, 2))
    assert found == Linear(((0, 1),), ((1, 0),), ((2, 0),), (), (4, 2))
    assert found.source() == "gl.DistributedLinearLayout([[0, 1]], [[1, 0]], [[2, 0]], [], [4, 2])"


def test_a_blocked_layout_that_is_repeated_has_its_repetitions_last() -> None:
    found = linear_of(Blocked((1, 2), (2, 1), (1, 1), (0, 1)), (8, 2))
    assert found == Linear(((0, 1), (2, 0), (4, 0)), ((1, 0),), (), (), (8, 2))


@given(st.sampled_from([64, 128, 256]), st.sampled_from([16, 64, 512]), st.sampled_from([4, 8]))
def test_converted_files_carry_the_same_formulas(rows: int, columns: int, warps: int) -> None:
    made = names(warps, (TENSOR_MEMORY_SOURCE, LOADED_SOURCE, LOADED_FOR_ROWS_SOURCE))
    shape = (rows, columns)
    assert made["tensor_memory_layout"](shape) == tensor_memory(shape)
    assert made["loaded_layout"](shape, warps) == loaded(shape, warps)
    found = made["loaded_for_rows_layout"](shape, warps)
    linear = linear_of(found, shape) if isinstance(found, Blocked) else found
    assert linear == loaded_for_rows(shape, warps)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((64, 64), (128, 32)), "TensorMemoryLayout([M, N], col_stride=1)"),
        (((256, 64), (128, 32)), "TensorMemoryLayout([128, N], col_stride=1)"),
        (((256, 64), (64, 32)), "tensor_memory_layout([M, N])"),
    ],
)
def test_a_tile_is_inline_where_it_is_one_block(shapes: tuple[tuple[int, int], ...], expected: str) -> None:
    values = [tensor_memory(shape) for shape in shapes]
    found = tensor_memory_source(values, tile(*shapes))
    assert (found.source, found.exact) == (expected, True)
    assert [evaluated(found.source, found.helpers, 4, M=m, N=n) for m, n in shapes] == values


def test_registers_are_inline_where_the_warps_cover_the_rows() -> None:
    shapes = ((128, 64), (256, 128))
    values = [linear_of(loaded(shape, 4), shape) for shape in shapes]
    found = loaded_source(values, tile(*shapes), (4, 4))
    assert found.source == "gl.BlockedLayout([1, N], [32, 1], [gl.num_warps(), 1], [0, 1])"


def test_registers_are_the_formula_where_warps_share_rows() -> None:
    shapes = ((128, 64), (256, 128), (64, 32))
    values = [linear_of(loaded(shape, 8), shape) for shape in shapes]
    found = loaded_source(values, tile(*shapes), (8, 8, 8))
    assert (found.source, found.exact) == ("loaded_layout([M, N], gl.num_warps())", True)
    made = [evaluated(found.source, found.helpers, 8, M=m, N=n) for m, n in shapes]
    assert [linear_of(layout, shape) for layout, shape in zip(made, shapes, strict=True)] == values


def test_registers_of_rows_that_are_reduced_keep_a_row_in_a_warp() -> None:
    shapes, warps = ((128, 64), (128, 64), (64, 64)), (8, 4, 4)
    values = [loaded_for_rows(shape, number) for shape, number in zip(shapes, warps, strict=True)]
    assert values[0] != linear_of(loaded((128, 64), 8), (128, 64))
    found = loaded_source(values, tile(*shapes), warps)
    assert (found.source, found.exact) == ("loaded_for_rows_layout([M, N], gl.num_warps())", True)


@pytest.mark.parametrize(("rows", "warps", "parts"), [(128, 8, 2), (64, 4, 2), (256, 16, 2), (128, 8, 4)])
def test_registers_of_a_tile_taken_apart_are_those_of_its_parts(rows: int, warps: int, parts: int) -> None:
    shape, part = (rows, 128), linear_of(loaded((rows, 128 // parts), warps), (rows, 128 // parts))
    found = loaded_in_parts(shape, warps, parts)
    assert found.registers[: len(part.registers)] == part.registers
    assert found.registers[len(part.registers) :] == ((0, 64),) if parts == 2 else ((0, 32), (0, 64))
    assert (found.lanes, found.warps) == (part.lanes, part.warps)
    said = loaded_source([found], tile(shape), (warps,))
    assert (said.source, said.exact) == (f"loaded_in_parts_layout([M, N], gl.num_warps(), {parts})", True)
    assert evaluated(said.source, said.helpers, warps, M=rows, N=128) == found


# What Triton takes, by extents and warps: the bases of registers, and of warps beyond the first two.
_SCALES = {
    (128, 4, 4): (((0, 1), (0, 2), (32, 0), (64, 0)), ()),
    (128, 4, 8): (((0, 1), (0, 2), (32, 0)), ((64, 0),)),
    (128, 8, 8): (((0, 1), (0, 2), (32, 0), (64, 0)), ((0, 4),)),
    (64, 2, 8): (((0, 1),), ((32, 0),)),
    (32, 8, 4): (((0, 1), (0, 2), (0, 0), (0, 4)), ()),
    (256, 4, 4): (((0, 1), (0, 2), (32, 0), (64, 0), (128, 0)), ()),
}


@pytest.mark.parametrize(("rows", "columns", "warps"), _SCALES)
def test_registers_of_scales(rows: int, columns: int, warps: int) -> None:
    registers, more = _SCALES[rows, columns, warps]
    found = scales((rows, columns), warps)
    assert (found.registers, found.warps) == (registers, ((0, 0), (0, 0), *more))
    said = loaded_source([found], tile((rows, columns)), (warps,))
    assert (said.source, said.exact) == ("scales_layout([M, N], gl.num_warps())", True)
    assert evaluated(said.source, said.helpers, warps, M=rows, N=columns) == found


@pytest.mark.parametrize(
    ("shape", "warps"), [((64, 64), 4), ((128, 64), 4), ((128, 128), 8)], ids=["64 rows", "128 rows", "eight warps"]
)
def test_bytes_of_two_elements_are_loaded_as_a_tile_of_half_the_columns(shape: tuple[int, int], warps: int) -> None:
    whole = linear_of(loaded(shape, warps), shape)
    parts = (("register", whole.registers), ("lane", whole.lanes), ("warp", whole.warps), ("block", whole.programs))
    half = (shape[0], shape[1] // 2)
    assert read_linear(packed_rows(DialectAttr("ttg.linear", parts), shape), half) == linear_of(
        loaded(half, warps), half
    )


def test_elements_in_two_threads_are_no_byte_of_one() -> None:
    lanes = DialectAttr("ttg.linear", (("register", ((0, 2),)), ("lane", ((0, 1),)), ("warp", ()), ("block", ())))
    assert packed_rows(lanes, (1, 4)) is None
    assert packed_rows(MEMORY, (128, 64)) is None
