"""The formulas of dots' layouts are Triton's own: a sample of dots, compiled by this Triton for each target."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.dots.cases import FEW, sample
from tests.dots.facts import Case
from tests.dots.judge import verdict

EVERY_KIND = {
    "batched mma_v2",
    "chained mma_v2",
    "chained wgmma",
    "fma",
    "loaded",
    "mma_v2",
    "nvmma_shared",
    "operand in tensor memory",
    "operand of fma",
    "operand of mma_v2",
    "operand of wgmma",
    "plain shared",
    "swizzled",
    "tcgen05",
    "wgmma",
}


MANY = sample(2400)
# In parts, as one test of all takes longer than what is left to whatever begins last in CI.
PART = len(MANY) // 4 + 1
PARTS = [
    pytest.param(MANY[at : at + PART], marks=pytest.mark.slow, id=f"from {at}") for at in range(0, len(MANY), PART)
]


@pytest.mark.parametrize("cases", [pytest.param(FEW, id="few"), *PARTS])
def test_every_layout_is_as_the_formula_says(cases: Sequence[Case]) -> None:
    found = verdict(cases)
    assert found.wrong[:10] == []
    assert set(found.all) == EVERY_KIND
