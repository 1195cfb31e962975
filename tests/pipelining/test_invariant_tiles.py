"""Tiles that a loop loads alike on every turn, or puts into shared memory, stand before it; others stay."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.invariant_tiles import without_invariant_tiles

HEAD = """from triton.experimental.gluon.language.nvidia.ampere import mma_v2

def kernel(a_ptr, o_ptr, x, k, n, mask, shared, layout: gl.constexpr, BLOCK: gl.constexpr):
"""
LOOP = "for i in range(0, n, BLOCK):\n"
FILLED = "k_smem = gl.allocate_shared_memory(k.dtype, [BLOCK, BLOCK], shared, k)"
READ = "x += k_smem.load(layout)"
BUFFER = "k = gl.amd.cdna3.buffer_load(a_ptr, offs)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = without_invariant_tiles(HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n", {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD)).strip()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{LOOP}    a = gl.load(a_ptr + i)\n    x += a", id="the loop counts"),
        pytest.param(f"{LOOP}    x += gl.load(a_ptr)", id="part of an expression"),
        pytest.param(f"{LOOP}    a = gl.load(a_ptr)\n    gl.store(o_ptr + i, a)", id="the loop writes"),
        pytest.param(f"{LOOP}    {BUFFER}\n    {FILLED}\n    {READ}\n    gl.store(o_ptr, x)", id="a buffer is written"),
        pytest.param(f"while x < n:\n    {BUFFER}\n    {FILLED}\n    {READ}", id="a buffer, turns not known before"),
        pytest.param(f"{LOOP}    x += gl.amd.cdna3.buffer_load(a_ptr, offs)", id="a buffer, part of an expression"),
        pytest.param(f"{LOOP}    a = gl.load(a_ptr)\n    x += step(a)", id="a call that may write"),
        pytest.param(f"{LOOP}    a = gl.load(a_ptr, volatile=True)\n    x += a", id="volatile"),
        pytest.param("while x < n:\n    a = gl.load(a_ptr)\n    x += a", id="turns not known before"),
        pytest.param("for i in range(x, n, k):\n    a = gl.load(a_ptr)\n    x += a", id="maybe downwards"),
        pytest.param(f"{LOOP}    if mask:\n        a = gl.load(a_ptr)\n        x += a", id="a branch"),
        pytest.param(f"{LOOP}    a = gl.load(a_ptr)\n    x += a\nx += a", id="read after the loop"),
        pytest.param(f"a = 0\n{LOOP}    x += a\n    a = gl.load(a_ptr)", id="carried"),
        pytest.param(f"{LOOP}    a = gl.load(a_ptr + x // k)\n    n += a", id="may divide by zero"),
        pytest.param(f"{LOOP}    a = gl.load(a_ptr)\n    a = a + i\n    x += a", id="assigned twice"),
        pytest.param(f"{LOOP}    {FILLED}\n    k_smem.store(x)", id="memory that is written to"),
        pytest.param(f"{LOOP}    x += k_smem.load(layout)\n    {FILLED}", id="memory of the turn before"),
        pytest.param(f"{LOOP}    k = k + 1\n    {FILLED}\n    x += k_smem.load(layout)", id="another tile"),
        pytest.param(f"{LOOP}    s = gl.allocate_shared_memory(k.dtype, [BLOCK], shared)\n    s.load(x)", id="empty"),
        pytest.param(f"for i in gl.static_range(4):\n    {FILLED}\n    x = k_smem.load(layout)", id="unrolled"),
    ],
)  # fmt: skip
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_an_operand_is_put_into_memory_once() -> None:
    made = moved(
        """
        # all of it
        for i in range(0, n, BLOCK):
            a = gl.load(a_ptr + i)
            # scores
            k_operand = tl.trans(k)
            k_smem = gl.allocate_shared_memory(k_operand.dtype, [BLOCK, BLOCK], shared, k_operand)
            x = mma_v2(a, k_smem.load(layout), x)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
            k_operand = tl.trans(k)
            k_smem = gl.allocate_shared_memory(k_operand.dtype, [BLOCK, BLOCK], shared, k_operand)
            # all of it
            for i in range(0, n, BLOCK):
                a = gl.load(a_ptr + i)
                # scores
                x = mma_v2(a, k_smem.load(layout), x)
            """
        ).strip()
    )


def test_memory_of_the_same_name_before_the_loop_is_no_matter() -> None:
    before = f"{FILLED}\nx = k_smem.load(layout)\n"
    assert moved(f"{before}{LOOP}    {FILLED}\n    x += k_smem.load(layout)") == (
        f"{before}{FILLED}\n{LOOP}    x += k_smem.load(layout)"
    )


def test_a_load_asks_whether_there_is_a_turn_and_takes_its_address_and_comments_along() -> None:
    made = moved(
        """
        for i in range(0, n, BLOCK):
            ptrs = a_ptr + x
            b = i + x

            # the tile
            a = gl.load(
                ptrs,
                mask=x < k,
            )
            n_tile = gl.load(ptrs + k)
            ptrs += BLOCK
            o = mma_v2(a, n_tile, b)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
            ptrs = a_ptr + x
            # the tile
            a = gl.load(
                ptrs,
                mask=(n > 0) & (x < k),
            )
            n_tile = gl.load(ptrs + k, mask=n > 0)
            for i in range(0, n, BLOCK):
                b = i + x

                o = mma_v2(a, n_tile, b)
            """
        ).strip()
    )


def test_a_tile_leaves_all_the_loops_that_it_is_the_same_in() -> None:
    body = f"for j in range(n):\n    m = j\n    {LOOP}        {FILLED}\n        x = mma_v2(m, k_smem.load(layout), x)\n"
    assert moved(body).startswith(f"{FILLED}\nfor j in range(n):\n    m = j\n")


def test_what_a_buffer_operation_loads_leaves_a_loop_that_fills_slots_of_rings() -> None:
    used = f"{READ}\n    ring.index(0).store(x)"
    asked = BUFFER.replace("offs)", "offs, mask=n > 0)")
    assert moved(f"{LOOP}    {BUFFER}\n    {FILLED}\n    {used}") == f"{asked}\n{FILLED}\n{LOOP}    {used}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gl.amd.cdna3.buffer_load(a_ptr, offs)", "gl.amd.cdna3.buffer_load(a_ptr, offs, mask=n > 0)"),
        (
            "gl.amd.cdna3.buffer_load(a_ptr, offs, mask=mask)",
            "gl.amd.cdna3.buffer_load(a_ptr, offs, mask=(n > 0) & mask)",
        ),
        ("gl.amd.cdna3.buffer_load(a_ptr, offs, mask, k)", "gl.amd.cdna3.buffer_load(a_ptr, offs, (n > 0) & mask, k)"),
    ],
)
def test_a_tile_that_a_buffer_operation_loads_is_masked_by_whether_there_is_a_turn(before: str, after: str) -> None:
    assert moved(f"{LOOP}    a = {before}\n    x += a") == f"a = {after}\n{LOOP}    x += a"


def test_a_load_that_is_cast_for_an_operand_is_masked_too() -> None:
    cast = BUFFER.replace("offs)", "offs).to(gl.float16)")
    asked = cast.replace("offs)", "offs, mask=n > 0)")
    assert moved(f"{LOOP}    {cast}\n    {FILLED}\n    {READ}") == f"{asked}\n{FILLED}\n{LOOP}    {READ}"


def test_a_load_that_is_cast_where_it_is_loaded_moves_with_its_cast() -> None:
    cast = "a = gl.load(a_ptr{}).to(gl.float32)"
    assert moved(f"{LOOP}    {cast.format('')}\n    x += a") == f"{cast.format(', mask=n > 0')}\n{LOOP}    x += a"
    counted = f"{LOOP}    a = gl.load(a_ptr).to(gl.float32) * i\n    x += a"
    assert moved(counted) == counted
