"""Loops over tiles that TMA copies: what is refused, and the mbarriers that are written."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tt2gl.pipeline import LoopRings, NotPipelinedError, Ring, pipelined

HEAD = "@gluon.jit\ndef kernel(a_desc, b_desc, p_ptr, STAGES: gl.constexpr):\n    n = gl.load(p_ptr)\n"


def tile(name: str, *, in_memory: bool = True) -> Ring:
    return Ring(name, "", (), "", in_memory, tile=True)


PAIR = LoopRings("kernel", 2, (tile("a"), tile("b")), "STAGES")


def written(body: str, spec: LoopRings = PAIR) -> str:
    made = pipelined(HEAD + textwrap.indent(textwrap.dedent(body), "    "), [spec], "copy")
    ast.parse(made)
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("a_desc, [k, 0]", "b_desc, [k, 0]", "through two descriptors"),
        ("a_desc, [k, 0]", "a_desc, [k, 1]", "from two places"),
    ],
)
def test_one_ring_is_loaded_from_one_place(first: str, second: str, reason: str) -> None:
    body = f"for k in range(n):\n    x += _tt2gl_ring_a({first}).load(l)\n    x += _tt2gl_ring_a({second}).load(l)\n"
    with pytest.raises(NotPipelinedError, match=reason):
        written(body)


def test_a_tile_under_one_flag_or_another_is_not_expected_twice() -> None:
    load = "        x += _tt2gl_ring_a(a_desc, [k, 0]).load(l)\n"
    with pytest.raises(NotPipelinedError, match="under one condition or another"):
        written(f"for k in range(n):\n    if F == 1:\n{load}    if F == 2:\n{load}")


def test_tiles_side_by_side_share_their_barriers() -> None:
    made = written(
        "for k in range(n):\n"
        "    a = _tt2gl_ring_a(a_desc, [0, k * 8])\n"
        "    b = _tt2gl_ring_b(b_desc, [k * 8, 0])\n"
        "    acc = warpgroup_mma(a, b, acc)\n"
    )
    assert made == textwrap.dedent(
        """\
        gl.static_assert(STAGES > 1, "no load would run ahead")
        # rings of STAGES tiles; loads run STAGES - 1 iterations ahead
        a_buf = gl.allocate_shared_memory(a_desc.dtype, [STAGES] + a_desc.block_shape, a_desc.layout)
        b_buf = gl.allocate_shared_memory(b_desc.dtype, [STAGES] + b_desc.block_shape, b_desc.layout)
        bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
        for each in gl.static_range(STAGES):
            mbarrier.init(bars.index(each), count=1)
        for k in gl.static_range(STAGES - 1):
            mbarrier.expect(bars.index(k), a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=k < n)
            tma_load(a_desc, [0, k * 8], bars.index(k), a_buf.index(k), pred=k < n)
            tma_load(b_desc, [k * 8, 0], bars.index(k), b_buf.index(k), pred=k < n)

        slot = 0
        free_slot = STAGES - 1
        phase = 0
        for k in range(n):
            more = k < n - (STAGES - 1)
            mbarrier.wait(bars.index(slot), phase)
            a = a_buf.index(slot)
            b = b_buf.index(slot)
            acc = warpgroup_mma(a, b, acc, is_async=True)
            # runs on, while the iteration before is done: its tiles may be overwritten
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
            ahead = k + STAGES - 1
            mbarrier.expect(bars.index(free_slot), a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=more)
            tma_load(a_desc, [0, ahead * 8], bars.index(free_slot), a_buf.index(free_slot), pred=more)
            tma_load(b_desc, [ahead * 8, 0], bars.index(free_slot), b_buf.index(free_slot), pred=more)
            slot = gl.where(slot + 1 >= STAGES, 0, slot + 1)
            free_slot = gl.where(free_slot + 1 >= STAGES, 0, free_slot + 1)
            phase = phase ^ (slot == 0)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        for each in gl.static_range(STAGES):
            mbarrier.invalidate(bars.index(each))
        """
    )


def test_tiles_apart_are_waited_for_apart() -> None:
    made = written(
        "for k in range(n):\n"
        "    x += _tt2gl_ring_a(a_desc, [k, 0]).load(l)\n"
        "    y = x * 2\n"
        "    y += _tt2gl_ring_b(b_desc, [k, 0]).load(l)\n"
    )
    loop = made[made.index("for k in range(n)") :]
    assert loop.index("mbarrier.wait(a_bars") < loop.index("y = x * 2") < loop.index("mbarrier.wait(b_bars")
    assert loop.count("mbarrier.expect(") == 2


def test_tiles_of_other_depths_have_barriers_of_their_own() -> None:
    spec = LoopRings("kernel", 2, (tile("a"), tile("b", in_memory=False)), "3")
    made = written(
        "for k in range(n):\n"
        "    a = _tt2gl_ring_a(a_desc, [k, 0])\n"
        "    acc = warpgroup_mma(_tt2gl_ring_b(b_desc, [0, k]).load(l), a, acc)\n",
        spec,
    )
    assert "a_bars = gl.allocate_shared_memory(gl.int64, [3, 1]" in made
    assert "b_bars = gl.allocate_shared_memory(gl.int64, [2, 1]" in made


def test_one_tile_needs_no_slots() -> None:
    spec = LoopRings("kernel", 2, (tile("a", in_memory=False),), "1")
    made = written("for k in range(n):\n    x += _tt2gl_ring_a(a_desc, [k]).load(l)\n", spec)
    assert "mbarrier.init(bars.index(0), count=1)\n" in made
    assert "    mbarrier.wait(bars.index(0), phase)\n" in made
    assert "    phase = phase ^ 1\n" in made
    assert made.endswith("mbarrier.invalidate(bars.index(0))\n")


def test_copies_by_threads_stand_beside_them() -> None:
    spec = LoopRings("kernel", 2, (tile("a"), Ring("p", "gl.float16", ("8",), "shared", in_memory=False)), "3")
    made = written(
        "for k in range(n):\n"
        "    a = _tt2gl_ring_a(a_desc, [k, 0])\n"
        "    x += _tt2gl_ring_p(p_ptr + k).load(l)\n"
        "    acc = warpgroup_mma(x, a, acc)\n",
        spec,
    )
    loop = made[made.index("for k in range(n)") :]
    assert loop.count("async_copy.wait_group(1)") == loop.count("async_copy.commit_group()") == 1
    assert "fence_async_shared" not in made
    assert loop.index("async_copy.wait_group(0)") < loop.index("mbarrier.invalidate")


def test_a_loop_that_does_not_start_at_zero() -> None:
    spec = LoopRings("kernel", 2, (tile("a"),), "STAGES")
    made = written(
        "for k in range(p_ptr, n, 8):\n    acc = warpgroup_mma(x, _tt2gl_ring_a(a_desc, [k, 0]), acc)\n", spec
    )
    assert "tma_load(a_desc, [k, 0], bars.index(s), a_buf.index(s), pred=k < n)" in made
    assert "mbarrier.wait(bars.index(slot), phase)" in made


def test_tiles_under_a_flag_are_waited_for_under_it() -> None:
    made = written(
        "for k in range(n):\n"
        "    a = _tt2gl_ring_a(a_desc, [0, k * 8])\n"
        "    if STAGES == 3:\n"
        "        b = _tt2gl_ring_b(b_desc, [k * 8, 0])\n"
        "        acc = warpgroup_mma(a, b, acc)\n"
    )
    assert (
        "if STAGES == 3:\n"
        "    b_bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())\n"
        "    for each in gl.static_range(STAGES):\n"
        "        mbarrier.init(b_bars.index(each), count=1)\n"
    ) in made
    assert "    if STAGES == 3:\n        mbarrier.wait(b_bars.index(slot), phase)\n" in made
    assert "mbarrier.expect(a_bars.index(k), a_desc.block_type.nbytes, pred=k < n)\n" in made
    assert made.rstrip().endswith(
        "if STAGES == 3:\n    for each in gl.static_range(STAGES):\n        mbarrier.invalidate(b_bars.index(each))"
    )


def test_a_wait_stands_below_blank_lines() -> None:
    made = written(
        "for k in range(n):\n"
        "    x += k\n"
        "\n"
        "    # a tile\n"
        "    a = _tt2gl_ring_a(a_desc, [0, k * 8])\n"
        "    acc = warpgroup_mma(a, a, acc)\n"
    )
    assert "    x += k\n\n    mbarrier.wait(bars.index(slot), phase)\n    # a tile\n    a = a_buf.index(slot)\n" in made


def test_where_a_flag_has_tma_copy_all_tiles_copies_of_threads_are_not_awaited() -> None:
    threads = Ring("p", "gl.float16", ("8",), "shared", in_memory=True)
    body = """\
        for k in range(n):
            if STAGES:
                a = _tt2gl_ring_a(a_desc, [0, k])
            else:
                a = _tt2gl_ring_p(a_ptr + k)
            acc = warpgroup_mma(a, a, acc)
        """
    made = written(body, LoopRings("kernel", 2, (tile("a"), threads), "3"))
    before, rest = made.split("for k in range(n):\n")
    loop, after = rest.split("\nif STAGES:\n")[0].split("\nif not STAGES:\n")
    assert "    if not STAGES:\n        async_copy.commit_group()\n" in before
    assert "    if not STAGES:\n        # at most" in loop
    assert "        async_copy.wait_group(1)\n        fence_async_shared()\n" in loop
    assert "mask=more)\n    if not STAGES:\n        async_copy.commit_group()\n" in loop
    assert after.startswith("    async_copy.wait_group(0)")
