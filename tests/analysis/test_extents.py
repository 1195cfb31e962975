"""Extents and widths: as source, and what they come to under a launch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.extents import doubled, evaluated, pointee_bits
from tt2gl.launches import Launch

Analysed = Callable[..., KernelAnalysis]
MakeLaunch = Callable[..., Launch]

PER_ROW = """
@triton.jit
def kernel(x_ptr, y_ptr, PER_ROW: tl.constexpr, BLOCK: tl.constexpr):
    if PER_ROW:
        SIZE: tl.constexpr = BLOCK
    else:
        SIZE: tl.constexpr = 1
    scale = tl.load((x_ptr + tl.arange(0, SIZE))[:, None]).broadcast_to((BLOCK, 1))
    tl.store(y_ptr + tl.arange(0, BLOCK)[None, :], scale.T)
"""


@pytest.mark.parametrize(
    ("kind", "width"),
    [("*fp16", 16), ("*bf16", 16), ("*i1", 0), ("*fp8e4nv", 8), ("*fp64", 64), ("*u8", 8), ("i32", 0), ("fp32", 0)],
)
def test_the_width_of_what_a_pointer_points_to(launch: MakeLaunch, kind: str, width: int) -> None:
    assert pointee_bits(launch(f"x={kind}"), "x") == width


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("B", 64), ("B * 2 + 1", 129), ("other", None), ("(B if ROWS else 1)", 1)],
    ],
)
def test_an_extents_value(launch: MakeLaunch, text: str, value: int | None) -> None:
    assert evaluated(text, launch("", B=64, ROWS=False)) == value


@pytest.mark.parametrize("on", [True, False])
def test_an_extent_that_a_flag_tells_is_said_by_it(analysed: Analysed, launch: MakeLaunch, on: bool) -> None:
    given = launch("x_ptr=*fp32 y_ptr=*fp32", PER_ROW=on, BLOCK=256)
    other = launch("x_ptr=*fp32 y_ptr=*fp32", PER_ROW=not on, BLOCK=256)
    loaded = analysed(PER_ROW, given, other).classes.classes[0]
    assert loaded.dims == ("(BLOCK if PER_ROW else 1)", "1")
    assert loaded.exact


HELPER = """
@triton.jit
def found(values, table_ptr):
    low = tl.zeros(values.shape, dtype=tl.int32)
    for _ in range(4):
        low += tl.load(table_ptr + low * 7 + values)
    return low


@triton.jit
def kernel(x_ptr, y_ptr, table_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, found(tl.load(x_ptr + at), table_ptr))
"""


def test_an_extent_without_a_name_is_said_by_the_constexpr_that_it_is_under_each_launch(
    analysed: Analysed, launch: MakeLaunch
) -> None:
    given = [launch("x_ptr=*i32 y_ptr=*i32 table_ptr=*i32", BLOCK=block) for block in (256, 64)]
    assert [each.dims for each in analysed(HELPER, *given).classes.classes] == [("BLOCK",)]


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("BLOCK", "BLOCK * 2"),
        ("BLOCK // 8", "BLOCK // 8 * 2"),
        ("BLOCK // 8 * 2", "BLOCK // 8 * 4"),
        ("A + B", "(A + B) * 2"),
        ("(A - B) * 2", "(A - B) * 4"),
        ("A if C else B", "(A if C else B) * 2"),
        ("2 * BLOCK", "2 * BLOCK * 2"),
        ("16", "32"),
    ],
)
def test_an_extent_twice(text: str, twice: str) -> None:
    assert doubled(text) == twice
