"""Rule `repeated_stores`: stores of tiles in a loop go through memory that is made before it."""

from __future__ import annotations

from collections.abc import Callable

from tt2gl.words import STORE_AGAIN

Body = Callable[..., str]

FIRST, SECOND = "c.store([i, 0], x)", "c.store([i, 64], y)"
SMEM = "gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)"


def test_a_store_that_waits_for_itself_gets_no_tile(body: Body) -> None:
    loop = f"for i in range(n):\n    {FIRST}"
    assert body(loop, tiles={FIRST: "store"}) == "for i in range(n):\n    store_tile(c, [i, 0], x)"


def test_a_loops_stores_share_a_tile(body: Body) -> None:
    before = (
        "z = 0\n"
        "\n"
        "# tile by tile\n"
        "for i in range(n):\n"
        "    if SPLIT:\n"
        f"        {FIRST}\n"
        "    for j in tl.static_range(2):\n"
        f"        {SECOND}\n"
        "z = 1"
    )
    assert body(before, tiles={FIRST: STORE_AGAIN, SECOND: STORE_AGAIN}) == (
        "z = 0\n"
        "\n"
        f"c_smem = {SMEM}\n"
        "# tile by tile\n"
        "for i in range(n):\n"
        "    if SPLIT:\n"
        "        store_again_tile(c, [i, 0], x, tile=c_smem)\n"
        "    for j in gl.static_range(2):\n"
        "        store_again_tile(c, [i, 64], y, tile=c_smem)\n"
        "tma.store_wait(0)\n"
        "z = 1"
    )


def test_each_loop_has_a_tile_of_its_own(body: Body) -> None:
    before = f"c_smem = 0\nfor i in range(n):\n    for j in range(n):\n        {FIRST}\n    {SECOND}"
    assert body(before, tiles={FIRST: STORE_AGAIN, SECOND: STORE_AGAIN}) == (
        "c_smem = 0\n"
        f"c_smem_3 = {SMEM}\n"
        "for i in range(n):\n"
        f"    c_smem_2 = {SMEM}\n"
        "    for j in range(n):\n"
        "        store_again_tile(c, [i, 0], x, tile=c_smem_2)\n"
        "    tma.store_wait(0)\n"
        "    store_again_tile(c, [i, 64], y, tile=c_smem_3)\n"
        "tma.store_wait(0)"
    )


def test_where_a_flag_leaves_the_descriptor_it_leaves_the_tile(body: Body) -> None:
    before = f"if SAVE:\n    c = made(p)\nfor i in range(n):\n    if SAVE:\n        {FIRST}"
    assert body(before, tiles={FIRST: STORE_AGAIN}) == (
        "if SAVE:\n    c = made(p)\n"
        "if SAVE:\n"
        f"    c_smem = {SMEM}\n"
        "for i in range(n):\n"
        "    if SAVE:\n"
        "        store_again_tile(c, [i, 0], x, tile=c_smem)\n"
        "if SAVE:\n"
        "    tma.store_wait(0)"
    )


def test_a_descriptor_that_is_there_in_any_case(body: Body) -> None:
    after = f"c_smem = {SMEM}\nfor i in range(n):\n    store_again_tile(c, [i, 0], x, tile=c_smem)\ntma.store_wait(0)"
    loop = f"for i in range(n):\n    {FIRST}"
    either = "if TURNED or WIDE:\n    c = made(p)\nelse:\n    c = made(q)\n"
    assert body(either + loop, tiles={FIRST: STORE_AGAIN}) == either + after
    indented = "if SAVE:\n    c = made(p)\n    " + loop.replace("\n", "\n    ")
    expected = "if SAVE:\n    c = made(p)\n    " + after.replace("\n", "\n    ")
    assert body(indented, tiles={FIRST: STORE_AGAIN}) == expected
