"""Offsets made of a row that is loaded: computed for each layout of a tile that they are wanted in, from that row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.launches import Launch

pytestmark = pytest.mark.once

Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]

MOVED = """
@triton.jit
def kernel(x_ptr, rows_ptr, y_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    cols = tl.arange(0, BN)
    rows = {rows}
    offsets = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(y_ptr + offsets, x)
"""

TYPES = "x_ptr=*fp16 rows_ptr=*i32 y_ptr=*fp32 N=i32"


@pytest.mark.parametrize("rows", ["tl.load(rows_ptr + tl.arange(0, BM))", "tl.load(rows_ptr + tl.arange(0, BM)) + 1"])
def test_the_row_is_converted_and_not_the_tile(port: Port, launch: MakeLaunch, rows: str) -> None:
    made = port(MOVED.replace("{rows}", rows), launch(TYPES, BM=128, BN=32))
    assert "gl.convert_layout(rows, gl.SliceLayout(1, x_layout))[:, None] * N" in made
    assert "gl.convert_layout(rows, gl.SliceLayout(1, y_layout))[:, None] * N" in made
    assert "gl.convert_layout(offsets" not in made


def test_a_sum_of_a_tile_is_in_its_slice(port: Port, launch: MakeLaunch) -> None:
    """What is made of that has the tile's layout, and is converted."""
    rows = "tl.max(tl.load(rows_ptr + tl.arange(0, BM)[:, None] * BN + cols[None, :]), 1)"
    made = port(MOVED.replace("{rows}", rows), launch(TYPES, BM=128, BN=32))
    assert "gl.convert_layout(offsets, " in made


WIDENED = """
@triton.jit
def kernel(x_ptr, rows_ptr, y_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    cols = tl.arange(0, BN)
    rows = tl.load(rows_ptr + tl.arange(0, BM))
    places = rows{cast} * N
    x = tl.load(x_ptr + places[:, None] + cols[None, :])
    tl.store(y_ptr + places[:, None] + cols[None, :], x)
"""


@pytest.mark.parametrize(("cast", "converted"), [(".to(tl.int64)", "rows"), ("", "places")])
def test_a_row_of_wide_offsets_is_made_of_the_narrow_one_that_is_converted(
    port: Port, launch: MakeLaunch, cast: str, converted: str
) -> None:
    made = port(WIDENED.replace("{cast}", cast), launch(TYPES, BM=128, BN=32))
    assert made.count(f"gl.convert_layout({converted}, gl.SliceLayout(1, ") == made.count("gl.SliceLayout(1, ")
