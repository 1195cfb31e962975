"""What the simulator takes the ends of exponents for, as scales: what the target's compiler makes of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import IntegerType
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.microscaling import scale_values
from tt2gl.simulate.ops.dot import SCALE_ENDS
from tt2gl.targets import get_target
from tt2gl.verify.simulated_kernel import _with_scales

I8 = IntegerType(8)


@pytest.mark.parametrize(
    ("target", "hurried", "said"),
    [
        ("sm80", False, (0.0, math.nan)),
        ("sm90", False, (0.0, math.nan)),
        ("sm90", True, (0.0, math.inf)),
        ("sm100", True, None),
        ("gfx950", True, None),
    ],
)
def test_a_product_says_what_the_ends_of_scales_are(
    target: str, hurried: bool, said: tuple[float, float] | None
) -> None:
    product, other = Operation("tt.dot_scaled", (), (), {"fastMath": hurried}), Operation("tt.dot", (), ())
    module: Any = SimpleNamespace(operation=SimpleNamespace(walk=lambda: [product, other]))
    _with_scales(module, get_target(target))
    assert (str(product.attributes.get(SCALE_ENDS)), other.attributes.get(SCALE_ENDS)) == (str(said), None)


def test_exponents_as_scales() -> None:
    scales = np.array([[0, 1, 127, 254, 255]], np.uint8).view(np.int8)
    values = np.array([[2.0**-127, 2.0**-126, 1, 2.0**127, np.nan]], np.float32)
    np.testing.assert_array_equal(scale_values(scales, I8, Ieee()), values)
    values[0, [0, 4]] = 0, np.inf
    np.testing.assert_array_equal(scale_values(scales, I8, Ieee(), (0.0, math.inf)), values)
