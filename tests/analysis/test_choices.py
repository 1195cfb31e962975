"""Layouts that a compile-time parameter chooses between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tt2gl.analysis.choices import conditional
from tt2gl.launches import Launch

MakeLaunch = Callable[..., Launch]


def chosen(launch: MakeLaunch, said: list[str], values: list[Any]) -> str | None:
    """The choice between layouts where FLAG has these values under the launches, and SAME one."""
    launches = [launch("x=*fp16", SAME=1, FLAG=value) for value in values]
    return conditional(dict(enumerate(said)), launches)


@pytest.mark.parametrize(
    ("said", "values"),
    [
        pytest.param(["a", "a"], [True, False], id="one layout"),
        pytest.param(["a", "b"], [True, True], id="the parameter does not tell"),
        pytest.param(["a", "b", "c"], [1, 2, 3], id="three layouts"),
        pytest.param(["a", "b", "a"], [True, False, False], id="one value, two layouts"),
        pytest.param(["a", "a", "b", "b"], [1, 2, 3, 4], id="two values each"),
    ],
)
def test_no_choice(launch: MakeLaunch, said: list[str], values: list[Any]) -> None:
    assert chosen(launch, said, values) is None


@pytest.mark.parametrize(
    ("said", "values", "expected"),
    [
        pytest.param(["a", "b"], [True, False], "a if FLAG else b", id="a flag"),
        pytest.param(["a", "b"], [False, True], "b if FLAG else a", id="a flag turned"),
        pytest.param(["a", "b"], [32, 64], "a if FLAG == 32 else b", id="a number"),
        pytest.param(["a", "b"], ["sum", "mean"], "a if FLAG == 'sum' else b", id="a text"),
        pytest.param(["a", "b"], [None, 3], "a if FLAG is None else b", id="nothing"),
        pytest.param(["a", "a", "b"], [1, 2, 3], "a if FLAG != 3 else b", id="one of three"),
        pytest.param(["a", "a", "b"], [1, 2, None], "a if FLAG is not None else b", id="anything"),
    ],
)
def test_a_choice(launch: MakeLaunch, said: list[str], values: list[Any], expected: str) -> None:
    assert chosen(launch, said, values) == expected


ROWS = [(64, 4), (128, 4), (128, 8), (256, 8)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(["a", "a", "b", "b"], "a if FLAG == 1 else b", id="not the number of threads"),
        pytest.param(["b", "a", "b", "a"], "a if N >= 32 * gl.num_warps() else b", id="at least as many as threads"),
        pytest.param(["a", "b", "a", "b"], "b if N >= 32 * gl.num_warps() else a", id="fewer than threads, said first"),
    ],
)
def test_a_row_and_the_number_of_threads(launch: MakeLaunch, said: list[str], expected: str) -> None:
    flags = (1, 1, 2, 2)
    launches = [
        launch("x=*fp16", num_warps=warps, FLAG=flag, N=n) for (n, warps), flag in zip(ROWS, flags, strict=True)
    ]
    assert conditional(dict(enumerate(said)), launches, extents=["N"]) == expected
