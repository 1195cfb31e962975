"""Extents and widths: as source, and what they come to under a launch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.analysis.extents import evaluated, pointee_bits
from tt2gl.launches import Launch

MakeLaunch = Callable[..., Launch]


@pytest.mark.parametrize(
    ("kind", "width"),
    [("*fp16", 16), ("*bf16", 16), ("*i1", 8), ("*fp8e4nv", 8), ("*fp64", 64), ("*u8", 8), ("i32", 0), ("fp32", 0)],
)
def test_the_width_of_what_a_pointer_points_to(launch: MakeLaunch, kind: str, width: int) -> None:
    assert pointee_bits(launch(f"x={kind}"), "x") == width


@pytest.mark.parametrize(
    ("text", "value"),
    [("B", 64), ("B * 2 + 1", 129), ("B // 3", 21), ("2 ** 3", 8), ("B % 10", 4), ("other", None), ("f(B)", None)],
)
def test_an_extents_value(launch: MakeLaunch, text: str, value: int | None) -> None:
    assert evaluated(text, launch("", B=64)) == value
