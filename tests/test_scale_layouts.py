"""Layouts of the scales of operands in registers: as the compiler has them, one text for several launches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dots.written import evaluated
from tt2gl.formulas import Tile
from tt2gl.matrix_layouts import Mma
from tt2gl.scale_layouts import OPERAND_SCALES_SOURCE, operand_scales, operand_scales_source
from tt2gl.tensor_memory_layouts import Bases, Linear


def tile(*shapes: tuple[int, int]) -> Tile:
    return Tile(("M", "G"), shapes)


def mma(*warps: int) -> Mma:
    return Mma((2, 0), warps, (16, 8))


def test_launches_whose_layouts_are_otherwise_are_no_formula() -> None:
    other = Linear(((0, 1),), ((1, 0),), ((2, 0),), (), (64, 2))
    known = operand_scales(0, (2, 2), (128, 4))
    assert operand_scales_source([other], tile((64, 2)), 0, "a", [mma(2, 2)]).source == other.source()
    assert not operand_scales_source([other, known], tile((64, 2), (128, 4)), 0, "a", [mma(2, 2)] * 2).exact


@pytest.mark.parametrize(
    ("operand", "warps", "shape", "registers", "lanes", "of_warps"),
    [
        (0, (2, 2), (64, 2), ((0, 1), (32, 0)), ((8, 0), (0, 0)), ((0, 0), (16, 0))),
        (1, (2, 2), (64, 2), ((0, 1), (16, 0), (32, 0)), ((0, 0), (0, 0)), ((8, 0), (0, 0))),
        (0, (4, 2), (128, 4), ((0, 1), (0, 2), (64, 0)), ((8, 0), (0, 0)), ((0, 0), (16, 0), (32, 0))),
        (0, (8, 1), (64, 2), ((0, 1),), ((8, 0), (0, 0)), ((16, 0), (32, 0), (0, 0))),
        (0, (2, 2), (16, 2), ((0, 1),), ((8, 0), (0, 0)), ((0, 0), (0, 0))),
        (1, (2, 4), (128, 4), ((0, 1), (0, 2), (32, 0), (64, 0)), ((0, 0), (0, 0)), ((8, 0), (16, 0), (0, 0))),
    ],
)  # fmt: skip
def test_the_compiler_has_them_so(
    operand: int,
    warps: tuple[int, int],
    shape: tuple[int, int],
    registers: Bases,
    lanes: Bases,
    of_warps: Bases,
) -> None:
    found = operand_scales(operand, warps, shape)
    assert found == Linear(registers, (*lanes, (1, 0), (2, 0), (4, 0)), of_warps, (), shape)


@given(
    st.sampled_from([0, 1]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([8, 16, 128, 256]),
)
def test_the_helper_of_a_converted_file_gives_the_formula(operand: int, m: int, n: int, rows: int) -> None:
    made = operand_scales(operand, (m, n), (rows, 4))
    written = operand_scales_source([made], tile((rows, 4)), operand, mma(m, n).source(), [mma(m, n)])
    assert written.exact
    assert written.helpers == (OPERAND_SCALES_SOURCE,)
    assert evaluated(written.source, written.helpers, m * n, M=rows, G=4) == made
