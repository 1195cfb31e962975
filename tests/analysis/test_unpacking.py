"""Values that are packed in pairs: which layout their halves take of the one that is wanted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tt2gl.analysis.terms import Operand, Root, Term, Turned
from tt2gl.analysis.unpacking import half

pytestmark = pytest.mark.once


def pairs() -> Any:
    """Pairs of 16 by 32."""
    part = SimpleNamespace(dims_known=("M", "K"))
    return SimpleNamespace(operands=[part, part])


@pytest.mark.parametrize("turned", [False, True])
def test_halves_of_what_no_product_takes_have_no_layout_of_it(turned: bool) -> None:
    wanted: Term = Root("v_layout")
    assert half(Turned(wanted, ("M", "K")) if turned else wanted, pairs()) is None


def test_halves_of_an_operand_have_half_of_its_width() -> None:
    made = half(Operand(1, Root("mma_layout"), "4"), pairs())
    assert made == Operand(1, Root("mma_layout"), "2")
