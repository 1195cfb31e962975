"""Values that go through shared memory: first what must stay as it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.bounces import settled

X = "x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)\n"
AGAIN = X.replace("x_smem", "x_smem_2")


def written(body: str, *, read_at_once: bool = False) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(x, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    code = cst.Module([settled(function, read_at_once=read_at_once)]).code
    return textwrap.dedent(code.removeprefix("def kernel(x, acc):\n"))


@pytest.mark.parametrize(
    "between",
    [
        "x = x + 1\n",
        "x += 1\n",
        "if acc:\n    x = helper(x)\n",
        "for x in range(3):\n    acc = helper(x)\n",
    ],
)
def test_another_value_is_put_down_again(between: str) -> None:
    body = f"{X}acc = mma_v2(x_smem.load(lhs), y, acc)\n{between}{AGAIN}acc = mma_v2(x_smem_2.load(lhs), y, acc)\n"
    assert written(body) == body


def test_another_layout_is_other_memory() -> None:
    other = AGAIN.replace("x_shared", "other_shared")
    body = f"{X}acc = mma_v2(x_smem.load(lhs), y, acc)\n{other}acc = mma_v2(x_smem_2.load(lhs), y, acc)\n"
    assert written(body) == body


BRANCH = f"if flag:\n    {X}    acc = mma_v2(x_smem.load(lhs), y, acc)\n"
AFTER = f"{AGAIN}acc = mma_v2(x_smem_2.load(lhs), y, acc)\n"


@pytest.mark.parametrize(
    "body",
    [
        BRANCH + "acc = mma_v2(y, y, acc)\n",
        BRANCH + "x = x + 1\n" + AFTER,
        BRANCH + "    x = x + 1\n" + AFTER,
        BRANCH + AFTER.replace("x_shared", "other_shared"),
        BRANCH.replace("mma_v2", "gl.dot_fma") + AFTER,
        BRANCH + AFTER.replace("mma_v2", "gl.dot_fma"),
        BRANCH.replace("if flag", "while acc") + AFTER,
    ],
    ids=["not below", "changed", "changed in it", "other memory", "its product", "the other product", "a loop"],
)
def test_a_value_put_down_in_a_branch_is_not_there_after_it(body: str) -> None:
    assert written(body) == body


def test_a_value_that_a_branch_and_what_follows_put_down_is_put_down_above_both() -> None:
    branch = "if flag:\n    acc = mma_v2(x_smem_2.load(lhs), y, acc)\n"
    assert written(f"{BRANCH}# the sum\n{AFTER}") == f"{AGAIN}{branch}# the sum\n{AFTER.removeprefix(AGAIN)}"
    other = "else:\n    acc = y\n"
    assert written(BRANCH + other + AFTER) == AGAIN + branch + other + AFTER.removeprefix(AGAIN)


FIRST = f"{X}acc = mma_v2(x_smem.load(lhs), y, acc)\n"
INNER = f"if flag:\n    {AGAIN}    acc = mma_v2(x_smem_2.load(lhs), y, acc)\n"


@pytest.mark.parametrize(
    "body",
    [
        FIRST + "x = x + 1\n" + INNER,
        FIRST + INNER.replace("if flag:\n", "if flag:\n    x = x + 1\n"),
        FIRST + INNER.replace("x_shared", "other_shared"),
    ],
    ids=["changed", "changed in it", "other memory"],
)
def test_another_value_is_put_down_again_in_a_branch(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize("product", ["mma_v2(x_smem_2.load(lhs), y, acc)", "warpgroup_mma(x_smem_2, y, acc)"])
def test_a_value_that_is_put_down_serves_the_branches_below_it(product: str) -> None:
    branch = f"if flag:\n    {AGAIN}    acc = {product}\n"
    served = f"if flag:\n    acc = {product}\n".replace("x_smem_2", "x_smem")
    assert written(FIRST + branch) == FIRST + served
    twice = branch + textwrap.indent(AGAIN.replace("_2", "_3") + f"acc = {product}\n".replace("_2", "_3"), "    ")
    both = served + f"    acc = {product}\n".replace("x_smem_2", "x_smem")
    assert written(FIRST + twice) == FIRST + both


@pytest.mark.parametrize(
    "product",
    [
        "acc = warpgroup_mma(x_smem, y_buf.index(0), acc)\n",
        "acc = gl.dot_fma(x_smem.load(lhs), y, acc)\n",
        "acc = mma_v2(x_smem.load(lhs), helper(x_smem), acc)\n",
    ],
)
def test_memory_that_other_instructions_read_stays_above_them(product: str) -> None:
    body = f"x = gl.load(x_ptrs)\ny = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\n{X}{product}"
    assert written(body) == body


def test_a_value_of_another_block_is_put_down_where_it_is_wanted() -> None:
    lines = "y = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\n", X, "acc = mma_v2(x_smem.load(lhs), y, acc)\n"
    body = "x = gl.load(x_ptrs)\nfor k in range(3):\n" + "".join(f"    {line}" for line in lines)
    assert written(body) == body


def test_two_products_read_one_tile() -> None:
    body = f"{X}acc = mma_v2(x_smem.load(lhs), y, acc)\n# the second\n{AGAIN}acc = mma_v2(x_smem_2.load(lhs), y, acc)\n"
    made = f"{X}acc = mma_v2(x_smem.load(lhs), y, acc)\n# the second\nacc = mma_v2(x_smem.load(lhs), y, acc)\n"
    assert written(body) == made


def test_operands_in_registers_are_put_down_with_their_values() -> None:
    product = "acc = mma_v2(x_smem.load(lhs), z_smem.load(rhs), acc)\n"
    z = X.replace("x_", "z_").replace("x.", "z.").replace(" x)", " z)")
    loads = "x, z = helper(x_ptrs)\n", "y = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\n"
    assert (
        written(f"{loads[0]}{loads[1]}# the product\n{X}{z}{product}")
        == f"{loads[0]}{X}{z}{loads[1]}# the product\n{product}"
    )
    assert written(f"{loads[0]}{X}{z}{loads[1]}{product}") == f"{loads[0]}{X}{z}{loads[1]}{product}"


def test_converted_operands_are_converted_with_their_values() -> None:
    load, tile = "x = gl.load(x_ptrs)\n", "y = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\n"
    products = "# the first\nacc = mma_v2(X, y, acc)\nx_sum = mma_v2(X, z, x_sum)\n"
    converted = "gl.convert_layout(x, lhs)"
    body = f"{load}x_lhs = 1\n{tile}{products}".replace("X", converted)
    made = f"{load}x_lhs_2 = {converted}\nx_lhs = 1\n{tile}{products}".replace("X", "x_lhs_2")
    assert written(body) == made


@pytest.mark.parametrize(
    "body",
    [
        "x = gl.load(x_ptrs)\ny = gl.load(y_ptrs)\nacc = mma_v2(gl.convert_layout(x, lhs), y, acc)\n",
        "y = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\nx = f(x_ptrs)\nacc = mma_v2(gl.convert_layout(x, lhs), y, acc)\n",
        "y = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\nacc = mma_v2(gl.convert_layout(x, lhs), y, acc)\n",
        "x = f()\ny = _tt2gl__tt2gl_ring_y(y_ptrs).load(rhs)\nacc = mma_v2(gl.convert_layout(x + 1, lhs), y, acc)\n",
    ],
)
def test_conversions_that_no_tile_is_held_across_stay(body: str) -> None:
    assert written(body) == body


Y = X.replace("x", "y").replace("y_shared", "other")


@pytest.mark.parametrize("following", [Y, "z = _tt2gl__tt2gl_ring_z(z_ptrs).load(rhs)\n"])
def test_values_are_read_below_what_follows(following: str) -> None:
    reading = "a = x_smem.load(lhs)\n"
    assert written(f"{X}{reading}{following}acc = helper(a)\n") == f"{X}{following}{reading}acc = helper(a)\n"


def test_on_amd_values_are_read_as_soon_as_they_are_there() -> None:
    """Two tiles of 128x128 would be in memory at once, 64 KiB where Triton's kernel takes 32."""
    body = f"{X}a = x_smem.load(lhs)\n{Y}acc = helper(a)\n"
    assert written(body, read_at_once=True) == body


@pytest.mark.parametrize(
    "body",
    [
        f"{X}a = x_smem.load(lhs)\nacc = helper(a)\n{Y}",
        f"{X}a = x_smem.load(lhs)\nb = helper(acc)\n",
        f"a = w_smem.load(lhs)\n{Y}acc = helper(a)\n",
    ],
)
def test_values_are_read_where_they_are_used(body: str) -> None:
    assert written(body) == body
