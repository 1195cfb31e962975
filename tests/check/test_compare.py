"""What counts as worse, what as better, and what as neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tt2gl.check.compare import Tolerances, improvements, regressions
from tt2gl.check.lowering import Access, Lowering, Measured, Spots

WIDE, NARROW, COPY = Access(4, 128), Access(16, 32), Access(4, 128, True)
TILED = Access(4, 128, warp=(16, 128), fastest=1)
ROWS_APART = Access(4, 128, warp=(128, 16), fastest=0)
MMA = {"mma.m16n8k16.f32.f16.f16": 8}
WGMMA = {"wgmma.m64n128k16.f32.f16.f16": 4}
TF32 = {"wgmma.m64n128k8.f32.tf32.tf32": 8}
BASE = Lowering(
    True,
    loads=(COPY, COPY, NARROW),
    stores=(TILED,),
    mma=WGMMA,
    rings={"64x64xf16": 3},
    products=1,
    step_products=4,
    shared=4096,
    registers=100,
)


def codes(before: Lowering, after: Lowering, *, same_work: bool = True) -> list[str]:
    now = Measured("a.py", "k", 3, "sm90", 0, "", after, Spots())
    return [found.code for found in regressions(before, now, Tolerances(0.1, 0.0), same_work=same_work)]


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(BASE, id="the same"),
        pytest.param(replace(BASE, registers=110), id="registers within the tolerance"),
        pytest.param(replace(BASE, loads=(COPY, COPY, Access(32, 32))), id="more instructions of a width"),
        pytest.param(replace(BASE, loads=(COPY, COPY, NARROW, Access(1, 16))), id="a further narrow load"),
        pytest.param(replace(BASE, loads=(COPY, NARROW)), id="a load that is gone"),
        pytest.param(replace(BASE, stores=(replace(TILED, warp=(32, 64)),)), id="as many bytes in other runs"),
        pytest.param(replace(BASE, stores=(WIDE,)), id="a layout that is not told by its lanes"),
        pytest.param(replace(BASE, mma={"tcgen05.mma.f16": 4}), id="a later family"),
        pytest.param(replace(BASE, products=2, step_products=8), id="a further product"),
    ],
)
def test_no_regression(after: Lowering) -> None:
    assert codes(BASE, after) == []


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(Lowering(False), "TTG602", id="it compiles no more"),
        pytest.param(replace(BASE, loads=(COPY, Access(8, 64, True), NARROW)), "TTG603", id="one load narrower"),
        pytest.param(replace(BASE, stores=(NARROW,)), "TTG603", id="a narrower store"),
        pytest.param(replace(BASE, loads=(COPY, Access(1, 64, True), NARROW, NARROW)), "TTG603", id="one of more"),
        pytest.param(replace(BASE, stores=(ROWS_APART,)), "TTG603", id="lanes that are no neighbours any more"),
        pytest.param(replace(BASE, conversions=1), "TTG604", id="a conversion"),
        pytest.param(replace(BASE, spills=1), "TTG605", id="a spill"),
        pytest.param(replace(BASE, loads=(COPY, WIDE, NARROW)), "TTG606", id="one load copied no more"),
        pytest.param(replace(BASE, loads=(COPY, WIDE, NARROW, WIDE)), "TTG606", id="fewer copies of more loads"),
        pytest.param(replace(BASE, rings={"64x64xf16": 2}), "TTG606", id="a shallower ring"),
        pytest.param(replace(BASE, mma={}), "TTG607", id="no matrix instruction"),
        pytest.param(replace(BASE, mma=MMA), "TTG607", id="an earlier family"),
        pytest.param(replace(BASE, mma=TF32, step_products=4), "TTG607", id="wider operands"),
        pytest.param(replace(BASE, scalar_products=1, products=2), "TTG607", id="one of the products"),
        pytest.param(replace(BASE, step_products=12), "TTG607", id="three for one"),
        pytest.param(replace(BASE, shared=4097), "TTG608", id="shared memory"),
        pytest.param(replace(BASE, registers=111), "TTG609", id="registers"),
    ],
)
def test_a_regression(after: Lowering, expected: str) -> None:
    assert codes(BASE, after) == [expected]


def test_other_blocks_may_take_more() -> None:
    after = replace(BASE, shared=8192, registers=200, spills=1)
    assert codes(BASE, after, same_work=False) == ["TTG605"]


def test_what_did_not_compile_cannot_get_worse() -> None:
    assert codes(Lowering(False), replace(BASE, spills=9)) == []
    assert codes(Lowering(False), Lowering(False)) == []


def test_the_line_to_blame() -> None:
    spots = Spots(loads=(("a.py", 7), ("a.py", 8), ("b.py", 2)), products=(("a.py", 9),))
    after = replace(BASE, loads=(COPY, COPY, Access(1, 16)), mma={})
    now = Measured("a.py", "k", 3, "sm90", 0, "", after, spots)
    found = regressions(BASE, now, Tolerances(), same_work=True)
    assert {one.code: one.spot for one in found} == {"TTG603": ("b.py", 2), "TTG607": ("a.py", 9)}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(BASE, [], id="the same"),
        pytest.param(Lowering(False), ["it compiles"], id="it compiles"),
        pytest.param(replace(BASE, conversions=2), ["2 to 0 layout conversions"], id="conversions"),
        pytest.param(replace(BASE, stores=(NARROW,)), ["32 to 128 bits a global access"], id="a wider store"),
        pytest.param(replace(BASE, loads=(COPY, WIDE, NARROW)), ["more loads run ahead"], id="a pipeline"),
        pytest.param(replace(BASE, mma=MMA), [f"products take {next(iter(WGMMA))}"], id="a later family"),
    ],
)
def test_better(before: Lowering, expected: list[str]) -> None:
    assert list(improvements(before, BASE)) == expected
