"""What the simulator takes the smallest exponent for, as a scale: what the target's compiler makes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import IntegerType
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.microscaling import scale_values
from tt2gl.simulate.ops.dot import LEAST_SCALE
from tt2gl.targets import get_target
from tt2gl.verify.simulated_kernel import _with_scales

I8 = IntegerType(8)


@pytest.mark.parametrize(("target", "said"), [("sm80", 0.0), ("sm90", 0.0), ("sm100", None), ("gfx950", None)])
def test_a_product_says_what_the_smallest_scale_is(target: str, said: float | None) -> None:
    product, other = Operation("tt.dot_scaled", (), ()), Operation("tt.dot", (), ())
    module: Any = SimpleNamespace(operation=SimpleNamespace(walk=lambda: [product, other]))
    _with_scales(module, get_target(target))
    assert (product.attributes.get(LEAST_SCALE), other.attributes.get(LEAST_SCALE)) == (said, None)


def test_exponents_as_scales() -> None:
    scales = np.array([[0, 1, 127, 254, 255]], np.uint8).view(np.int8)
    values = np.array([[2.0**-127, 2.0**-126, 1, 2.0**127, np.nan]], np.float32)
    np.testing.assert_array_equal(scale_values(scales, I8, Ieee()), values)
    np.testing.assert_array_equal(scale_values(scales, I8, Ieee(), 0.0)[0, :2], np.array([0, 2.0**-126], np.float32))
