"""Loads that run on into the next turn of a flattened loop around theirs: where they must not, and what is written."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tt2gl.pipeline import LoopRings, Ring, pipelined

HELPERS = """
def place(tile, n):
    return tile // n, tile % n


def looked_up(tile, table):
    return gl.load(table + tile), tile


"""
HEAD = "def kernel(a_desc, c_desc, table, tiles, n, steps, STAGES: gl.constexpr):\n"

LOOP = """\
for tile in range(gl.program_id(0), tiles, 4):
    row, column = place(tile, n)
    start = row * 64
    acc = 0
    for k in range(steps):
        acc = warpgroup_mma(x, _tt2gl_ring_a(a_desc, [start, k * 8]), acc)
    store_tile(c_desc, [start, column], acc)
"""


TILES = (Ring("a", "", (), "", in_memory=True, tile=True),)

SLOTS = Ring("a", "dtype", ("8",), "shared", in_memory=False)

COPIED = """\
for tile in range(gl.program_id(0), tiles, 4):
    a_ptrs = table + tile * 64
    for k in range(steps):
        acc = mma_v2(_tt2gl_ring_a(a_ptrs, mask=k < n).load(operand), x, acc)
        a_ptrs += 8
    gl.store(c_desc + tile, acc)
"""


def written(body: str, *flattened: str, rings: Sequence[Ring] = TILES) -> str:
    text = HELPERS + HEAD + textwrap.indent(body, "    ")
    spec = LoopRings("kernel", HELPERS.count("\n") + 1, tuple(rings), "STAGES", flattened=frozenset(flattened))
    made = pipelined(text, [spec], "copy")
    ast.parse(made)
    return textwrap.dedent(made[made.index(HEAD) + len(HEAD) :])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # What a turn needs comes from the turn before it.
        ("    start = row * 64\n", "    start = row * 64 + acc\n"),
        ("row, column = place(tile, n)", "row, column = place(tile, n)\n    n = n + 1"),
        # It is loaded, maybe from where nothing is.
        ("place(tile, n)", "looked_up(tile, table)"),
        ("place(tile, n)", "gl.load(table + tile), n"),
        # It is known under a condition alone, or in a loop.
        ("    start = row * 64\n", "    start = 0\n    if row > n:\n        start = row * 64\n"),
        ("    start = row * 64\n", "    for i in range(row):\n        start = i\n"),
        # Turns differ in how many iterations they have.
        ("range(steps)", "range(row)"),
        ("range(steps)", "range(tile)"),
        # The loop around may be left, or does not count.
        ("    acc = 0\n", "    acc = 0\n    if row > n:\n        break\n"),
        ("for tile in range(gl.program_id(0), tiles, 4):", "for tile in gl.static_range(4):"),
        # Triton makes one loop of two, not of three.
        ("    store_tile", "    for i in range(n):\n        acc += i\n    store_tile"),
        ("        acc = warpgroup_mma", "        for i in range(n):\n            x += i\n        acc = warpgroup_mma"),
        # The loop is under a condition.
        ("for tile in", "for other in range(n):\n  for tile in"),
    ],
)
def test_loads_wait_for_the_turn_where_they_must(before: str, after: str) -> None:
    body = LOOP.replace(before, after)
    assert body != LOOP
    body = body.replace("\n    ", "\n      ") if "  for tile" in after else body
    made = written(body, "tile")
    assert "tile_ahead" not in made
    assert "k_ahead" not in made
    assert "more = k < steps - (STAGES - 1)\n" in made or "range(steps)" in before


def test_only_of_flattened_loops() -> None:
    assert "tile_ahead" not in written(LOOP, "k")


def test_copies_go_through_both_loops() -> None:
    assert written(LOOP, "tile") == textwrap.dedent(
        """\
        gl.static_assert(STAGES > 1, "no load would run ahead")
        # a ring of STAGES tiles; loads run STAGES - 1 iterations ahead
        a_buf = gl.allocate_shared_memory(a_desc.dtype, [STAGES] + a_desc.block_shape, a_desc.layout)
        bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
        for each in gl.static_range(STAGES):
            mbarrier.init(bars.index(each), count=1)
        first = gl.program_id(0)
        # where the next copies are from: they run on into the next turn of the loop around
        tile_ahead = first
        row_ahead, column_ahead = place(tile_ahead, n)
        start_ahead = row_ahead * 64
        k_ahead = 0
        more = (tile_ahead < tiles) & (k_ahead < steps)
        for s in gl.static_range(STAGES - 1):
            mbarrier.expect(bars.index(s), a_desc.block_type.nbytes, pred=more)
            tma_load(a_desc, [start_ahead, k_ahead * 8], bars.index(s), a_buf.index(s), pred=more)
            k_ahead += 1
            if k_ahead >= steps:
                tile_ahead += 4
                row_ahead, column_ahead = place(tile_ahead, n)
                start_ahead = row_ahead * 64
                k_ahead = 0
                more = (tile_ahead < tiles) & (k_ahead < steps)

        slot = 0
        free_slot = STAGES - 1
        phase = 0

        for tile in range(first, tiles, 4):
            row, column = place(tile, n)
            start = row * 64
            acc = 0
            for k in range(steps):
                mbarrier.wait(bars.index(slot), phase)
                acc = warpgroup_mma(x, a_buf.index(slot), acc, is_async=True)
                # runs on, while the iteration before is done: its tiles may be overwritten
                acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
                mbarrier.expect(bars.index(free_slot), a_desc.block_type.nbytes, pred=more)
                tma_load(a_desc, [start_ahead, k_ahead * 8], bars.index(free_slot), a_buf.index(free_slot), pred=more)
                k_ahead += 1
                if k_ahead >= steps:
                    tile_ahead += 4
                    row_ahead, column_ahead = place(tile_ahead, n)
                    start_ahead = row_ahead * 64
                    k_ahead = 0
                    more = (tile_ahead < tiles) & (k_ahead < steps)
                slot = gl.where(slot + 1 >= STAGES, 0, slot + 1)
                free_slot = gl.where(free_slot + 1 >= STAGES, 0, free_slot + 1)
                phase = phase ^ (slot == 0)
            acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
            store_tile(c_desc, [start, column], acc)
        for each in gl.static_range(STAGES):
            mbarrier.invalidate(bars.index(each))
        """
    )


@pytest.mark.parametrize(
    "ring",
    [replace(SLOTS, registers=True), replace(SLOTS, registers=True, held=True), replace(SLOTS, direct="to_shared")],
)
def test_tiles_that_no_cp_async_copies_wait_for_the_turn(ring: Ring) -> None:
    assert "tile_ahead" not in written(COPIED, "tile", rings=[ring])


def test_tiles_of_both_kinds_wait_for_the_turn() -> None:
    body = LOOP.replace("warpgroup_mma(x,", "warpgroup_mma(_tt2gl_ring_b(table + k),")
    both = [*TILES, Ring("b", "dtype", ("8",), "shared", in_memory=True)]
    assert "tile_ahead" not in written(body, "tile", rings=both)


def test_copies_of_threads_go_through_both_loops() -> None:
    assert written(COPIED, "tile", rings=[SLOTS]) == textwrap.dedent(
        """\
        gl.static_assert(STAGES > 0, "no load would run ahead")
        # a ring of STAGES tiles; loads run STAGES iterations ahead
        a_buf = gl.allocate_shared_memory(dtype, [STAGES, 8], shared)
        first = gl.program_id(0)
        # where the next copies are from: they run on into the next turn of the loop around
        tile_ahead = first
        a_ptrs_ahead = table + tile_ahead * 64
        k_ahead = 0
        more = (tile_ahead < tiles) & (k_ahead < steps)
        for s in gl.static_range(STAGES):
            copy(a_buf.index(s), a_ptrs_ahead, mask=more & (k_ahead < n))
            async_copy.commit_group()
            a_ptrs_ahead += 8
            k_ahead += 1
            if k_ahead >= steps:
                tile_ahead += 4
                a_ptrs_ahead = table + tile_ahead * 64
                k_ahead = 0
                more = (tile_ahead < tiles) & (k_ahead < steps)

        slot = 0

        for tile in range(first, tiles, 4):
            for k in range(steps):
                # at most the copies of the next STAGES - 1 iterations are under way: this one's tiles are there
                async_copy.wait_group(STAGES - 1)
                acc = mma_v2(a_buf.index(slot).load(operand), x, acc)
                copy(a_buf.index(slot), a_ptrs_ahead, mask=more & (k_ahead < n))
                async_copy.commit_group()
                a_ptrs_ahead += 8
                k_ahead += 1
                if k_ahead >= steps:
                    tile_ahead += 4
                    a_ptrs_ahead = table + tile_ahead * 64
                    k_ahead = 0
                    more = (tile_ahead < tiles) & (k_ahead < steps)
                slot = gl.where(slot + 1 >= STAGES, 0, slot + 1)
            gl.store(c_desc + tile, acc)
        async_copy.wait_group(0)
        """
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        # What is loaded beside the copies is at an address that goes on from turn to turn of the loop inside.
        ("mma_v2(", "mma_v2(gl.load(c_desc) + "),
        ("mma_v2(", "mma_v2(gl.load(c_desc, mask=k < n) + "),
        # The variable is read behind the loop.
        ("    gl.store(c_desc + tile, acc)", "    gl.store(c_desc + k, acc)"),
    ],
    ids=["no other load", "another address", "in a mask alone", "read behind the loop"],
)
def test_the_variable_of_the_loop_inside_stays_its_own(before: str, after: str) -> None:
    body = COPIED.replace("x, acc)", "gl.load(c_desc + k), acc)") if "+ k, acc" in after else COPIED
    made = written(body.replace(before, after), "tile", rings=[SLOTS])
    assert "    for k in range(steps):\n" in made
    assert "k = gl.where" not in made


def test_nor_is_it_counted_on_beside_copies_of_tma() -> None:
    made = written(LOOP.replace("warpgroup_mma(x,", "warpgroup_mma(gl.load(table + k),"), "tile")
    assert "    for k in range(steps):\n" in made


@pytest.mark.parametrize(
    ("span", "counted", "first", "step"),
    [
        ("range(steps)", "range(steps)", "k = 0\n", "k = gl.where(k + 1 >= steps, 0, k + 1)\n"),
        ("range(8, n, 4)", "range(8, n, 4)", "k = 8\n", "k = gl.where(k + 4 >= n, 8, k + 4)\n"),
        ("range(steps, 0, -2)", "range(steps, end, -2)", "k = steps\n", "k = gl.where(k - 2 <= end, steps, k - 2)\n"),
    ],
)
def test_where_other_loads_go_by_it_the_variable_is_counted_on(span: str, counted: str, first: str, step: str) -> None:
    body = COPIED.replace("range(steps)", span)
    body = body.replace("        acc = mma_v2", "        rows = table + k * 8\n        acc = mma_v2")
    made = written(body.replace("x, acc)", "gl.load(rows), acc)"), "tile", rings=[SLOTS])
    loop = made.index("for tile in")
    assert first in made[made.index("slot = 0\n") : loop]
    assert "rows = table + k * 8\n" in made[made.index(first) : loop]
    assert f"    for _ in {counted}:\n        # at most the copies" in made[loop:]
    assert f"        {step}        rows = table + k * 8\n    gl.store(c_desc + tile, acc)\n" in made[loop:]


@pytest.mark.parametrize(
    "line",
    ["rows = table + k * tile", "rows = table + k * x", "rows = gl.load(table) + k", "rows, x = table + k, 0"],
    ids=["of the loop around", "of its own turn", "loaded", "bound twice"],
)
def test_what_is_not_made_of_the_variable_alone_is_computed_where_it_is_read(line: str) -> None:
    body = COPIED.replace("        acc = mma_v2", f"        {line}\n        acc = mma_v2")
    body = body.replace("x, acc)", "gl.load(rows + k), acc)").replace(
        "        a_ptrs +=", "        x = acc\n        a_ptrs +="
    )
    made = written(body, "tile", rings=[SLOTS])
    assert "k = gl.where(" in made
    assert made.count(f"        {line}\n") == 1
    assert made.index("for _ in range(steps)") < made.index(line)


def test_an_unrolled_loop_is_none_beside_them() -> None:
    body = LOOP.replace("    store_tile", "    for i in gl.static_range(2):\n        acc += i\n    store_tile")
    assert "tile_ahead" in written(body, "tile")


def test_what_only_the_copies_need_goes_with_them() -> None:
    body = LOOP.replace("    start = row", "    # the tile's first row\n    start = row").replace(
        "[start, column], acc", "[0, 0], acc"
    )
    made = written(body.replace("range(steps)", "range(0, steps + 1, 2)"), "tile")
    loop = made[made.index("for tile in") :]
    assert "    start = " not in loop
    assert "place(tile, n)" not in loop
    assert made.count("# the tile's first row") == 1
    assert made.index("end = steps + 1\n") < made.index("k_ahead += 2\n") < made.index("for tile in range")
    assert "    for k in range(0, end, 2):\n" in loop


def test_steps_back_end_below() -> None:
    made = written(LOOP.replace("range(steps)", "range(steps, 0, -1)"), "tile")
    assert "k_ahead += -1\n" in made
    assert "if k_ahead <= end:\n" in made
    assert "k_ahead = steps\n" in made
