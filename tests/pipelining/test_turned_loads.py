"""What loops load and turn for products: first what stays as it is, then what is converted as it comes."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.turned_loads import with_turned_loads

HEAD = "def kernel(p, r_ptrs, q_smem, n):\n"
LOAD = "k = gl.load(p)\n"
BESIDE = "r = gl.load(r_ptrs)\n"
CONVERSION = "gl.convert_layout(tl.trans(k), rhs_layout)"
PRODUCT = f"s = mma_v2(q_smem.load(lhs_layout), {CONVERSION}, zeros)\n"


def converted(body: str, loop: str = "for k in range(n):") -> str:
    """The text of a loop's body after the rule."""
    head = f"{HEAD}    {loop}\n"
    made = with_turned_loads(head + textwrap.indent(body, "        "), {"kernel"})
    return textwrap.dedent(made.removeprefix(head))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{LOAD}{PRODUCT}", id="nothing is read between"),
        pytest.param(f"{LOAD}{BESIDE}{PRODUCT.replace('mma_v2', 'warpgroup_mma')}", id="wgmma"),
        pytest.param(f"{LOAD}{BESIDE}{PRODUCT}t = warpgroup_mma(q, k, s)\n", id="two instructions"),
        pytest.param(f"{LOAD}{BESIDE}{PRODUCT.replace('tl.trans(k)', 'k')}", id="not turned"),
        pytest.param(f"{LOAD}{BESIDE}k = k + 1\n{PRODUCT}", id="changed between"),
        pytest.param(f"{LOAD}{BESIDE}if n:\n    {PRODUCT}", id="in a branch"),
        pytest.param(f"k = k_buf.index(0).load(layout)\n{BESIDE}{PRODUCT}", id="a slot"),
        pytest.param(f"k = gl.load(p) + 1\n{BESIDE}{PRODUCT}", id="computed"),
        pytest.param(f"{LOAD}{BESIDE}rhs_layout = layout_of(r)\n{PRODUCT}", id="a layout made between"),
        pytest.param(f"{LOAD}{BESIDE}t = mma_v2(q, r, zeros)\n{PRODUCT}", id="another product between"),
        pytest.param(f"{LOAD}{BESIDE}t = {CONVERSION}\nu = mma_v2(q, r, zeros)\ngl.store(p, t)\n", id="no operand"),
    ],
)
def test_what_stays(body: str) -> None:
    assert converted(body) == body


def test_outside_of_loops() -> None:
    assert converted(f"{LOAD}{BESIDE}{PRODUCT}", "if n:") == f"{LOAD}{BESIDE}{PRODUCT}"


@pytest.mark.parametrize("turned", ["tl.trans(k)", "k.T", "gl.permute(k, (1, 0))", "k.trans()"])
@pytest.mark.parametrize("loop", ["for k in range(n):", "while n:"])
def test_an_operand_is_converted_as_it_comes(turned: str, loop: str) -> None:
    body = f"{LOAD}{BESIDE}{PRODUCT}".replace("tl.trans(k)", turned)
    conversion = CONVERSION.replace("tl.trans(k)", turned)
    product = "s = mma_v2(q_smem.load(lhs_layout), k_rhs, zeros)\n"
    assert converted(body, loop) == f"{LOAD}k_rhs = {conversion}\n{BESIDE}{product}"


def test_behind_what_puts_it_into_memory_and_for_the_other_side() -> None:
    stored = "k_smem = gl.allocate_shared_memory(k.dtype, [M, K], k_shared, k)\n"
    body = f"{LOAD}{stored}{BESIDE}s = mma_v2({CONVERSION}, r, zeros)\n"
    assert converted(body) == f"{LOAD}{stored}k_lhs = {CONVERSION}\n{BESIDE}s = mma_v2(k_lhs, r, zeros)\n"


def test_one_conversion_for_all_under_the_name_that_it_has() -> None:
    body = f"{LOAD}{BESIDE}{PRODUCT}k_op = {CONVERSION}\nt = mma_v2(r, k_op, s)\n"
    made = "s = mma_v2(q_smem.load(lhs_layout), k_op, zeros)\nt = mma_v2(r, k_op, s)\n"
    assert converted(body) == f"{LOAD}k_op = {CONVERSION}\n{BESIDE}{made}"


def test_a_name_that_is_bound_twice_stays() -> None:
    body = f"{LOAD}{BESIDE}k_op = {CONVERSION}\nt = mma_v2(r, k_op, s)\nk_op = t\n"
    made = "k_op = k_rhs\nt = mma_v2(r, k_op, s)\nk_op = t\n"
    assert converted(body) == f"{LOAD}k_rhs = {CONVERSION}\n{BESIDE}{made}"


def test_names_are_fresh() -> None:
    made = converted(f"k_rhs = n\n{LOAD}{BESIDE}{PRODUCT}")
    assert f"k_rhs_2 = {CONVERSION}\n{BESIDE}" in made
