"""Branches with products below the copies of their iteration: first those that stay above."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tests.pipelining.test_pipeline import rings, written
from tt2gl.launches import Launch, Options, TensorArg

READ = "    s = warpgroup_mma(b_smem, _tt2gl_ring_a(a_ptr + k), zeros)\n"
BRANCH = "    if k >= m:\n        acc = warpgroup_mma(s.to(x), v_smem, acc)\n"
LOADED = "    v = gl.load(b_ptr + k)\n    v_smem = gl.allocate_shared_memory(v.dtype, [8], shared, v)\n"
HEADER = "for k in range(n):\n"


def order(body: str, *parts: str, depth: str = "STAGES", in_memory: bool = True) -> list[str]:
    """Parts of a loop's body as they come in what is written."""
    loop = written(HEADER + body, rings(depth, in_memory=in_memory)).split("for k in range(n):")[1]
    return sorted(parts, key=loop.index)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(READ + BRANCH.replace("k >= m", "FLAG"), id="the compiler knows the condition"),
        pytest.param(READ + "    if k >= m:\n        acc += s\n", id="no product"),
        pytest.param(READ + BRANCH + "    acc2 = warpgroup_mma(b_smem, v_smem, acc2)\n", id="a product below"),
        pytest.param(READ + BRANCH + "    t = acc * 2\n", id="its sum is read below"),
        pytest.param(READ + BRANCH + "        helper(b_ptr, acc)\n", id="a helper may write to memory"),
        pytest.param(READ + BRANCH + "    x = f(x)\n", id="what it reads changes below"),
        pytest.param(
            READ + BRANCH + "        gl.store(b_ptr, acc)\n    y = gl.load(b_ptr + 1)\n", id="it writes to memory"
        ),
        pytest.param(
            "    if k >= m:\n        acc = warpgroup_mma(v_smem, u_smem, acc)\n        at += 1\n"
            "    s = f(_tt2gl_ring_a(a_ptr + at))\n",
            id="copies need what it steps",
        ),
    ],
)
def test_a_branch_stays_above(body: str) -> None:
    assert order(body, "\n    if ", "\n    copy(") == ["\n    if ", "\n    copy("]


@pytest.mark.parametrize(
    ("tile", "read"),
    [
        pytest.param("a = _tt2gl_ring_a(a_ptr + k)", "a.load(x)", id="where a product takes it"),
        pytest.param("a = _tt2gl_ring_a(a_ptr + k).permute([1, 0])", "a.load(x)", id="turned"),
    ],
)
def test_a_tile_that_is_overwritten_at_once_is_read_before(tile: str, read: str) -> None:
    body = f"    {tile}\n    if k >= m:\n        acc = mma_v2(s, {read}, acc)\n"
    assert order(body, "if k >= m:", "copy(", depth="STAGES - 1", in_memory=False) == ["if k >= m:", "copy("]


def test_a_tile_that_has_come_to_registers_may_be_overwritten() -> None:
    body = "    a = _tt2gl_ring_a(a_ptr + k).load(x)\n    if k >= m:\n        acc = mma_v2(s, a, acc)\n"
    assert order(body, "if k >= m:", "copy(", depth="STAGES - 1", in_memory=False) == ["copy(", "if k >= m:"]


def test_a_branch_and_what_it_alone_needs_go_below() -> None:
    parts = ("s = warpgroup_mma(", "copy(", "commit_group", "v = gl.load(", "v_smem =", "if k >= m:")
    assert order(LOADED + READ + BRANCH, *parts) == [*parts]


def test_what_others_read_stays_above() -> None:
    made = order(LOADED + READ + "    t += v\n" + BRANCH, "v = gl.load(", "v_smem =", "copy(", "if k >= m:")
    assert made == ["v = gl.load(", "copy(", "v_smem =", "if k >= m:"]


@pytest.mark.parametrize(
    "write",
    ["    gl.store(b_ptr + s, s)\n", "    gl.atomic_cas(m_ptr, 0, 1)\n"],
    ids=["what it loads is written", "other programs' writes are waited for"],
)
def test_a_load_stays_where_the_loop_may_change_what_it_reads(write: str) -> None:
    made = order(LOADED + READ + write + BRANCH, "v = gl.load(", "copy(", "if k >= m:")
    assert made == ["v = gl.load(", "copy(", "if k >= m:"]


def test_what_is_written_to_other_memory_is_nothing_to_it() -> None:
    made = order(LOADED + READ + "    gl.store(m + s, s)\n" + BRANCH, "gl.store(", "copy(", "v = gl.load(")
    assert made == ["gl.store(", "copy(", "v = gl.load("]


def test_a_fence_goes_with_what_is_put_into_memory() -> None:
    fenced = LOADED + "    fence_async_shared()\n" + READ + BRANCH
    parts = ("fence_async_shared()\n    s =", "copy(", "v_smem =", "fence_async_shared()\n    if k >= m:")
    assert order(fenced, *parts) == [*parts]


def test_the_comments_of_what_moves_go_along() -> None:
    commented = LOADED.replace("    v =", "    # the values\n    v =") + READ + "    # from there on\n" + BRANCH
    parts = ("copy(", "# the values\n    v =", "# from there on\n    if")
    assert order(commented, *parts) == [*parts]


KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, o_ptr, start, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    columns = tl.arange(0, N)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    acc = tl.zeros([M, D], dtype=tl.float32)
    for at in range(0, n, N):
        k = tl.load(k_ptr + dims[:, None] + (at + columns)[None, :] * D)
        v = tl.load(v_ptr + (at + columns)[:, None] * D + dims[None, :])
        s = tl.dot(q, k)
        s = tl.where(s > 0, s, 0.0)
        if at >= start:
            acc += tl.dot(s.to(v.dtype), v)
    tl.store(o_ptr + rows[:, None] * D + dims[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_products_under_a_condition_are_equal_and_take_no_more_registers(tmp_path: Path, target: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    tile = TensorArg("float16", (128, 64), (64, 1))
    rows = TensorArg("float16", (256, 64), (64, 1))
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "q_ptr": "*fp16",
            "k_ptr": "*fp16",
            "v_ptr": "*fp16",
            "o_ptr": "*fp32",
            "start": "i32",
            "n": "i32",
            **dict.fromkeys("MND", "constexpr"),
        },
        constexprs={"M": 128, "N": 32, "D": 64},
        divisible_by_16=("q_ptr", "k_ptr", "v_ptr", "o_ptr", "n"),
        options=Options(4, 3),
        grid=(1, 1, 1),
        args={
            "q_ptr": tile,
            "k_ptr": rows,
            "v_ptr": rows,
            "o_ptr": TensorArg("float32", (128, 64), (64, 1)),
            "start": 64,
            "n": 256,
        },
    )
    _, triton, gluon = compared(file, launch, target)
    assert gluon.registers is not None
    assert triton.registers is not None
    assert gluon.registers <= 1.1 * triton.registers
    assert gluon.spills == triton.spills
