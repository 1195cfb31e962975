"""Products of 32-bit floats whose precision a constant says: the port is of that precision alone, and says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.launches import Launch
from tt2gl.results import Conversion

pytestmark = pytest.mark.once

Convert = Callable[..., Conversion]
MakeLaunch = Callable[..., Launch]

KERNEL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, HOW: tl.constexpr, BLOCK: tl.constexpr):
    '''c = a b'''
    rows = tl.arange(0, BLOCK)
    offsets = rows[:, None] * BLOCK + rows[None, :]
    tl.store(c_ptr + offsets, tl.dot(tl.load(a_ptr + offsets), tl.load(b_ptr + offsets), {}))
"""


@pytest.mark.parametrize(
    ("given", "how", "held"),
    [
        ("input_precision=HOW", "tf32", 'HOW == "tf32"'),
        ("input_precision=HOW", "ieee", 'HOW == "ieee"'),
        ("allow_tf32=HOW", True, "HOW"),
        ("allow_tf32=HOW", False, "not HOW"),
    ],
)
@pytest.mark.parametrize("target", ["sm80", "sm90", "gfx942"])
def test_what_the_instruction_was_chosen_by_is_asserted(
    conversion: Convert, launch: MakeLaunch, given: str, how: object, held: str, target: str
) -> None:
    made = conversion(
        KERNEL.format(given), launch("a_ptr=*fp32 b_ptr=*fp32 c_ptr=*fp32", HOW=how, BLOCK=64), target=target
    )
    assert f'    gl.static_assert({held}, "products are of this precision")\n' in made.text
    assert all(report.gluon is not None and report.gluon.ok for report in made.kernels)


@pytest.mark.parametrize(
    ("given", "dtype"), [("input_precision=HOW", "fp16"), ('input_precision="tf32"', "fp32"), ("acc=None", "fp32")]
)
def test_nothing_is_asserted_of_other_products(conversion: Convert, launch: MakeLaunch, given: str, dtype: str) -> None:
    types = f"a_ptr=*{dtype} b_ptr=*{dtype} c_ptr=*fp32"
    made = conversion(KERNEL.format(given), launch(types, HOW="tf32", BLOCK=64), compile=False)
    assert "products are of this precision" not in made.text


def test_nothing_is_asserted_of_a_product_in_a_branch(conversion: Convert, launch: MakeLaunch) -> None:
    text = KERNEL.replace("    tl.store", "    if HOW == 'ieee':\n        tl.store").format("input_precision=HOW")
    made = conversion(text, launch("a_ptr=*fp32 b_ptr=*fp32 c_ptr=*fp32", HOW="ieee", BLOCK=64), compile=False)
    assert "products are of this precision" not in made.text


@pytest.mark.parametrize("target", ["gfx950", "gfx1100"])
def test_nothing_is_asserted_where_launches_of_both_have_one_instruction(
    conversion: Convert, launch: MakeLaunch, target: str
) -> None:
    types = "a_ptr=*fp32 b_ptr=*fp32 c_ptr=*fp32"
    launches = [launch(types, HOW=how, BLOCK=64) for how in (False, True)]
    made = conversion(KERNEL.format("allow_tf32=HOW"), *launches, target=target)
    assert "products are of this precision" not in made.text
    assert all(report.gluon is not None and report.gluon.ok for report in made.kernels)
