"""Operations that change nothing, and 4-bit floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.simulate.operations import BF16, I8, apply
from tt2gl.simulate.registry import HANDLERS


def test_4_bit_floats_become_wider_ones_two_from_a_byte() -> None:
    packed = np.arange(256, dtype=np.uint8).view(np.int8)
    values = apply("ttg.fp4_to_fp", packed, types=[I8], results=[BF16], axis=0)
    codes = np.stack([np.arange(256) & 15, np.arange(256) >> 4], axis=-1).astype(np.uint8)
    expected = codes.ravel().view(ml_dtypes.float4_e2m1fn).astype(ml_dtypes.bfloat16)
    assert values.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(values, expected)


def test_what_says_nothing_of_values_gives_none() -> None:
    for name in ("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents"):
        assert HANDLERS[name](None, None) is None


def test_a_layout_yet_to_be_chosen_keeps_the_value() -> None:
    x = np.arange(4, dtype=np.int8)
    np.testing.assert_array_equal(apply("gluon.set_auto_layout", x, types=[I8], results=[I8]), x)
