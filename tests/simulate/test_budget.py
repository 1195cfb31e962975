"""How much of the limit a launch takes: its tensors first, then as many programs as fit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulate.small import simulated
from tt2gl.simulate.field import Field
from tt2gl.simulate.findings import TooLarge
from tt2gl.simulate.ieee import Ieee

BLOCK = 1024


def half(limit: int, arithmetic: str) -> None:
    """Copy float16 within a limit: an element of a tensor takes 2 bytes as given, 2 or 8 as
    held, and 1 for whether it was written."""
    x = np.zeros(BLOCK, np.float16)
    simulated("unmasked_kernel", x, x, START=0, BLOCK=BLOCK, arithmetic=arithmetic, limit=limit)


@pytest.mark.parametrize(("arithmetic", "bytes_each"), [(Ieee.name, 2 * 5), (Field.name, 2 * 11)])
def test_tensors_alone_may_be_too_large(arithmetic: str, bytes_each: int) -> None:
    with pytest.raises(TooLarge, match="the tensors need about"):
        half(bytes_each * BLOCK - 1, arithmetic)
    with pytest.raises(TooLarge, match="one program needs about"):
        half(bytes_each * BLOCK, arithmetic)
