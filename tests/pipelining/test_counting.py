"""What an iteration ahead is called: no number is multiplied by one."""

from __future__ import annotations

import pytest

from tt2gl.pipelining.counting import Count
from tt2gl.pipelining.rings import Amount

ONE, SEVERAL = Amount.of("1"), Amount.of("NUM_STAGES - 1")


def count(step: str, lower: str = "0") -> Count:
    return Count("k", lower, "K", step, step_known=True)


@pytest.mark.parametrize(
    ("step", "one", "several"),
    [
        pytest.param("1", "k + 1", "k + NUM_STAGES - 1", id="by one"),
        pytest.param("BLOCK", "k + BLOCK", "k + (NUM_STAGES - 1) * BLOCK", id="by a block"),
        pytest.param("2 * BLOCK", "k + 2 * BLOCK", "k + (NUM_STAGES - 1) * (2 * BLOCK)", id="by two blocks"),
        pytest.param("A + B", "k + (A + B)", "k + (NUM_STAGES - 1) * (A + B)", id="by a sum"),
        pytest.param("-1", "k - 1", "k - (NUM_STAGES - 1)", id="downwards"),
        pytest.param("-BLOCK", "k - BLOCK", "k - (NUM_STAGES - 1) * BLOCK", id="downwards by a block"),
    ],
)
def test_the_variable_iterations_on(step: str, one: str, several: str) -> None:
    assert count(step).further(ONE) == one
    assert count(step).further(SEVERAL) == several


@pytest.mark.parametrize(
    ("counted", "first", "second"),
    [
        pytest.param(count("1"), "s", "1", id="by one"),
        pytest.param(count("BLOCK"), "s * BLOCK", "BLOCK", id="by a block"),
        pytest.param(count("BLOCK", "lo"), "lo + s * BLOCK", "lo + BLOCK", id="from somewhere"),
        pytest.param(count("-BLOCK", "hi"), "hi - s * BLOCK", "hi - BLOCK", id="downwards"),
    ],
)
def test_the_variable_in_an_iteration(counted: Count, first: str, second: str) -> None:
    assert counted.at("s") == first
    assert counted.at("1") == second


def test_whether_there_is_an_iteration_further_on() -> None:
    assert count("BLOCK").continues(ONE) == "k < K - BLOCK"
    assert count("BLOCK").continues(SEVERAL) == "k < K - (NUM_STAGES - 1) * BLOCK"
    assert count("-1", "hi").continues(SEVERAL) == "k > K + (NUM_STAGES - 1)"
