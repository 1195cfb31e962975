"""Tiles of shared memory that a flag turns, and tiles that launches without them have no extent of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.launches import Launch

Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]

TYPES = "a_ptr=*fp16 b_ptr=*fp16 c_ptr=*fp32 n=i32"

TURNED = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros([M, N], dtype=tl.float32)
    for k in range(0, n, K):
        a = tl.load(a_ptr + rows[:, None] * n + (k + ks)[None, :])
        if TURNED:
            p_b = b_ptr + cols[:, None] * n + (k + ks)[None, :]
        else:
            p_b = b_ptr + (k + ks)[:, None] * N + cols[None, :]
        b = tl.load(p_b)
        if TURNED:
            acc = tl.dot(a, tl.trans(b), acc)
        else:
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
"""

OPTIONAL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, MORE: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * n + ks[None, :])
    b = tl.load(b_ptr + ks[:, None] * N + cols[None, :])
    acc = tl.dot(a, b)
    if MORE > 0:
        more = K + tl.arange(0, MORE)
        a_more = tl.load(a_ptr + rows[:, None] * n + more[None, :])
        b_more = tl.load(b_ptr + more[:, None] * N + cols[None, :])
        acc += tl.dot(a_more, b_more)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
"""


TWO_LOOPS = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TWICE: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros([M, N], dtype=tl.float32)
    if TWICE:
        for k in range(0, n, K):
            a = tl.load(a_ptr + rows[:, None] * n + (k + ks)[None, :])
            b = tl.load(b_ptr + (k + ks)[:, None] * N + cols[None, :])
            acc = tl.dot(a, b, acc)
        acc *= 2
    else:
        for k in range(0, n, K):
            a = tl.load(a_ptr + rows[:, None] * n + (k + ks)[None, :])
            b = tl.load(b_ptr + (k + ks)[:, None] * N + cols[None, :])
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
"""


# On RDNA a mask of rows has the layout of the load that one flag asks for, or of the store that another does.
STORED_OR_ADDED = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
           ADD: tl.constexpr, KEEP: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    inside = rows < n
    acc = tl.zeros([M, K], dtype=tl.float32)
    for k in range(0, n, K):
        a = tl.load(a_ptr + rows[:, None] * n + (k + ks)[None, :])
        b = tl.load(b_ptr + (k + ks)[:, None] * K + ks[None, :])
        acc += tl.dot(a, b)
    kept = acc.to(tl.float16)
    if KEEP:
        tl.store(a_ptr + rows[:, None] * K + ks[None, :], kept, mask=inside[:, None])
    for k in range(0, n, N):
        b = tl.load(b_ptr + ks[:, None] * n + (k + cols)[None, :])
        d = tl.dot(kept, b)
        mask = inside[:, None] & (k + cols < n)[None, :]
        if ADD:
            d += tl.load(c_ptr + rows[:, None] * n + (k + cols)[None, :], mask=mask)
        tl.store(c_ptr + rows[:, None] * n + (k + cols)[None, :], d, mask=mask)
"""

# What bytes say of a product makes its operand's threads take four elements where they are asked, else two.
MASKED_IN_A_HELPER = """
@triton.jit
def turns(acc, k, a_ptr, b_ptr, n, start, M: tl.constexpr, N: tl.constexpr, MASK: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    for i in range(start, n, M):
        q = tl.load(a_ptr + (i + rows)[None, :] * N + cols[:, None])
        p = tl.dot(k, q)
        if MASK:
            p = tl.where(tl.load(b_ptr + (i + rows)[None, :] + rows[:, None]), p, 0.0)
        acc += tl.dot(p.to(tl.float16), tl.trans(q))
    return acc

@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, WITH_MASK: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    k = tl.load(a_ptr + rows[:, None] * N + cols[None, :])
    acc = tl.zeros([M, N], dtype=tl.float32)
    acc = turns(acc, k, a_ptr, b_ptr, n, 0, M, N, MASK=WITH_MASK)
    acc = turns(acc, k, a_ptr, b_ptr, n, M, M, N, MASK=False)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
"""


@pytest.mark.slow
def test_masks_of_what_either_flag_asks_for(port: Port, launch: MakeLaunch) -> None:
    flags = [{"ADD": True, "KEEP": False}, {"ADD": False, "KEEP": True}]
    made = port(STORED_OR_ADDED, *[launch(TYPES, M=32, N=64, K=32, **each) for each in flags], target="gfx1201")
    assert "mask_d = inside_d[:, None] & (k + cols_d < n)[None, :]\n" in made
    assert "mask=inside_acc[:, None]\n" in made


@pytest.mark.slow
def test_a_layout_that_follows_from_what_a_helper_calls_a_flag(port: Port, launch: MakeLaunch) -> None:
    types = TYPES.replace("b_ptr=*fp16", "b_ptr=*i1")
    launches = [launch(types, M=64, N=64, WITH_MASK=asked) for asked in (False, True)]
    made = port(MASKED_IN_A_HELPER, *launches, target="sm120")
    assert "if WITH_MASK else" in made


@pytest.mark.slow
def test_rings_of_one_variable_in_two_loops_that_other_instructions_read(port: Port, launch: MakeLaunch) -> None:
    launches = [launch(TYPES, M=rows, N=64, K=32, TWICE=rows == 64) for rows in (64, 32)]
    made = port(TWO_LOOPS, *launches)
    assert "a_2_shared: gl.constexpr = " in made
    assert made.count("a_buf = ") == made.count("a_2_buf = ") == 1


@pytest.mark.slow
def test_a_ring_whose_tile_a_flag_turns(port: Port, launch: MakeLaunch) -> None:
    launches = [launch(TYPES, M=64, N=64, K=32, TURNED=turned) for turned in (False, True)]
    made = port(TURNED, *launches)
    assert "[NUM_STAGES, N if TURNED else K, K if TURNED else N]" in " ".join(made.split())


@pytest.mark.slow
@pytest.mark.parametrize("rows", [16, 64], ids=["mma_v2", "wgmma"])
def test_a_tile_that_a_launch_has_nothing_of(rows: int, port: Port, launch: MakeLaunch) -> None:
    made = port(OPTIONAL, *[launch(TYPES, M=rows, N=64, K=64, MORE=more) for more in (0, 32)])
    assert "max(MORE, 1)" in made


STRIDED = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, K_MAJOR: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros([M, N], dtype=tl.float32)
    for k in range(0, n, K):
        a = tl.load(a_ptr + rows[:, None] * n + (k + ks)[None, :])
        b = tl.load(b_ptr + (k + ks)[:, None] * (1 if K_MAJOR else N) + cols[None, :] * (n if K_MAJOR else 1))
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "said"), [
    pytest.param((True, True), "transposed=True", id="one_way"),
    pytest.param((False, True), "transposed=K_MAJOR", id="both"),
])  # fmt: skip
def test_a_tile_that_a_flag_has_stand_the_other_way_round(
    flags: tuple[bool, ...], said: str, port: Port, launch: MakeLaunch
) -> None:
    made = port(STRIDED, *[launch(TYPES, M=64, N=64, K=32, K_MAJOR=flag) for flag in flags])
    assert said in made.replace("\n", "")
    assert "warpgroup_mma(" in made
