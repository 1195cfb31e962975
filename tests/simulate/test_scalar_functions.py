"""Functions that are ours: against Python's `math`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tt2gl.simulate.scalar_functions import elementwise, erf, round_half_away

# numpy warns of the overflows and NaN that these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_erf() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20_001), np.geomspace(1e-300, 1, 500), [0.0, -0.0, math.inf, -math.inf]])
    exact = np.array([math.erf(value) for value in x])
    assert np.allclose(erf(x), exact, rtol=4e-16, atol=0)
    assert np.array_equal(erf(x).astype(np.float32), exact.astype(np.float32))
    assert np.isnan(erf(np.array([math.nan]))).all()
    assert math.copysign(1, erf(np.array([-0.0]))[0]) == -1


def test_a_function_that_raises_is_nan_there_and_one_that_overflows_infinite() -> None:
    assert np.isnan(elementwise(math.sqrt)(np.array([-1.0])))[0]
    assert elementwise(math.gamma)(np.array([1e6])).tolist() == [math.inf]


def test_halves_are_rounded_away_from_zero() -> None:
    values = np.array([0.49999997, 0.5, 1.5, -0.5, 8388609.0, math.inf], np.float32)
    assert round_half_away(values).tolist() == [0, 1, 2, -1, 8388609.0, math.inf]
