"""Loops around pipelined loops: rings that are made once for all turns of the outer loop, whole kernels compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import converted, equal
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, N, K, P: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, BK])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    tiles = tl.cdiv(N, B)
    for tile in range(tl.program_id(0), tiles * tiles, P):
        i, j = tile // tiles * B, tile % tiles * B
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([i, k]), a.load([j, k]).T, acc)
        c.store([i, j], acc.to(tl.float16))
"""


def launch(n: int, k: int, *, stages: int = 3, block: int = 64, step: int = 32, programs: int = 2) -> Launch:
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"a_ptr": "*fp16", "c_ptr": "*fp16", "N": "i32", "K": "i32"}
        | dict.fromkeys(("P", "B", "BK"), "constexpr"),
        constexprs={"P": programs, "B": block, "BK": step},
        divisible_by_16=("a_ptr", "c_ptr"),
        options=Options(4, stages),
        grid=(programs,),
        args={
            "a_ptr": TensorArg("float16", (n, k), (k, 1), None),
            "c_ptr": TensorArg("float16", (n, n), (n, 1), None),
            "N": n,
            "K": k,
        },
    )


MADE_INSIDE = {
    "its descriptor is made in the loop": (
        "        acc = tl.zeros",
        "        a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, BK])\n        acc = tl.zeros",
    ),
    "two loops would have rings side by side": (
        "        c.store",
        "        for k in range(0, K, BK):\n"
        "            acc = tl.dot(a.load([j, k]), a.load([i, k]).T, acc)\n"
        "        c.store",
    ),
}


@pytest.mark.parametrize("reason", MADE_INSIDE)
def test_rings_that_stay_inside(reason: str, tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", KERNEL.replace(*MADE_INSIDE[reason])
    made, codes = converted(path, text, launch(104, 72), "sm90")
    assert codes == []
    assert made.index("for tile in ") < made.index("mbarrier.init(")
    equal(path, text, made, launch(104, 72))


@pytest.mark.parametrize("depth", [24, 200])
def test_rings_are_made_once(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, KERNEL, launch(104, depth), "sm90")
    assert codes == []
    before, loop = made.split("    for tile in ")
    assert before.count("mbarrier.init(") == before.count("    phase = 0\n") == 1
    assert loop.count("        free_slot = slot\n") == 1
    assert "mbarrier.init(" not in loop
    invalidated = "\n    for each in gl.static_range(NUM_STAGES):\n        mbarrier.invalidate(bars.index(each))"
    assert loop.rstrip().endswith(f"{invalidated}\n    tma.store_wait(0)")
    equal(path, KERNEL, made, launch(104, depth))


def test_one_that_counts_wrong_is_found(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, _ = converted(path, KERNEL, launch(104, 200), "sm90")
    wrong = made.replace("        free_slot = slot\n", "        free_slot = 0\n")
    assert wrong != made
    with pytest.raises(AssertionError):
        equal(path, KERNEL, wrong, launch(104, 200))


def test_where_there_is_no_room_rings_stay_inside_then_lose_stages(tmp_path: Path) -> None:
    # A stage takes 64 KiB, and so does the tile that is stored.
    path = tmp_path / "kernel.py"
    text = KERNEL.replace("acc.to(tl.float16)", "acc")
    wide = launch(1024, 1024, block=128, step=128, stages=3)
    wide = replace(wide, signature={**wide.signature, "c_ptr": "*fp32"}, options=Options(8, 3))
    made, codes = converted(path, text, wide, "sm90")
    assert codes == []
    assert made.index("for tile in ") < made.index("mbarrier.init(")
    made, codes = converted(path, text, replace(wide, options=Options(8, 4)), "sm90")
    assert codes == ["TTG321"]
    assert "    stages: gl.constexpr = 3 if NUM_STAGES > 3 else NUM_STAGES\n" in made
    assert "[stages, 1], mbarrier" in made
